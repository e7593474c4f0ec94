// The gateway's stores over the daemon's storage: the same figures, in the columns' form.
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import type { BudgetStore } from "./budgets/store.ts";
import type { KeyStore } from "./idempotency/store.ts";
import type { LedgerStore } from "./ledger/ledger.ts";
import type { LedgerRow } from "./ledger/row.ts";

export interface GatewayStores {
  readonly ledger: LedgerStore;
  readonly budgets: BudgetStore;
  readonly keys: KeyStore;
}

export function gatewayStores({ units }: Pick<Storage, "units">, clock: Clock): GatewayStores {
  const now = () => rfc3339(clock.now());
  return {
    ledger: {
      append: (rows, budgets) => units.ledger.append({ rows: JSON.stringify(rows.map(valuesOf)), budgets, now: now() }),
      usage: (query) => units.ledger.usage(query),
    },
    budgets: {
      load: (keys) => units.budget.load({ keys }),
      change: (changes) => units.budget.change({ changes, now: now() }),
      recover: () => units.budget.recover({ now: now() }),
    },
    keys: {
      begin: (row) => units.gatewayKey.begin(row),
      finish: (row) => units.gatewayKey.finish(row),
      release: (row) => units.gatewayKey.release(row),
      purge: (row) => units.gatewayKey.purge(row),
    },
  };
}

// In the order of `ledgerColumns`.
function valuesOf(row: LedgerRow): unknown[] {
  return [
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
  ];
}

// Names that come from requests: no column takes a NUL on Postgres, and one bad row would hold up its whole batch.
function storable(name: string): string {
  return name.slice(0, 256).toWellFormed().replaceAll("\0", "\ufffd");
}
