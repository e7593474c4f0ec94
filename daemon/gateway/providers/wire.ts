// What an HTTP provider supplies: how a request becomes its wire's, and how its answers are read. Pure: no sockets, no clocks.
// `http/` runs it.
import type { IncomingHttpHeaders } from "node:http";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import type { UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import type { ChatCall, EmbeddingCall, Notes, ProviderKind, Target, Unsupported, WholeBody } from "./adapter.ts";
import type { MemberNames } from "./anthropic/member-names.ts";
import type { Failure } from "./failure.ts";

/** A request ready to be sent. */
export interface Asked {
  readonly request: UpstreamRequest;
  readonly relent?: Relent | undefined;
}

/** The request as it is worth sending once more after this refusal, which was for the way in which the gateway itself had asked. */
export type Relent = (status: number, body: string) => Relented | null;

/** The same request without what was refused, of which something else may be refused in its turn. */
export interface Relented {
  readonly request: UpstreamRequest | Promise<UpstreamRequest>;
  readonly relent?: Relent | undefined;
  /** It was not refused. */
  worked(): void;
}

/** A request, and what its answer's reader must know of it. */
export interface Prepared extends Asked {
  readonly notes: Notes;
  /** The tool whose input stands for the answer where a JSON schema is emulated. */
  readonly jsonTool?: string | undefined;
  /** Of tools that go under other names, their own by those. */
  readonly toolNames?: ReadonlyMap<string, string> | undefined;
  /** Members of tools that go under other names than their own. */
  readonly memberNames?: MemberNames | undefined;
}

/** What a reader of answers is given. */
export interface ReadContext {
  readonly request: ChatRequest;
  readonly requestId: string;
  readonly caller: string;
  readonly target: Target;
  readonly prepared: Prepared;
  /** Unix seconds, for wires that do not say when. */
  readonly created: number;
  readonly cost: (usage: TokenUsage) => number | null | undefined;
}

/** Reads a streamed answer and gives out OpenAI's events. */
// Methods, not getters: an object literal with a getter gets a hidden class of its own each time, and that holds the call in old memory.
export interface StreamDecoder {
  /** Takes bytes as they come, split anywhere. Throws UpstreamError for errors in the stream and for what is no answer. */
  push(chunk: Buffer): void;
  /** The bytes have ended. Throws UpstreamError (`truncated`) where the end mark is missing. */
  end(): void;
  /** True from the first content on: text, reasoning, a tool call, a finish reason. */
  started(): boolean;
  /** True once `[DONE]` was given out. */
  finished(): boolean;
  /** So far; an estimate where the wire has not said yet. */
  usage(): TokenUsage;
}

export type Emit = (frame: Uint8Array | string) => void;

export interface Wire {
  readonly kind: ProviderKind;
  /** What the wire cannot say of this request; the provider asks only where it does not pass through. */
  unsupported(request: ChatRequest, model: string): readonly Unsupported[];
  /** Tokens that an answer may have at most, thinking included, where the wire sets that itself. */
  longestAnswer?(request: ChatRequest, target: Target): number;
  /** True where the wire is OpenAI's own: the vendor judges what the request may hold. */
  readonly passesThrough: boolean;
  /** Throws UpstreamError (`invalid`) for what cannot be translated. `fetchImage` goes out behind the egress guard. */
  prepare(call: ChatCall, target: Target, io: WireIo): Prepared | Promise<Prepared>;
  /** Reads a whole answer with a 2xx status. Throws UpstreamError. */
  read(body: Buffer, context: ReadContext): { readonly body: WholeBody; readonly usage: TokenUsage };
  /** Reads one streamed answer with a 2xx status; its events go to `emit`. */
  decoder(context: ReadContext, emit: Emit): StreamDecoder;
  /** Reads an answer with another status. */
  failure(status: number, headers: IncomingHttpHeaders, body: string, target: Target): Failure;
  readonly embeddings?: EmbeddingWire;
}

export interface EmbeddingWire {
  prepare(call: EmbeddingCall, target: Target): Asked;
  /** Reads an answer with a 2xx status. Throws UpstreamError. */
  read(
    body: Buffer,
    call: EmbeddingCall,
    target: Target,
    cost: ReadContext["cost"],
  ): { readonly body: WholeBody; readonly usage: TokenUsage };
}

export interface WireIo {
  /** Bytes and media type of an image's URL, which stands at `param` of the request. Throws UpstreamError (`invalid`). */
  fetchImage(url: string, param: string): Promise<{ readonly mediaType: string; readonly data: Buffer }>;
}
