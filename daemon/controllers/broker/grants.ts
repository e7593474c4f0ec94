// The grants of one controller, asked by every broker operation. What is granted stands in #contract/grants.ts.
import type { ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import { databaseMode, refusalOf, refusalText, type Wish } from "#contract/grants.ts";

export interface Grants {
  /** Throws `capability_denied` that names the line to add. */
  need(wish: Wish): void;
  /** null: whatever the gateway allows. */
  readonly models: readonly string[] | null;
  readonly usdPerDay: number | null;
  /** The mode of a database that need() let pass. */
  mode(database: string): "read" | "write";
}

export function grantsOf(contract: ControllerContract): Grants {
  const llm = contract.scopes?.llm;
  return {
    need(wish) {
      const refusal = refusalOf(contract, wish);
      if (refusal)
        throw new MagicError("capability_denied", refusalText(contract.name, refusal), { extra: { add: refusal.add } });
    },
    models: llm?.models ?? null,
    usdPerDay: llm?.usd_per_day ?? null,
    mode: (database) => databaseMode(contract, database) ?? "read",
  };
}
