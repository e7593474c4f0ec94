import type { Generated } from "kysely";

/** One dispatch of the AI gateway. Amounts are whole pico-dollars, counts are tokens, flags are 0 or 1. */
export interface LedgerTable {
  readonly sequence: Generated<number>;
  readonly at: string;
  readonly day: string;
  readonly request_id: string;
  readonly operation: string;
  readonly environment: string;
  readonly token: string | null;
  readonly end_user: string | null;
  readonly team: string | null;
  readonly project: string | null;
  readonly controller: string | null;
  readonly provider: string;
  readonly model: string;
  readonly outcome: string;
  readonly status: number;
  readonly stream: number;
  readonly attempts: number;
  readonly requests: number;
  readonly input: number;
  readonly cached: number;
  readonly cache_write: number;
  readonly output: number;
  readonly reasoning: number;
  readonly estimated: number;
  readonly cost_pico: number | null;
  readonly duration_ms: number;
  readonly first_token_ms: number | null;
}

const text = [
  "at",
  "day",
  "request_id",
  "operation",
  "environment",
  "token",
  "end_user",
  "team",
  "project",
  "controller",
] as const;
const more = ["provider", "model", "outcome"] as const;
const numbers = [
  "status",
  "stream",
  "attempts",
  "requests",
  "input",
  "cached",
  "cache_write",
  "output",
  "reasoning",
] as const;
const last = ["estimated", "cost_pico", "duration_ms", "first_token_ms"] as const;
/** The order of the members of a row in `append`. */
export const ledgerColumns = [...text, ...more, ...numbers, ...last] as const satisfies readonly (keyof LedgerTable)[];

/** The calls of one day that are alike but for their amounts: what `GET /v1/usage` sums. */
export interface UsageTable {
  readonly sequence: Generated<number>;
  /** A digest of the columns up to `model`: they may be longer than an index of Postgres takes. */
  readonly key: string;
  readonly day: string;
  readonly environment: string;
  readonly end_user: string | null;
  readonly team: string | null;
  readonly project: string | null;
  readonly controller: string | null;
  readonly provider: string;
  readonly model: string;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  /** Whole pico-dollars. */
  readonly cost_pico: number;
  readonly unpriced: number;
}

/** What is spent of one budget in one period. Whole pico-dollars. */
export interface BudgetTable {
  readonly key: string;
  readonly spent: number;
  readonly updated_at: string;
}

/** What a daemon may have in flight of a budget: charged if it dies. Whole pico-dollars. */
export interface LeaseTable {
  readonly key: string;
  readonly process: string;
  readonly lease: number;
}

/** The last batch of the ledger that a daemon has stored. */
export interface BatchTable {
  readonly process: string;
  readonly batch: number;
  readonly stored_at: string;
}

/** An Idempotency-Key of a completion; the answer is sealed. */
export interface GatewayKeyTable {
  readonly owner: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly request_id: string;
  /** The daemon that works on it. */
  readonly process: string;
  readonly state: "open" | "done";
  readonly answer: string | null;
  readonly expires_at: string;
}

/** A thought signature, sealed; `key` is a keyed digest of who made the call and the call's id. */
export interface GatewaySignatureTable {
  readonly key: string;
  readonly signature: string;
  readonly expires_at: string;
}

/** What daemons on one database count of a caller's calls together: JSON (repositories/gateway-limit.ts). */
export interface GatewayLimitTable {
  readonly caller: string;
  readonly counts: string;
}

export interface GatewayTables {
  readonly gateway_limit: GatewayLimitTable;
  readonly gateway_signature: GatewaySignatureTable;
  readonly gateway_ledger: LedgerTable;
  readonly gateway_usage: UsageTable;
  readonly gateway_budget: BudgetTable;
  readonly gateway_lease: LeaseTable;
  readonly gateway_batch: BatchTable;
  readonly gateway_key: GatewayKeyTable;
}
