// OpenAI's chat completion request as TypeScript sees it after validation (format/validate.ts). Types only.
// Null stands for absent wherever OpenAI's specification says "nullable".

/** Up to here the provider may cache the prompt. */
export interface CacheBreakpoint {
  readonly prompt_cache_breakpoint?: { readonly mode: "explicit" };
}

export interface TextPart extends CacheBreakpoint {
  readonly type: "text";
  readonly text: string;
}

export interface ImagePart extends CacheBreakpoint {
  readonly type: "image_url";
  readonly image_url: { readonly url: string; readonly detail?: "auto" | "low" | "high" | "original" };
}

export interface AudioPart {
  readonly type: "input_audio";
  readonly input_audio: { readonly data: string; readonly format: "wav" | "mp3" };
}

export interface FilePart extends CacheBreakpoint {
  readonly type: "file";
  readonly file: { readonly filename?: string; readonly file_data?: string; readonly file_id?: string };
}

export interface RefusalPart {
  readonly type: "refusal";
  readonly refusal: string;
}

export type ContentPart = TextPart | ImagePart | AudioPart | FilePart | RefusalPart;
export type Content = string | readonly ContentPart[];

export interface FunctionToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
  /** Not OpenAI's: Google's, where its thought signature comes back. Unchecked. */
  readonly extra_content?: unknown;
}

export interface CustomToolCall {
  readonly id: string;
  readonly type: "custom";
  readonly custom: { readonly name: string; readonly input: string };
}

export interface SystemMessage {
  readonly role: "system" | "developer";
  readonly content: Content;
  readonly name?: string;
}

export interface UserMessage {
  readonly role: "user";
  readonly content: Content;
  readonly name?: string;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content?: Content | null;
  readonly refusal?: string | null;
  readonly name?: string;
  readonly audio?: { readonly id: string } | null;
  readonly tool_calls?: readonly (FunctionToolCall | CustomToolCall)[] | null;
  readonly function_call?: { readonly name: string; readonly arguments: string } | null;
  /** Not OpenAI's: what this gateway and others give out for thinking; sent back by some clients. */
  readonly reasoning_content?: string | null;
  /** What some servers call it. */
  readonly reasoning?: unknown;
  /** Not OpenAI's either: signed thinking, as this gateway gave it out. Unchecked. */
  readonly reasoning_details?: unknown;
  readonly extra_content?: unknown;
  readonly images?: unknown;
}

export interface ToolMessage {
  readonly role: "tool";
  readonly content: Content;
  readonly tool_call_id: string;
}

/** The deprecated answer to `function_call`. */
export interface FunctionMessage {
  readonly role: "function";
  readonly content: string | null;
  readonly name: string;
}

export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage;

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface FunctionDefinition {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  readonly strict?: boolean | null;
}

export interface FunctionTool {
  readonly type: "function";
  readonly function: FunctionDefinition;
}

export interface CustomTool {
  readonly type: "custom";
  readonly custom: { readonly name: string; readonly description?: string; readonly format?: unknown };
}

export type ToolChoice =
  | "none"
  | "auto"
  | "required"
  | { readonly type: "function"; readonly function: { readonly name: string } }
  | { readonly type: "custom"; readonly custom: { readonly name: string } }
  | {
      readonly type: "allowed_tools";
      readonly allowed_tools: { readonly mode: "auto" | "required"; readonly tools: readonly JsonSchema[] };
    };

export type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly json_schema: {
        readonly name: string;
        readonly description?: string | null;
        readonly schema?: JsonSchema | null;
        readonly strict?: boolean | null;
      };
    };

export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

export interface ChatRequest {
  readonly model?: string | null;
  readonly messages: readonly Message[];
  readonly stream?: boolean | null;
  readonly stream_options?: { readonly include_usage?: boolean; readonly include_obfuscation?: boolean } | null;
  readonly tools?: readonly (FunctionTool | CustomTool)[] | null;
  readonly tool_choice?: ToolChoice | null;
  readonly parallel_tool_calls?: boolean | null;
  readonly functions?: readonly FunctionDefinition[] | null;
  readonly function_call?: "none" | "auto" | { readonly name: string } | null;
  readonly response_format?: ResponseFormat | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly n?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly seed?: number | null;
  readonly logprobs?: boolean | null;
  readonly top_logprobs?: number | null;
  readonly logit_bias?: Readonly<Record<string, number>> | null;
  readonly presence_penalty?: number | null;
  readonly frequency_penalty?: number | null;
  readonly reasoning_effort?: ReasoningEffort | null;
  readonly verbosity?: "low" | "medium" | "high" | null;
  readonly modalities?: readonly ("text" | "audio")[] | null;
  readonly audio?: unknown;
  readonly prediction?: unknown;
  readonly web_search_options?: unknown;
  readonly moderation?: unknown;
  readonly user?: string | null;
  readonly safety_identifier?: string | null;
  readonly prompt_cache_key?: string | null;
  readonly prompt_cache_retention?: string | null;
  readonly prompt_cache_options?: unknown;
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly store?: boolean | null;
  readonly service_tier?: string | null;
  /** Not OpenAI's: leave out what the provider lacks, instead of refusing. Never forwarded. */
  readonly drop_unsupported?: boolean | null;
}
