// What every broker operation gets: who asks (from the channel), what is granted, what the invocation has used so far.
import type { Span } from "#daemon/telemetry/trace.ts";
import type { BrokerAnswer } from "../cell/streams.ts";
import type { Caller, Ports } from "../ports.ts";
import type { Grants } from "./grants.ts";

export interface Usage {
  llm_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost_usd: number;
  http_requests: number;
  http_bytes: number;
  db_queries: number;
}

export interface Session {
  readonly caller: Caller;
  readonly grants: Grants;
  readonly ports: Ports;
  readonly usage: Usage;
  /** Secret values handed out, in all their forms: struck out of logs and errors. */
  readonly secrets: Set<string>;
  learn(secret: string): void;
  /** Runs another controller for this one; its output may be a LargeOutput. */
  invoke(name: string, input: unknown): Promise<unknown>;
}

export type Operation = (
  session: Session,
  args: Record<string, unknown>,
  body: AsyncIterable<Uint8Array> | null,
  signal: AbortSignal,
  /** Its own in the trace, below the call's. */
  span: Span,
) => Promise<BrokerAnswer>;
