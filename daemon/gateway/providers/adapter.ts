// What a provider is to the gateway. The pipeline drives `Provider` (one attempt at a time, no retries inside); an HTTP provider
// is written as a `Wire` (pure: request out, answer in) and becomes a Provider through `providers/http/provider.ts`.
// Adding one: its name in `providerTypes` of the contract, a folder here; the compiler then names what it lacks.
import type { providerTypes } from "#contract/project-gateway.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import type { AbortNotice } from "#shared/abort.ts";
import type { Failure } from "./failure.ts";

/** Which wire a provider of magic.yaml speaks. */
export type ProviderKind = (typeof providerTypes)[number];

/** One configured provider and the model asked of it. Credentials are resolved; the object is never logged. */
export interface Target {
  /** The name under `gateway.providers`. */
  readonly provider: string;
  readonly kind: ProviderKind;
  /** What follows `provider/`, verbatim. */
  readonly model: string;
  /** As configured or the vendor's own; without trailing slash. Null for the sandbox. */
  readonly baseUrl: string | null;
  readonly credentials: Credentials;
  /** More request headers, lower-case names: what magic.yaml adds, OpenAI's organization and project. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The model's largest answer where known: the default of `max_tokens` where the wire demands one. */
  readonly maxOutputTokens?: number | undefined;
  /** Seed of the sandbox provider. */
  readonly seed?: number | undefined;
}

export interface Credentials {
  readonly apiKey?: string | undefined;
  readonly region?: string | undefined;
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly sessionToken?: string | undefined;
}

/** One client request, the same for all its attempts. */
export interface ChatCall {
  readonly request: ChatRequest;
  /** The body as it came; forwarded with only `model` exchanged where nothing else changes. Null for in-process callers. */
  readonly raw: Buffer | null;
  readonly requestId: string;
  /** Drop what the provider does not support, instead of 400. */
  readonly dropUnsupported: boolean;
  /** The end user as the token names it; wins over the body's `user`. Null: the body's. */
  readonly user: string | null;
  /** Who calls: what a provider wants back from earlier answers is remembered for each by itself. */
  readonly caller: string;
  /** W3C trace context to pass on. */
  readonly traceparent?: string | undefined;
}

/** A parameter that the provider cannot honour. */
export interface Unsupported {
  /** A path such as `n`, `response_format`, `messages[2].content[0].input_audio`. */
  readonly param: string;
  /** Why, in words for the caller. */
  readonly reason: string;
  /** False where leaving it out would change the meaning of the request (an image, audio): never dropped. */
  readonly droppable: boolean;
  /** Only policies pass over it: where its model was asked for by name, the vendor is left to judge. */
  readonly leftToVendor?: true;
  /** What goes in its place where it is left out. */
  readonly instead?: unknown;
}

/** What the gateway says about an answer in its headers. */
export interface Notes {
  /** Parameters left out because `drop_unsupported` is set. */
  readonly dropped: readonly string[];
  /** How a JSON schema is kept: by the provider, or by us with a forced tool or an instruction. */
  readonly responseFormat?: "native" | "emulated" | undefined;
}

export interface AttemptOptions {
  /** Aborts the upstream call; its reason is not shown. */
  readonly signal: AbortNotice;
  /** Milliseconds that the headers may take, and every silence after them. */
  readonly timeoutMs: number;
  /**
   * Called once, when the usage is known and before it is written out: the `cost_usd` for the body or usage chunk (null: unknown;
   * undefined: leave it out).
   */
  readonly cost: (usage: TokenUsage) => number | null | undefined;
}

/** Where a stream's bytes go: complete SSE events, in order. */
export interface FrameSink {
  /** False asks for a pause until `drained` resolves. */
  write(frame: Uint8Array | string): boolean;
  /** Resolves when there is room again, or nobody listens any more. */
  drained(): Promise<void>;
}

/** How a stream ended. After `completed`, `data: [DONE]` was the last frame; after `failed`, an error event was. */
export interface StreamEnd {
  readonly result: "completed" | "failed" | "aborted";
  /** From the provider; estimated from what came where it gave none. */
  readonly usage: TokenUsage;
  readonly failure: Failure | null;
}

/** JSON: its UTF-8, or a text of nothing but ASCII, which goes out as it is. */
export type WholeBody = Buffer | string;

export interface CompletionOutcome {
  readonly kind: "completion";
  /** `usage.cost_usd` in place. */
  readonly body: WholeBody;
  readonly usage: TokenUsage;
  readonly notes: Notes;
}

/** The first content has come, or a clean end without any: from here on another attempt is out of the question. */
export interface StreamOutcome {
  readonly kind: "stream";
  readonly notes: Notes;
  /** Delivers everything; call it once, at once. Never rejects. */
  pipe(sink: FrameSink): Promise<StreamEnd>;
}

export interface FailureOutcome {
  readonly kind: "failure";
  readonly failure: Failure;
  /** What the provider says it charged although it failed, if so. */
  readonly usage: TokenUsage | null;
  /** Of a request that was sent. */
  readonly notes?: Notes;
}

export type ChatOutcome = CompletionOutcome | StreamOutcome | FailureOutcome;

export interface EmbeddingCall {
  readonly request: EmbeddingRequest;
  readonly raw: Buffer | null;
  readonly requestId: string;
  readonly user: string | null;
}

/** OpenAI's embeddings request after validation. */
export interface EmbeddingRequest {
  readonly model?: string | null;
  readonly input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  readonly encoding_format?: "float" | "base64" | null;
  readonly dimensions?: number | null;
  readonly user?: string | null;
  /** The gateway's own word, of chats: nothing of a request to embed is left out. Never forwarded. */
  readonly drop_unsupported?: unknown;
}

/** What the pipeline drives. Never throws for what an upstream does: that is a FailureOutcome. */
export interface Provider {
  readonly kind: ProviderKind;
  /** What this provider cannot do of this request: for `route explain`, for the choice of a candidate, and for the 400. */
  unsupported(request: ChatRequest, model: string): readonly Unsupported[];
  /** What `chat` would refuse by itself, for explanations: nothing is sent, and no image fetched. Null for what would be sent. */
  refusal?(call: ChatCall, target: Target): Promise<Failure | null>;
  /** The `max_tokens` that would be sent, where that is more than what the request and the model's own limit say. */
  longestAnswer?(request: ChatRequest, target: Target): number;
  /**
   * One attempt: one upstream request, and one more for each refusal that its wire knows a way around. Resolves at the whole completion or at the
   * stream's first content.
   */
  chat(call: ChatCall, target: Target, options: AttemptOptions): Promise<ChatOutcome>;
  /** Undefined where the provider's wire is not OpenAI's. */
  embed?(call: EmbeddingCall, target: Target, options: AttemptOptions): Promise<ChatOutcome>;
}
