// Runs a Wire: sends its request, reads its answer, and turns both into one attempt's outcome. Streams resolve at their first content,
// so that a provider that fails before it has said anything can still be exchanged for another.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { isMagicError } from "#contract/errors.ts";
import { estimatePrompt } from "#daemon/gateway/format/estimate.ts";
import { errorEvent } from "#daemon/gateway/format/sse.ts";
import { strictProblem } from "#daemon/gateway/format/strict.ts";
import { noUsage, type TokenUsage, usageFromWire } from "#daemon/gateway/format/usage.ts";
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import { type Exchange, exchange, failureOf, type UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import { fetchImage } from "#daemon/gateway/upstream/image.ts";
import { systemClock } from "#shared/clock.ts";
import type {
  AttemptOptions,
  ChatCall,
  ChatOutcome,
  CompletionOutcome,
  EmbeddingCall,
  FailureOutcome,
  FrameSink,
  Provider,
  StreamEnd,
  Target,
} from "./adapter.ts";
import { parseAnswer, spliceCost } from "./cost.ts";
import { type Failure, failure, failureBody, UpstreamError } from "./failure.ts";
import { hintsLeftOut } from "./support.ts";
import type { Prepared, ReadContext, StreamDecoder, Wire } from "./wire.ts";

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
  return async (call, target, options) => {
    const checked = wire.passesThrough ? call : check(wire, call, target);
    if ("kind" in checked) return checked;
    let prepared: Prepared;
    try {
      const preparing = wire.prepare(checked, target, {
        fetchImage: (url) => fetchImage(images, url, options),
      });
      prepared = preparing instanceof Promise ? await preparing : preparing;
    } catch (error) {
      if (error instanceof UpstreamError || isMagicError(error)) return failed(failureOf(error));
      throw error;
    }
    const left = checked === call ? [] : Object.keys(call.request).filter((param) => !(param in checked.request));
    const dropped = [...left, ...hintsLeftOut(wire.kind, checked.request)];
    if (dropped.length > 0) {
      prepared = { ...prepared, notes: { ...prepared.notes, dropped: [...dropped, ...prepared.notes.dropped] } };
    }
    return attempt(wire, dispatcher, checked, target, prepared, options);
  };
}

// The request with what the provider lacks left out, or the refusal that names it.
function check(wire: Wire, call: ChatCall, target: Target): ChatCall | FailureOutcome {
  const problem = strictProblem(call.request);
  if (problem) return failed(failure("invalid", problem.detail, { param: problem.param }));
  const lacking = wire.unsupported(call.request, target.model);
  if (lacking.length === 0) return call;
  const drops = call.dropUnsupported || call.request.drop_unsupported === true;
  const blocked = lacking.find((one) => !(drops && one.droppable));
  if (blocked) {
    const message = `${target.provider} (${target.model}) does not support '${blocked.param}': ${blocked.reason}.${
      blocked.droppable ? " Leave it out, or set drop_unsupported." : ""
    }`;
    return failed(failure("invalid", message, { param: blocked.param, code: "unsupported_parameter" }));
  }
  const left = new Set(lacking.map((one) => one.param));
  if (left.has("logprobs")) left.add("top_logprobs");
  const request = Object.fromEntries(Object.entries(call.request).filter(([param]) => !left.has(param)));
  return { ...call, request: request as unknown as ChatCall["request"], raw: null };
}

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
    const { notes } = prepared;
    const streamed = call.request.stream === true;
    let status = 0;
    let headers: IncomingHttpHeaders = {};
    let parts: Buffer[] = [];
    let size = 0;
    let relay: Relay | null = null;
    const toll = createToll(() => estimatePrompt(call.request));

    const running: Exchange = exchange(
      dispatcher,
      withHeaders(prepared.request, target),
      {
        sent: toll.sent,
        head(code, fields) {
          status = code;
          headers = fields;
          toll.head(code);
          options.onHeaders?.(code);
          if (streamed && code < 300 && isStream(fields)) {
            relay = streamRelay(wire, context, () => running);
          }
        },
        data(chunk) {
          if (relay) {
            // Content that one read brings together with what breaks the stream is content all the same: nothing is tried again after it.
            try {
              relay.data(chunk);
            } finally {
              if (relay.decoder.started() || relay.decoder.finished()) settle();
            }
            return;
          }
          size += chunk.length;
          if (size > (status < 300 ? MAX_ANSWER : MAX_ERROR)) {
            throw Object.assign(new Error(), { failure: failure("protocol", "The provider's answer is too large.") });
          }
          parts.push(chunk);
        },
        end() {
          toll.whole();
          if (relay) {
            relay.end();
            return settle();
          }
          const body = joined(parts);
          parts = [];
          if (status >= 300) return resolve(failed(wire.failure(status, headers, body.toString("utf8"), target)));
          try {
            const read = wire.read(body, context);
            if (streamed) return resolve({ kind: "failure", failure: noStream, usage: read.usage });
            resolve({ kind: "completion", ...read, notes, upstreamId: upstreamId(headers) });
          } catch (error) {
            const usage = error instanceof UpstreamError ? error.usage : null;
            resolve({ kind: "failure", failure: failureOf(error), usage });
          }
        },
        fail(problem) {
          if (relay?.given) relay.fail(problem);
          else {
            resolve({ kind: "failure", failure: problem, usage: relay?.decoder.usage() ?? toll.of(problem) });
          }
        },
      },
      { signal: options.signal, timeoutMs: options.timeoutMs, maxBytes: streamed ? MAX_STREAM : MAX_ANSWER },
    );

    function settle(): void {
      if (!relay || relay.given) return;
      relay.given = true;
      resolve({ kind: "stream", notes, upstreamId: upstreamId(headers), pipe: relay.pipe });
    }
  });
}

/** What an attempt that broke off has cost all the same. */
interface Toll {
  sent(): void;
  head(status: number): void;
  whole(): void;
  of(problem: Failure): TokenUsage | null;
}

// Whoever hangs up before the answer, or has no more time for it, has had the prompt read all the same, and so has whom an answer breaks
// off on its way: else a budget could be evaded by leaving, or by asking for more than the time allows. A connection that breaks before any
// answer tells nothing.
function createToll(promptTokens: () => number): Toll {
  let sent = false;
  let answering = false;
  let whole = false;
  return {
    sent() {
      sent = true;
    },
    head(status) {
      answering = status < 300;
    },
    whole() {
      whole = true;
    },
    of({ kind }) {
      const waited = kind === "aborted" || kind === "timeout";
      if (!sent || whole || !(waited || answering)) return null;
      return { ...noUsage, input: promptTokens(), estimated: true };
    },
  };
}

/** Between a decoder and the sink: holds frames until somebody listens, then passes them on with back-pressure. */
interface Relay {
  readonly decoder: StreamDecoder;
  /** True once the outcome was given out: from then on failures go into the stream. */
  given: boolean;
  data(chunk: Buffer): void;
  end(): void;
  fail(problem: Failure): void;
  pipe(sink: FrameSink): Promise<StreamEnd>;
}

function streamRelay(wire: Wire, context: ReadContext, running: () => Exchange): Relay {
  let held: (Uint8Array | string)[] = [];
  let sink: FrameSink | null = null;
  let ended: StreamEnd | null = null;
  let resolveEnd: ((end: StreamEnd) => void) | null = null;
  let full = false;

  const decoder = wire.decoder(context, (frame) => {
    if (!sink) held.push(frame);
    else if (!sink.write(frame)) full = true;
  });

  function afterPush(): void {
    if (decoder.finished()) {
      running().finish();
      finish({ result: "completed", usage: decoder.usage(), failure: null });
      return;
    }
    if (!full || !sink) return;
    full = false;
    running().pause();
    void sink.drained().then(() => running().resume());
  }

  function finish(end: StreamEnd): void {
    ended ??= end;
    if (sink) resolveEnd?.(ended);
  }

  const relay: Relay = {
    decoder,
    given: false,
    data(chunk) {
      decoder.push(chunk);
      afterPush();
    },
    end() {
      decoder.end();
      finish({ result: "completed", usage: decoder.usage(), failure: null });
    },
    fail(problem) {
      if (problem.kind !== "aborted") {
        const frame = errorEvent(failureBody(problem));
        if (sink) sink.write(frame);
        else held.push(frame);
      }
      const result = problem.kind === "aborted" ? "aborted" : "failed";
      finish({ result, usage: decoder.usage(), failure: problem });
    },
    async pipe(to) {
      const frames = held;
      held = [];
      for (const frame of frames) to.write(frame);
      sink = to;
      if (ended) return ended;
      return new Promise((resolve) => {
        resolveEnd = resolve;
      });
    },
  };
  return relay;
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

// A whole answer where a stream was asked for, by a server that cannot stream: it has been charged. An error in its place tells itself.
const noStream = failure("protocol", "The provider answered a streamed request with something that is no stream.", {
  upstreamStatus: 200,
});

function upstreamId(headers: IncomingHttpHeaders): string | null {
  const id =
    headers["x-request-id"] ?? headers["request-id"] ?? headers["x-amzn-requestid"] ?? headers["apim-request-id"];
  return typeof id === "string" ? id.slice(0, 200) : null;
}

function embedOver(wire: Wire, dispatcher: Dispatcher) {
  return (call: EmbeddingCall, target: Target, options: AttemptOptions) =>
    new Promise<CompletionOutcome | FailureOutcome>((resolve) => {
      const prepare = wire.prepareEmbedding;
      if (!prepare) return resolve(failed(failure("invalid", `${target.provider} has no embeddings.`)));
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      const parts: Buffer[] = [];
      const toll = createToll(() => estimateEmbeddingTokens(call.request.input));
      const reader = {
        sent: toll.sent,
        head(code: number, fields: IncomingHttpHeaders) {
          status = code;
          headers = fields;
          toll.head(code);
          options.onHeaders?.(code);
        },
        data: (chunk: Buffer) => void parts.push(chunk),
        end() {
          toll.whole();
          const body = joined(parts);
          if (status >= 300) {
            const text = body.toString("utf8", 0, MAX_ERROR);
            return resolve(failed(wire.failure(status, headers, text, target)));
          }
          const parsed = parseAnswer(body);
          if (!Array.isArray(parsed["data"]))
            return resolve(failed(wire.failure(502, headers, body.toString("utf8", 0, MAX_ERROR), target)));
          const counted = usageFromWire(parsed["usage"]);
          const usage = counted ?? { ...noUsage, input: estimateEmbeddingTokens(call.request.input), estimated: true };
          const cost = options.cost(usage);
          const priced = counted ? (spliceCost(body, cost) ?? body) : withUsage(parsed, usage.input, cost);
          resolve({ kind: "completion", body: priced, usage, notes: { dropped: [] }, upstreamId: upstreamId(headers) });
        },
        fail: (problem: Failure) => resolve({ kind: "failure", failure: problem, usage: toll.of(problem) }),
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
