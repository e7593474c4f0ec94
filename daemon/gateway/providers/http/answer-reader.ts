// Reads an answer into the attempt's outcome. A stream is given out at its first content, so that a provider that fails before it has said
// anything can still be exchanged for another.
import type { IncomingHttpHeaders } from "node:http";
import { estimatePrompt } from "#daemon/gateway/format/estimate.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { type Exchange, type ExchangeReader, failureOf } from "#daemon/gateway/upstream/exchange.ts";
import type { AttemptOptions, ChatOutcome, FailureOutcome } from "../adapter.ts";
import { type Failure, failure, UpstreamError } from "../failure.ts";
import { wholeAsStream } from "../whole-stream.ts";
import type { ReadContext, Wire } from "../wire.ts";
import { joined, MAX_ANSWER, MAX_ERROR } from "./body.ts";
import { type Relay, streamRelay } from "./relay.ts";
import { Toll } from "./toll.ts";

/** Reads one answer of a chat, whole or streamed. */
export class AnswerReader implements ExchangeReader {
  running: Exchange | null = null;
  readonly #wire: Wire;
  readonly #context: ReadContext;
  readonly #options: AttemptOptions;
  readonly #resolve: (outcome: ChatOutcome) => void;
  readonly #sendAgain: (status: number, body: string) => boolean;
  readonly #toll = new Toll();
  readonly #streamed: boolean;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #parts: Buffer[] = [];
  #size = 0;
  #relay: Relay | null = null;

  /** @param sendAgain whether the request goes out once more after this refusal, to be read by another one. */
  constructor(
    wire: Wire,
    context: ReadContext,
    options: AttemptOptions,
    resolve: (outcome: ChatOutcome) => void,
    sendAgain: (status: number, body: string) => boolean,
  ) {
    this.#wire = wire;
    this.#context = context;
    this.#options = options;
    this.#resolve = resolve;
    this.#sendAgain = sendAgain;
    this.#streamed = context.request.stream === true;
  }

  sent(): void {
    this.#toll.sent = true;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
    this.#toll.answering = status < 300;
    if (this.#streamed && status < 300 && isStream(headers))
      this.#relay = streamRelay(this.#wire, this.#context, () => this.running as Exchange);
  }

  data(chunk: Buffer): void {
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
    if (this.#size > (this.#status < 300 ? MAX_ANSWER : MAX_ERROR))
      throw new UpstreamError(failure("protocol", "The provider's answer is too large."));
    this.#parts.push(chunk);
  }

  end(): void {
    this.#toll.whole = true;
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
    const wire = this.#wire;
    const status = this.#status;
    const headers = this.#headers;
    const { target, prepared } = this.#context;
    const body = joined(this.#parts);
    this.#parts = [];
    if (status >= 300) {
      const text = body.toString("utf8");
      return this.#sendAgain(status, text) ? null : this.#failed(wire.failure(status, headers, text, target), null);
    }
    try {
      const { body: answer, usage } = wire.read(body, this.#context);
      if (!this.#streamed) return { kind: "completion", body: answer, usage, notes: prepared.notes };
      const asked = this.#context.request.stream_options?.include_usage === true;
      return wholeAsStream(answer, usage, asked, this.#options.signal, prepared.notes);
    } catch (error) {
      return this.#failed(failureOf(error), error instanceof UpstreamError ? error.usage : null);
    }
  }

  #failed(problem: Failure, usage: TokenUsage | null): FailureOutcome {
    return { kind: "failure", failure: problem, usage, notes: this.#context.prepared.notes };
  }

  fail(problem: Failure): void {
    const relay = this.#relay;
    if (relay?.given) relay.fail(problem);
    else {
      this.#resolve(this.#failed(problem, this.#charged(problem)));
    }
  }

  // Of a stream that its provider ended with an error in place of the answer: what it has counted itself, as of an error's status.
  #charged(problem: Failure): TokenUsage | null {
    const relay = this.#relay;
    if (!relay) return this.#toll.of(problem, () => estimatePrompt(this.#context.request));
    const usage = relay.decoder.usage();
    return problem.upstreamStatus !== null && usage.estimated ? null : usage;
  }

  #give(relay: Relay): void {
    if (relay.given) return;
    relay.given = true;
    const { notes } = this.#context.prepared;
    this.#resolve({ kind: "stream", notes, pipe: relay.pipe });
  }
}

function isStream(headers: IncomingHttpHeaders): boolean {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  return !type.includes("json") && !type.startsWith("text/html");
}
