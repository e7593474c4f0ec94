// What a caller may hand on: a child never exceeds its maker, in scopes, tier, environment or time.
import { MagicError } from "#contract/errors.ts";
import { type Principal, type Scope, type Tier, tiers } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import { timeOf } from "./secret.ts";

export interface Grant {
  readonly scopes: readonly Scope[];
  readonly tier: Tier;
  readonly environment: Environment;
  /** RFC 3339; null: it does not end by itself. */
  readonly expires_at: string | null;
}

/** Throws `insufficient_scope`, naming the first thing that `maker` lacks. */
export function requireCovers(maker: Principal, grant: Grant): void {
  const missing = grant.scopes.find((scope) => !maker.scopes.has(scope));
  if (missing !== undefined)
    throw new MagicError("insufficient_scope", `A credential cannot hand on the scope ${missing} that it lacks.`, {
      extra: { scope: missing },
    });
  if (!reaches(maker, grant.environment))
    throw new MagicError(
      "insufficient_scope",
      `A ${maker.environment} credential cannot make or change a ${grant.environment} one.`,
    );
  if (tiers.indexOf(grant.tier) > tiers.indexOf(maker.tier))
    throw new MagicError(
      "insufficient_scope",
      `A credential of tier ${maker.tier} cannot make or change one of tier ${grant.tier}.`,
    );
  if (timeOf(grant.expires_at) > timeOf(maker.expires_at ?? null))
    throw new MagicError(
      "insufficient_scope",
      `A credential that ends at ${maker.expires_at} cannot make or change one that ends later, or never.`,
    );
}

/** True where the principal acts in the environment: its own, or either for the operator's two credentials. */
function reaches(principal: Principal, environment: Environment): boolean {
  return operates(principal) || principal.environment === environment;
}

/** The command line's token and the admin key: no environment and no account limit of their own. */
export function operates(principal: Principal): boolean {
  return principal.type === "local" || principal.type === "admin";
}
