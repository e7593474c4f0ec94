// OpenAI's chat completion and its stream's chunks, as this gateway gives them out. Types only; usage is in usage.ts.
// `reasoning_content`, `reasoning_details`, `extra_content`, `images` and `usage.cost_usd` are additions that the specification's open objects allow.
import type { ShownTier, WireUsage } from "./usage.ts";

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "function_call";

/** A block of thinking that its provider wants back unchanged; the form is OpenRouter's. */
export type ReasoningDetail = { readonly format: string; readonly index: number } & (
  | { readonly type: "reasoning.text"; readonly text: string; readonly signature: string }
  | { readonly type: "reasoning.encrypted"; readonly data: string }
);

/** What belongs to one vendor; the form is Google's own, in its OpenAI-compatible API. */
export interface ExtraContent {
  readonly google: { readonly thought_signature: string };
}

/** An image that the model drew, as a data URL; the form is OpenRouter's and LiteLLM's. */
export interface DrawnImage {
  readonly type: "image_url";
  readonly image_url: { readonly url: string };
  readonly index: number;
  readonly extra_content?: ExtraContent;
}

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
  readonly extra_content?: ExtraContent;
}

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
  readonly top_logprobs: readonly Omit<TokenLogprob, "top_logprobs">[];
}

export interface Logprobs {
  readonly content: readonly TokenLogprob[] | null;
  readonly refusal: readonly TokenLogprob[] | null;
}

export interface UrlCitation {
  readonly type: "url_citation";
  readonly url_citation: {
    readonly start_index: number;
    readonly end_index: number;
    readonly url: string;
    readonly title: string;
  };
}

export interface AnswerMessage {
  readonly role: "assistant";
  readonly content: string | null;
  readonly refusal: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly extra_content?: ExtraContent;
  readonly images?: readonly DrawnImage[];
  readonly annotations?: readonly UrlCitation[];
  readonly tool_calls?: readonly ToolCall[];
  readonly function_call?: { readonly name: string; readonly arguments: string };
}

export interface Choice {
  readonly index: number;
  readonly message: AnswerMessage;
  readonly logprobs: Logprobs | null;
  readonly finish_reason: FinishReason;
}

export interface ChatCompletion {
  readonly id: string;
  readonly object: "chat.completion";
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
  readonly choices: readonly Choice[];
  readonly usage: WireUsage;
  /** On which tier it was served, where the provider says so. */
  readonly service_tier?: ShownTier;
  readonly system_fingerprint?: string;
}

export interface ToolCallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: "function";
  readonly function?: { readonly name?: string; readonly arguments?: string };
  readonly extra_content?: ExtraContent;
}

export interface Delta {
  readonly role?: "assistant";
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly extra_content?: ExtraContent;
  readonly images?: readonly DrawnImage[];
  readonly tool_calls?: readonly ToolCallDelta[];
  readonly function_call?: { readonly name?: string; readonly arguments?: string };
}

export interface ChunkChoice {
  readonly index: number;
  readonly delta: Delta;
  readonly logprobs: Logprobs | null;
  readonly finish_reason: FinishReason | null;
}

export interface ChatChunk {
  readonly id: string;
  readonly object: "chat.completion.chunk";
  readonly created: number;
  readonly model: string;
  readonly choices: readonly ChunkChoice[];
  readonly service_tier?: ShownTier;
  readonly usage?: WireUsage | null;
}
