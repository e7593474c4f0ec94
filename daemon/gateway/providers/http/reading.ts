// How the answers to one call are read, however often it is sent: a chat's, whole or streamed, and those to texts to embed.
import { estimatePrompt } from "#daemon/gateway/format/estimate.ts";
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import type { Exchange } from "#daemon/gateway/upstream/exchange.ts";
import { systemClock } from "#shared/clock.ts";
import type { AttemptOptions, ChatCall, ChatOutcome, EmbeddingCall, Notes, Target } from "../adapter.ts";
import { wholeAsStream } from "../whole-stream.ts";
import type { EmbeddingWire, Prepared, ReadContext, Wire } from "../wire.ts";
import { type Relay, streamRelay } from "./relay.ts";

/** Decoded bytes. */
const MAX_ANSWER = 64 * 1024 * 1024;
const MAX_EMBEDDINGS = 256 * 1024 * 1024;
const MAX_STREAM = 1024 * 1024 * 1024;

export interface Reading {
  readonly wire: Pick<Wire, "failure">;
  readonly target: Target;
  readonly notes: Notes;
  /** Decoded bytes that may come in all, and of a whole answer. */
  readonly maxBytes: number;
  readonly maxAnswer: number;
  /** An estimate. */
  promptTokens(): number;
  /** Null where no stream was asked for. */
  relay(running: () => Exchange): Relay | null;
  /** Throws UpstreamError. */
  whole(body: Buffer): ChatOutcome;
}

// Classes, as every call makes one: methods that all of them share cost nothing to make.
export class ChatReading implements Reading {
  readonly wire: Wire;
  readonly target: Target;
  readonly notes: Notes;
  readonly maxBytes: number;
  readonly maxAnswer = MAX_ANSWER;
  readonly #context: ReadContext;
  readonly #signal: AttemptOptions["signal"];

  constructor(wire: Wire, call: ChatCall, target: Target, prepared: Prepared, { cost, signal }: AttemptOptions) {
    const { request, requestId, caller } = call;
    this.wire = wire;
    this.target = target;
    this.notes = prepared.notes;
    this.maxBytes = request.stream === true ? MAX_STREAM : MAX_ANSWER;
    const created = Math.floor(systemClock.now() / 1000);
    this.#context = { request, requestId, caller, target, prepared, created, cost };
    this.#signal = signal;
  }

  promptTokens(): number {
    return estimatePrompt(this.#context.request);
  }

  relay(running: () => Exchange): Relay | null {
    return this.#context.request.stream === true ? streamRelay(this.wire, this.#context, running) : null;
  }

  whole(answer: Buffer): ChatOutcome {
    const { notes } = this;
    const { stream, stream_options: options } = this.#context.request;
    const { body, usage } = this.wire.read(answer, this.#context);
    if (stream !== true) return { kind: "completion", body, usage, notes };
    return wholeAsStream(body, usage, options?.include_usage === true, this.#signal, notes);
  }
}

export class EmbeddingReading implements Reading {
  readonly wire: Pick<Wire, "failure">;
  readonly target: Target;
  readonly notes = { dropped: [] };
  readonly maxBytes = MAX_EMBEDDINGS;
  readonly maxAnswer = MAX_EMBEDDINGS;
  readonly #read: (body: Buffer) => ReturnType<EmbeddingWire["read"]>;
  readonly #call: EmbeddingCall;

  constructor(wire: Wire, embedding: EmbeddingWire, call: EmbeddingCall, target: Target, { cost }: AttemptOptions) {
    this.wire = wire;
    this.target = target;
    this.#call = call;
    this.#read = (body) => embedding.read(body, call, target, cost);
  }

  promptTokens(): number {
    return estimateEmbeddingTokens(this.#call.request.input);
  }

  relay(): null {
    return null;
  }

  whole(answer: Buffer): ChatOutcome {
    return { kind: "completion", ...this.#read(answer), notes: this.notes };
  }
}
