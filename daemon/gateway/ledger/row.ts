// One row of the ledger: one upstream dispatch that was answered, failed or was left. Amounts are whole pico-dollars.
import type { usageKeys } from "#contract/wire/usage.ts";

export interface LedgerRow {
  /** RFC 3339, of the dispatch. */
  readonly at: string;
  readonly request_id: string;
  readonly operation: "chat" | "embeddings";
  readonly environment: "sandbox" | "live";
  readonly token: string | null;
  readonly user: string | null;
  readonly team: string | null;
  readonly project: string | null;
  readonly controller: string | null;
  readonly provider: string;
  readonly model: string;
  readonly outcome: "completed" | "failed" | "aborted";
  readonly status: number;
  readonly stream: boolean;
  /** Upstream requests made for this call. */
  readonly attempts: number;
  /** 1 for a call; 0 for an earlier attempt of it that failed and was charged all the same. */
  readonly requests: 0 | 1;
  readonly input: number;
  readonly cached: number;
  readonly cache_write: number;
  readonly output: number;
  readonly reasoning: number;
  /** The provider gave no counts: these are this gateway's. */
  readonly estimated: boolean;
  /** Null: the model has no price (allow_unpriced). */
  readonly cost_pico: number | null;
  readonly duration_ms: number;
  readonly first_token_ms: number | null;
}

export type UsageKey = (typeof usageKeys)[number];

export interface UsageQuery {
  readonly by: UsageKey;
  /** RFC 3339; from (inclusive) and to (exclusive). */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly environment?: "sandbox" | "live" | undefined;
  /** Only rows of this name, by the same keys. */
  readonly where?: Readonly<Partial<Record<UsageKey, string>>> | undefined;
  /** How many sums at the most, and behind which one they begin. */
  readonly limit?: number | undefined;
  readonly after?: Pick<UsageSum, "key" | "cost_pico"> | undefined;
}

/** Sums of one key. `cost_pico` may pass 2^53. */
export interface UsageSum {
  readonly key: string | null;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  /** Decimal digits. */
  readonly cost_pico: string;
  /** Calls whose cost is unknown. */
  readonly unpriced: number;
}

/** A row as a JSON array in the order of the table's columns: one text is cheaper to hold than a record until its batch is stored. */
export function rowText(row: LedgerRow): string {
  return JSON.stringify([
    row.at,
    row.at.slice(0, 10),
    row.request_id,
    row.operation,
    row.environment,
    row.token,
    row.user && storable(row.user),
    row.team,
    row.project,
    row.controller,
    row.provider,
    storable(row.model),
    row.outcome,
    row.status,
    row.stream ? 1 : 0,
    row.attempts,
    row.requests,
    row.input,
    row.cached,
    row.cache_write,
    row.output,
    row.reasoning,
    row.estimated ? 1 : 0,
    row.cost_pico,
    row.duration_ms,
    row.first_token_ms,
  ]);
}

// Names that come from requests: no column takes a NUL on Postgres, and one bad row would hold up its whole batch.
function storable(name: string): string {
  return name.slice(0, 256).toWellFormed().replaceAll("\0", "\ufffd");
}
