// What the resources of the core API have in common: connections, syncs, runs, webhooks.
import { MagicError } from "#contract/errors.ts";
import type { Environment } from "#contract/protocol.ts";

/** One of them: in the other environment there is none of that id. */
export interface One {
  readonly id: string;
  readonly environment: Environment;
}

/** What a tier allows of something; null where it allows any number. */
export interface ResourceLimit {
  readonly name: string;
  readonly max: number;
  readonly tier: string;
  /** What to do about it, in one sentence. */
  readonly wayOut: string;
}

/** Names limit, tier and way out. */
export function refuseOver(count: number, limit: ResourceLimit): void {
  if (count < limit.max) return;
  const { name, max, tier, wayOut } = limit;
  throw new MagicError("limit_reached", `The ${tier} tier allows ${max} ${name}, and there are as many. ${wayOut}`, {
    extra: { limit: name, max, tier },
  });
}
