// The request as a handler sees it. Every power refuses with `capability_denied` when the contract does not declare it, and names
// the line to add.

export type Json = string | number | boolean | null | { [key: string]: Json } | Json[];

export interface HandlerRequest<Input = unknown> {
  /** Fits the contract's `input_schema`. */
  readonly input: Input;
  /** The request id: the same in the caller's answer, the logs, the gateway and nested controllers. */
  readonly id: string;
  readonly controller: { readonly name: string; readonly version: string };
  /** sandbox: simulated providers. live: real ones. */
  readonly environment: "sandbox" | "live";
  /** Aborted at the deadline and when the caller leaves. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch; the caller has been answered `timeout` by then. */
  readonly deadline: number;
  /** Capability `llm:chat`. */
  readonly llm: Llm;
  /** Capability `http:egress`. The global `fetch` is the same function. */
  readonly fetch: typeof globalThis.fetch;
  /** Capability `db:query`. */
  readonly db: Db;
  /** Capability `secrets:read`. */
  readonly secrets: Secrets;
  /** Capabilities `kv:read` and `kv:write`. */
  readonly kv: Kv;
  /** Capability `controller:invoke`. */
  readonly controllers: Controllers;
  /** Capability `sync:trigger`. */
  readonly syncs: Syncs;
  readonly log: Log;
}

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content?: string | null | readonly Record<string, unknown>[];
  name?: string;
  tool_calls?: readonly Record<string, unknown>[];
  tool_call_id?: string;
}

/**
 * OpenAI's chat completion request; `model` defaults to the first of the contract's `scopes.llm.models` that is no pattern, then to the
 * gateway's default.
 */
export interface ChatRequest {
  messages: readonly ChatMessage[];
  model?: string;
  stream?: boolean;
  [parameter: string]: unknown;
}

export interface ChatToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** US dollars. */
  cost_usd?: number;
}

/** OpenAI's chat completion. */
export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: number;
    message: { role: "assistant"; content: string | null; refusal?: string | null; tool_calls?: ChatToolCall[] };
    finish_reason: string;
  }[];
  usage?: ChatUsage;
}

/** One chunk of a streamed completion. */
export interface ChatChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: number;
    delta: { role?: "assistant"; content?: string | null; tool_calls?: Partial<ChatToolCall>[] };
    finish_reason: string | null;
  }[];
  usage?: ChatUsage | null;
}

export interface Llm {
  /** The chunks as they come. */
  chat(request: ChatRequest & { stream: true }): Promise<AsyncIterable<ChatChunk>>;
  /** The whole completion. */
  chat(request: ChatRequest & { stream?: false }): Promise<ChatCompletion>;
}

/** `bigint` and `numeric` columns are strings, times RFC 3339 text, bytes base64 text. */
export type Row = Record<string, Json>;

export interface QueryResult<R = Row> {
  rows: R[];
  /** Rows returned, or changed by a statement that returns none. */
  row_count: number;
}

export interface Queryable {
  /** One statement with positional parameters: `$1`, `$2` everywhere; `?` too for mysql and sqlite. */
  query<R = Row>(sql: string, params?: readonly unknown[]): Promise<QueryResult<R>>;
}

export interface Db {
  /** One statement in a transaction of its own. `database`: its name under `databases` in magic.yaml. */
  query<R = Row>(database: string, sql: string, params?: readonly unknown[]): Promise<QueryResult<R>>;
  /** Commits when `work` resolves, rolls back when it throws; one connection throughout. */
  transaction<T>(database: string, work: (tx: Queryable) => Promise<T>): Promise<T>;
}

export interface Secrets {
  /** The value now: a rotated secret is seen without a restart. Do not log it. */
  get(name: string): Promise<string>;
}

export interface Kv {
  /** null when the key is absent or expired. */
  get<T = Json>(key: string): Promise<T | null>;
  /** `ttl_s`: seconds until it expires; without it, it stays. */
  set(key: string, value: unknown, options?: { ttl_s?: number }): Promise<void>;
  /** Whether it is there or not. */
  delete(key: string): Promise<void>;
}

export interface Controllers {
  /** The other controller's output. */
  invoke<Output = Json>(name: string, input: unknown): Promise<Output>;
}

export interface Syncs {
  /** Starts a run, or returns the one under way. */
  trigger(id: string): Promise<{ id: string; status: string }>;
}

/** Fields must be JSON (an error as the message is one of them, with its stack); the line carries the request id, controller and version by itself. */
export interface Log {
  debug(message: string | Error, fields?: Record<string, unknown>): void;
  info(message: string | Error, fields?: Record<string, unknown>): void;
  warn(message: string | Error, fields?: Record<string, unknown>): void;
  error(message: string | Error, fields?: Record<string, unknown>): void;
}
