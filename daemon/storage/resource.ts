// The refusal that names limit, tier and way out.
import { MagicError } from "#contract/errors.ts";
import type { ResourceLimit } from "./tables/connection.ts";

export function refuseOver(count: number, limit: ResourceLimit): void {
  if (count < limit.max) return;
  const { name, max, tier, wayOut } = limit;
  throw new MagicError("limit_reached", `The ${tier} tier allows ${max} ${name}, and there are as many. ${wayOut}`, {
    extra: { limit: name, max, tier },
  });
}
