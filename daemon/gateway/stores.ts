// The gateway's stores over the daemon's storage: the same figures, in the columns' form.
import { createPresence, type Presence } from "#daemon/storage/presence.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import type { BudgetStore } from "./budgets/store.ts";
import type { KeyStore } from "./idempotency/store.ts";
import type { LedgerStore } from "./ledger/ledger.ts";
import { createUsage } from "./ledger/usage.ts";
import type { LimitRounds } from "./limits/shared.ts";

export interface GatewayStores {
  readonly ledger: LedgerStore;
  readonly budgets: BudgetStore;
  readonly keys: KeyStore;
  /** Null where no other daemon can be on the same state. */
  readonly limits: LimitRounds | null;
}

export function gatewayStores(
  { units, dialect }: Pick<Storage, "units" | "dialect">,
  clock: Clock,
  presence: Presence = createPresence({ units, dialect }, clock),
): GatewayStores {
  const now = () => rfc3339(clock.now());
  // Only on Postgres can there be other daemons on the same state.
  const shared = dialect === "postgres";
  const { process } = presence;
  return {
    ledger: {
      append: (batch, rows, budgets) =>
        units.ledger.append({ batch, rows: `[${rows.join(",")}]`, budgets, process, now: now() }),
      ...createUsage(units.ledger),
    },
    budgets: {
      shared,
      load: (keys) => units.budget.load({ keys, process }),
      begin: (accounts) => units.budget.begin({ accounts, now: now() }),
      async raise(account) {
        await presence.announce();
        return await units.budget.raise({ ...account, process });
      },
      forget: (before, after) => units.budget.forget({ before, after, limit: 1_000 }),
      recover: () => units.budget.recover({ process, now: now() }),
    },
    limits: shared
      ? async (callers) => {
          await presence.announce();
          return await units.gatewayLimit.round({ process, now: now(), callers });
        }
      : null,
    keys: {
      async begin(row) {
        await presence.announce();
        return await units.gatewayKey.begin({ ...row, process });
      },
      finish: (row) => units.gatewayKey.finish(row),
      release: (row) => units.gatewayKey.release({ ...row, process }),
      abandon: (row) => units.gatewayKey.abandon({ ...row, process }),
      purge: (row) => units.gatewayKey.purge(row),
    },
  };
}
