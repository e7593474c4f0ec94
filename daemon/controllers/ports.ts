// What the controller runtime needs of the other parts of the daemon. app.ts binds each to the real thing; an unbound one makes the
// capability answer `capability_denied` with the reason.
import type { Dispatcher } from "undici";
import type { Principal } from "#contract/identity.ts";
import type { Span } from "#daemon/telemetry/trace.ts";

/** Which invocation asks. The broker fills it from the channel the message came by, never from what the message says. */
export interface Caller {
  readonly controller: string;
  readonly version: string;
  readonly requestId: string;
  readonly invocationId: string;
  readonly principal: Principal;
  /** Aborted at the deadline and when the caller left. */
  readonly signal: AbortSignal;
  readonly span: Span;
  /** Nesting of controller:invoke; 0 for a call from outside. */
  readonly depth: number;
  /** What the invocations around this one have learned from secrets:read, and what it tells them by learning more. */
  readonly secrets?: Set<string> | undefined;
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

/** The one way out (daemon/egress): decides on the connected address. */
export interface EgressPort {
  readonly dispatcher: Dispatcher;
  /** Addresses that were checked, for a database driver that opens its own socket. */
  addresses(hostname: string, port: number): Promise<readonly string[]>;
}

export interface DatabaseTarget {
  /** postgres://, mysql:// or sqlite:PATH */
  readonly url: string;
  /** The address that the egress guard chose for the URL's host; without it, the name is connected to. */
  readonly address?: string;
  readonly mode: "read" | "write";
}

export interface DatabasesPort {
  /** The database of this name in magic.yaml now, or null. @throws MagicError where its connection cannot be used. */
  get(name: string): DatabaseTarget | null | Promise<DatabaseTarget>;
}

/** Everything that a capability may reach; null where the daemon has no such part. */
export interface Ports {
  readonly llm: LlmPort | null;
  readonly egress: EgressPort | null;
  readonly databases: DatabasesPort | null;
  readonly secrets: SecretsPort | null;
  readonly kv: KvPort | null;
  readonly syncs: SyncPort | null;
}
