// What the controller runtime needs of the other parts of the daemon. app.ts binds each to the real thing; an unbound one makes the
// capability answer `capability_denied` with the reason.
import type { Dispatcher } from "undici";
import type { Principal } from "#contract/identity.ts";

/** Which invocation asks. The broker fills it from the channel the message came by, never from what the message says. */
export interface Caller {
  readonly controller: string;
  readonly version: string;
  readonly requestId: string;
  readonly invocationId: string;
  readonly principal: Principal;
  /** Aborted at the deadline and when the caller left. */
  readonly signal: AbortSignal;
  /** Parent span, where tracing is on. */
  readonly spanId?: string;
}

export interface LlmCall extends Caller {
  /** An OpenAI chat completion request; `model` may be missing. */
  readonly body: Record<string, unknown>;
  /** The models, aliases and policies that the contract allows; null: whatever the gateway allows. */
  readonly models: readonly string[] | null;
  /** The controller's own budget, US dollars a day. */
  readonly usdPerDay: number | null;
}

/** As the gateway's route would answer it: an OpenAI completion, OpenAI's error document, or the chunks of a stream. */
export type LlmAnswer =
  | { readonly status: number; readonly headers: Record<string, string>; readonly body: unknown }
  | {
      readonly status: number;
      readonly headers: Record<string, string>;
      readonly chunks: AsyncIterable<Record<string, unknown>>;
    };

export interface LlmPort {
  chat(call: LlmCall): Promise<LlmAnswer>;
}

export interface SyncPort {
  trigger(call: Caller & { readonly sync: string }): Promise<{ id: string; status: string }>;
}

/** Small durable state of one controller and environment; values are JSON text. */
export interface KvPort {
  get(scope: KvScope, key: string): Promise<string | null>;
  set(scope: KvScope, key: string, value: string, expiresAt: string | null): Promise<void>;
  delete(scope: KvScope, key: string): Promise<void>;
}

export interface KvScope {
  readonly controller: string;
  readonly environment: string;
}

export interface SecretsPort {
  /** The value now, or null when magic.yaml does not define it. */
  get(name: string): Promise<string | null> | string | null;
}

/** The one way out: decides on the connected address. */
export interface EgressPort {
  dispatcher(): Dispatcher;
}

export interface DatabaseTarget {
  /** postgres://, mysql:// or sqlite:PATH */
  readonly url: string;
  readonly mode: "read" | "write";
}

export interface DatabasesPort {
  /** The database of this name in magic.yaml now, or null. */
  get(name: string): DatabaseTarget | null;
  /** Opens a socket through the egress guard, for the drivers. */
  connect?(host: string, port: number): Promise<import("node:net").Socket>;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Satisfied by the telemetry logger. */
export interface LogPort {
  debug(event: string, fields?: Record<string, unknown>): void;
  info(event: string, fields?: Record<string, unknown>): void;
  warn(event: string, fields?: Record<string, unknown>): void;
  error(event: string, fields?: Record<string, unknown>): void;
}

export interface SpanPort {
  readonly id: string;
  end(outcome?: { error?: string; attributes?: Record<string, string | number | boolean> }): void;
}

export interface TracePort {
  start(
    name: string,
    options: {
      requestId: string;
      parent?: string | undefined;
      attributes?: Record<string, string | number | boolean>;
    },
  ): SpanPort;
}

/** Prometheus series of the runtime; app.ts gives one over the daemon's registry. */
export interface MetricsPort {
  /** Seconds, labelled by controller and phase: queue, cold_start, run, broker, cpu. */
  observe(phase: string, controller: string, seconds: number): void;
  /** invocations by outcome, kills by reason, reloads by outcome. */
  count(what: string, controller: string, label: string): void;
  /** Bytes of a controller's cells. */
  memory(controller: string, bytes: number): void;
}
