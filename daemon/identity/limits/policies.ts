// Which limit a caller counts against. Limits are the account's: all keys of one tier share its window.
import type { Principal, Tier } from "#contract/identity.ts";
import type { Policy } from "./rate-limiter.ts";

const sandbox: Policy = { name: "sandbox", limit: 60, windowS: 60 };
const live: Readonly<Record<Tier, Policy | null>> = {
  starter: { name: "starter", limit: 1_000, windowS: 60 },
  professional: { name: "professional", limit: 10_000, windowS: 60 },
  enterprise: null,
};

/** The limit on core routes for this caller; null where there is none. Sandbox: 60 a minute whatever the tier. */
export function rateLimitOf(principal: Principal): Policy | null {
  if (principal.type === "local" || principal.type === "anonymous") return null;
  return principal.environment === "sandbox" ? sandbox : live[principal.tier];
}

/** Calls a minute in words, for the error that names limit, tier and way out. */
export function describeLimit(policy: Policy): string {
  const perMinute = policy.limit.toLocaleString("en-US");
  if (policy.name === "sandbox") return `The sandbox takes ${perMinute} requests a minute; use a live key, or wait.`;
  const next = policy.name === "starter" ? "professional takes 10,000" : "enterprise has no limit";
  return `The ${policy.name} tier takes ${perMinute} requests a minute; ${next}, or wait.`;
}
