// How many connections and active syncs a tier allows. The sandbox has no such limits.
import type { Principal } from "#contract/identity.ts";
import type { ResourceLimit } from "#daemon/storage/resource.ts";

const limits = {
  starter: { connections: 5, "active syncs": 3 },
  professional: { connections: 25, "active syncs": 25 },
  enterprise: null,
} as const;

const wayOut = {
  connections: "Delete one that is not needed",
  "active syncs": "Pause one that is not needed",
};

export function limitOf({ environment, tier }: Principal, name: "connections" | "active syncs"): ResourceLimit | null {
  const limit = limits[tier];
  if (environment === "sandbox" || limit === null) return null;
  const next = tier === "starter" ? "professional allows 25" : "enterprise has no limit";
  return { name, max: limit[name], tier, wayOut: `${wayOut[name]}, or change the tier: ${next}.` };
}
