// Live execution where no engine is wired: every call is refused in words, nothing is pretended.
import { MagicError } from "#contract/errors.ts";
import type { SyncExecution } from "../execution.ts";

export const absentExecution: SyncExecution = {
  check: refuse,
  discover: refuse,
  run: refuse,
  cleanUp: async () => {},
};

async function refuse(): Promise<never> {
  throw new MagicError("upstream_error", "This daemon has no engine for live connections.");
}
