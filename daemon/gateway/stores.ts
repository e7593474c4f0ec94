// The gateway's stores over the daemon's storage: the same figures, in the columns' form.
import type { LedgerEntry } from "#daemon/storage/repositories/ledger.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { ledgerColumns } from "#daemon/storage/tables/gateway.ts";
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

function valuesOf(row: LedgerRow): unknown[] {
  const derived: Partial<LedgerEntry> = {
    day: row.at.slice(0, 10),
    end_user: row.user && storable(row.user),
    model: storable(row.model),
    stream: row.stream ? 1 : 0,
    estimated: row.estimated ? 1 : 0,
  };
  const all: Record<string, unknown> = { ...row, ...derived };
  return ledgerColumns.map((name) => all[name]);
}

// Names that come from requests: no column takes a NUL on Postgres, and one bad row would hold up its whole batch.
function storable(name: string): string {
  return name.slice(0, 256).toWellFormed().replaceAll("\0", "\ufffd");
}
