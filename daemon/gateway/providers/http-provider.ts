// Runs a Wire: sends its request, reads its answer, and turns both into one attempt's outcome. Streams resolve at their first content,
// so that a provider that fails before it has said anything can still be exchanged for another.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { isMagicError } from "#contract/errors.ts";
import { estimatePrompt } from "#daemon/gateway/format/estimate.ts";
import { strictProblem } from "#daemon/gateway/format/strict.ts";
import { noUsage, type TokenUsage, usageFromWire } from "#daemon/gateway/format/usage.ts";
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import {
  type Exchange,
  type ExchangeOptions,
  type ExchangeReader,
  exchange,
  failureOf,
  type UpstreamRequest,
} from "#daemon/gateway/upstream/exchange.ts";
import { imageFetcher } from "#daemon/gateway/upstream/image.ts";
import { systemClock } from "#shared/clock.ts";
import type {
  AttemptOptions,
  ChatCall,
  ChatOutcome,
  CompletionOutcome,
  EmbeddingCall,
  FailureOutcome,
  Provider,
  Target,
} from "./adapter.ts";
import { type Checked, checkCall } from "./check.ts";
import { readAnswer, spliceCost } from "./cost.ts";
import { type Failure, failure, UpstreamError } from "./failure.ts";
import { type Relay, streamRelay } from "./relay.ts";
import { hintsLeftOut } from "./support.ts";
import { wholeAsStream } from "./whole-stream.ts";
import type { Prepared, ReadContext, Wire } from "./wire.ts";

/** Decoded bytes of a whole answer, of an error's body, of a stream. */
const MAX_ANSWER = 64 * 1024 * 1024;
const MAX_EMBEDDINGS = 256 * 1024 * 1024;
const MAX_ERROR = 256 * 1024;
const MAX_STREAM = 1024 * 1024 * 1024;

/** `images`: the way to what callers name, beside the one to the provider. */
export function httpProvider(wire: Wire, dispatcher: Dispatcher, images = dispatcher): Provider {
  // A request that is not even valid is refused as such, when its turn comes.
  const unsupported: Provider["unsupported"] = (request, model) =>
    wire.passesThrough || strictProblem(request) ? [] : wire.unsupported(request, model);
  const { kind, longestAnswer } = wire;
  const base = { kind, unsupported, chat: chatOver(wire, dispatcher, images), ...(longestAnswer && { longestAnswer }) };
  return wire.prepareEmbedding ? { ...base, embed: embedOver(wire, dispatcher) } : base;
}

function chatOver(wire: Wire, dispatcher: Dispatcher, images: Dispatcher): Provider["chat"] {
  // No promise of its own where the wire needs none: every call comes through here.
  return (call, target, options) => {
    const checked = wire.passesThrough ? { call, dropped: none } : checkCall(call, target, wire.unsupported);
    if ("kind" in checked) return Promise.resolve(checked);
    const send = (prepared: Prepared) =>
      attempt(wire, dispatcher, checked.call, target, withHints(wire, checked, prepared), options);
    let preparing: Prepared | Promise<Prepared>;
    try {
      preparing = wire.prepare(checked.call, target, { fetchImage: imageFetcher(images, options) });
    } catch (error) {
      return Promise.resolve(unprepared(error));
    }
    return preparing instanceof Promise ? preparing.then(send, unprepared) : send(preparing);
  };
}

// Refusals are outcomes; a fault of our own is thrown on.
function unprepared(error: unknown): FailureOutcome {
  if (error instanceof UpstreamError || isMagicError(error)) return failed(failureOf(error));
  throw error;
}

// What was left out of the request is noted.
function withHints(wire: Wire, { call, dropped }: Checked, prepared: Prepared): Prepared {
  const hints = hintsLeftOut(wire.kind, call.request);
  if (dropped.length === 0 && hints.length === 0) return prepared;
  return { ...prepared, notes: { ...prepared.notes, dropped: [...dropped, ...hints, ...prepared.notes.dropped] } };
}

const none: readonly string[] = [];

// Headers of magic.yaml; the wire's own win.
function withHeaders(request: UpstreamRequest, { headers }: Target): UpstreamRequest {
  return headers ? { ...request, headers: { ...headers, ...request.headers } } : request;
}

function failed(problem: Failure): FailureOutcome {
  return { kind: "failure", failure: problem, usage: null };
}

function attempt(
  wire: Wire,
  dispatcher: Dispatcher,
  call: ChatCall,
  target: Target,
  prepared: Prepared,
  options: AttemptOptions,
): Promise<ChatOutcome> {
  return new Promise((resolve) => {
    const context: ReadContext = {
      request: call.request,
      requestId: call.requestId,
      caller: call.caller,
      target,
      prepared,
      created: Math.floor(systemClock.now() / 1000),
      cost: options.cost,
    };
    const { signal, timeoutMs } = options;
    const limits = { signal, timeoutMs, maxBytes: call.request.stream === true ? MAX_STREAM : MAX_ANSWER };
    const startedAt = systemClock.monotonic();
    const send = (request: UpstreamRequest, reader: AnswerReader, within: ExchangeOptions): void => {
      reader.running = exchange(dispatcher, withHeaders(request, target), reader, within);
    };
    const sendAgain = (status: number, body: string): boolean => {
      const again = wire.relent?.(status, body, call, target, prepared.request);
      if (!again) return false;
      const give = (outcome: ChatOutcome): void => {
        if (outcome.kind !== "failure") again.worked();
        resolve(outcome);
      };
      const go = (request: UpstreamRequest): void => {
        const left = { ...limits, spentMs: systemClock.monotonic() - startedAt };
        send(request, new AnswerReader(wire, context, options, give, () => false), left);
      };
      if (again.request instanceof Promise) again.request.then(go, (error) => give(failed(failureOf(error))));
      else go(again.request);
      return true;
    };
    send(prepared.request, new AnswerReader(wire, context, options, resolve, sendAgain), limits);
  });
}

// Reads one answer of a chat, whole or streamed, into the attempt's outcome.
class AnswerReader implements ExchangeReader {
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
      throw Object.assign(new Error(), { failure: failure("protocol", "The provider's answer is too large.") });
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

// What an attempt that broke off has cost all the same. Whoever hangs up before the answer, or has no more time for it, has had the prompt
// read, and so has whom an answer breaks off on its way: else a budget could be evaded by leaving, or by asking for more than the time
// allows. A connection that breaks before any answer tells nothing.
class Toll {
  sent = false;
  answering = false;
  whole = false;

  of({ kind }: Failure, promptTokens: () => number): TokenUsage | null {
    const waited = kind === "aborted" || kind === "timeout";
    if (!this.sent || this.whole || !(waited || this.answering)) return null;
    return { ...noUsage, input: promptTokens(), estimated: true };
  }
}

const BYTE_ORDER_MARK = Buffer.from("\ufeff");

// RFC 8259, 8.1: a byte order mark before JSON may be passed over.
function joined(parts: readonly Buffer[]): Buffer {
  const body = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  return body.subarray(0, 3).equals(BYTE_ORDER_MARK) ? body.subarray(3) : body;
}

function isStream(headers: IncomingHttpHeaders): boolean {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  return !type.includes("json") && !type.startsWith("text/html");
}

function embedOver(wire: Wire, dispatcher: Dispatcher) {
  return (call: EmbeddingCall, target: Target, options: AttemptOptions) =>
    new Promise<CompletionOutcome | FailureOutcome>((resolve) => {
      const prepare = wire.prepareEmbedding;
      if (!prepare) return resolve(failed(failure("invalid", `${target.provider} has no embeddings.`)));
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      const parts: Buffer[] = [];
      const toll = new Toll();
      const reader = {
        sent() {
          toll.sent = true;
        },
        head(code: number, fields: IncomingHttpHeaders) {
          status = code;
          headers = fields;
          toll.answering = code < 300;
        },
        data: (chunk: Buffer) => void parts.push(chunk),
        end() {
          toll.whole = true;
          const body = joined(parts);
          if (status >= 300) {
            const text = body.toString("utf8", 0, MAX_ERROR);
            return resolve(failed(wire.failure(status, headers, text, target)));
          }
          const parsed = readAnswer(body);
          const { answer } = parsed;
          if (!Array.isArray(answer["data"]))
            return resolve(failed(wire.failure(502, headers, body.toString("utf8", 0, MAX_ERROR), target)));
          const counted = usageFromWire({ completion_tokens: 0, ...(answer["usage"] as object | null | undefined) });
          const usage = counted ?? { ...noUsage, input: estimateEmbeddingTokens(call.request.input), estimated: true };
          const cost = options.cost(usage);
          const priced = counted ? (spliceCost(parsed, cost) ?? body) : withUsage(answer, usage.input, cost);
          resolve({ kind: "completion", body: priced, usage, notes: { dropped: [] } });
        },
        fail(problem: Failure) {
          const usage = toll.of(problem, () => estimateEmbeddingTokens(call.request.input));
          resolve({ kind: "failure", failure: problem, usage });
        },
      };
      const limits = { signal: options.signal, timeoutMs: options.timeoutMs, maxBytes: MAX_EMBEDDINGS };
      exchange(dispatcher, withHeaders(prepare(call, target), target), reader, limits);
    });
}

// Embeddings of a server that counts nothing: the specification wants a usage, and whoever pays wants to know.
function withUsage(answer: object, tokens: number, cost: number | null | undefined): Buffer {
  const usage = { prompt_tokens: tokens, total_tokens: tokens, ...(cost === undefined ? {} : { cost_usd: cost }) };
  return Buffer.from(JSON.stringify({ ...answer, usage }));
}
