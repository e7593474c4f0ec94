// Reads what comes of one request into its attempt's outcome. Streams resolve at their first content, so that a provider that fails before
// it has said anything can still be exchanged for another.
import type { IncomingHttpHeaders } from "node:http";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { type Exchange, type ExchangeReader, failureOf } from "#daemon/gateway/upstream/exchange.ts";
import type { ChatOutcome, FailureOutcome } from "../adapter.ts";
import { type Failure, failure, UpstreamError } from "../failure.ts";
import type { Reading } from "./reading.ts";
import type { Relay } from "./relay.ts";
import { Toll } from "./toll.ts";

/** Decoded bytes of an error's body. */
const MAX_ERROR = 256 * 1024;

export class AnswerReader implements ExchangeReader {
  running: Exchange | null = null;
  readonly #reading: Reading;
  readonly #resolve: (outcome: ChatOutcome) => void;
  readonly #sendAgain: (status: number, body: string) => boolean;
  readonly #toll = new Toll();
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #parts: Buffer[] = [];
  #size = 0;
  /** Where a stream was asked for, until it is known whether one comes. */
  #offered: Relay | null = null;
  #relay: Relay | null = null;

  /** @param sendAgain whether the request goes out once more after this refusal, to be read by another one. */
  constructor(
    reading: Reading,
    resolve: (outcome: ChatOutcome) => void,
    sendAgain: (status: number, body: string) => boolean,
  ) {
    this.#reading = reading;
    this.#resolve = resolve;
    this.#sendAgain = sendAgain;
  }

  sent(): void {
    this.#toll.sent = true;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
    this.#toll.answering = status < 300;
    if (status < 300) this.#offered = this.#reading.relay(() => this.running as Exchange);
  }

  data(chunk: Buffer): void {
    if (this.#offered) this.#begin(chunk);
    else this.#take(chunk);
  }

  // What an answer is its first letter says, as clients read it: servers are known to send events as JSON, and JSON as nothing.
  #begin(chunk: Buffer): void {
    const first = chunk.findIndex((byte) => !BLANK.has(byte));
    if (first < 0) return;
    this.#relay = WHOLE.has(chunk[first] ?? 0) ? null : this.#offered;
    this.#offered = null;
    this.#take(chunk.subarray(first));
  }

  #take(chunk: Buffer): void {
    const relay = this.#relay;
    if (relay) {
      // Content that one read brings together with what breaks the stream is content all the same: nothing is tried again after it.
      try {
        relay.data(chunk);
      } finally {
        if (relay.decoder.started() || relay.decoder.finished()) this.#give(relay);
      }
      return;
    }
    this.#size += chunk.length;
    this.#parts.push(chunk);
    if (this.#status >= 300) {
      // Servers repeat what they refuse (FastAPI): the status has to do.
      if (this.#size > MAX_ERROR) throw this.#tooLong();
    } else if (this.#size > this.#reading.maxAnswer)
      throw new UpstreamError(failure("protocol", "The provider's answer is too large."));
  }

  end(): void {
    this.#toll.whole = true;
    if (this.#offered && isStream(this.#headers)) this.#relay = this.#offered;
    const relay = this.#relay;
    if (relay) {
      relay.end();
      this.#give(relay);
    } else {
      const outcome = this.#whole();
      if (outcome) this.#resolve(outcome);
    }
  }

  // Null: the request goes out once more.
  #whole(): ChatOutcome | null {
    const body = joined(this.#parts);
    this.#parts = [];
    if (this.#status >= 300) {
      const text = body.toString("utf8");
      return this.#sendAgain(this.#status, text) ? null : this.#failed(this.#refusal(text), null);
    }
    try {
      return this.#reading.whole(body);
    } catch (error) {
      return this.#failed(failureOf(error), error instanceof UpstreamError ? error.usage : null);
    }
  }

  #refusal(text: string): Failure {
    const { wire, target } = this.#reading;
    return wire.failure(this.#status, this.#headers, text, target);
  }

  #tooLong(): UpstreamError {
    this.#toll.whole = true;
    return new UpstreamError(this.#refusal(joined(this.#parts).toString("utf8")));
  }

  #failed(problem: Failure, usage: TokenUsage | null): FailureOutcome {
    return { kind: "failure", failure: problem, usage, notes: this.#reading.notes };
  }

  fail(problem: Failure): void {
    const relay = this.#relay;
    if (relay?.given) relay.fail(problem);
    else this.#resolve(this.#failed(problem, this.#charged(problem)));
  }

  // Of a stream that its provider ended with an error in place of the answer: what it has counted itself, as of an error's status.
  #charged(problem: Failure): TokenUsage | null {
    const relay = this.#relay;
    if (!relay) return this.#toll.of(problem, () => this.#reading.promptTokens());
    const usage = relay.decoder.usage();
    return problem.upstreamStatus !== null && usage.estimated ? null : usage;
  }

  #give(relay: Relay): void {
    if (relay.given) return;
    relay.given = true;
    this.#resolve({ kind: "stream", notes: this.#reading.notes, pipe: relay.pipe });
  }
}

// RFC 8259, 8.1: a byte order mark before JSON may be passed over.
function joined(parts: readonly Buffer[]): Buffer {
  const body = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

/** Before JSON, and before events: white space, and the bytes of a byte order mark. */
const BLANK: ReadonlySet<number> = new Set(Buffer.from(" \t\r\n\ufeff"));
/** Of JSON, and of a page that a proxy answers with. */
const WHOLE: ReadonlySet<number> = new Set(Buffer.from("{[<"));

// Of an answer without a letter.
function isStream(headers: IncomingHttpHeaders): boolean {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  return !type.includes("json") && !type.startsWith("text/html");
}
