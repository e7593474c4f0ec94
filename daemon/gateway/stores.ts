// The gateway's stores over the daemon's storage: the same figures, in the columns' form.
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import type { BudgetStore } from "./budgets/store.ts";
import type { KeyStore } from "./idempotency/store.ts";
import type { LedgerStore } from "./ledger/ledger.ts";

export interface GatewayStores {
  readonly ledger: LedgerStore;
  readonly budgets: BudgetStore;
  readonly keys: KeyStore;
}

export function gatewayStores({ units }: Pick<Storage, "units">, clock: Clock): GatewayStores {
  const now = () => rfc3339(clock.now());
  return {
    ledger: {
      append: (rows, budgets) => units.ledger.append({ rows: `[${rows.join(",")}]`, budgets, now: now() }),
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
