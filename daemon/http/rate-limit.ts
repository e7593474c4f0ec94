// The account's rate limit on core routes, with the headers of draft-ietf-httpapi-ratelimit-headers. Runs after authentication
// and the scope check: what they refuse is not counted.
import type { FastifyInstance, FastifyReply } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { Principal, Scope } from "#contract/identity.ts";
import { operates } from "#daemon/identity/credentials/grant.ts";
import { describeLimit, rateLimitOf } from "#daemon/identity/limits/policies.ts";
import type { Policy, RateLimiter } from "#daemon/identity/limits/rate-limiter.ts";
import type { Decision } from "#daemon/identity/limits/sliding-window.ts";

export function useRateLimit(app: FastifyInstance, limiter: RateLimiter): void {
  app.addHook("onRequest", (request, reply, done) => {
    const policy = request.route.url === undefined ? null : policyOf(request.route, request.principal);
    if (policy === null) return done();
    const decision = limiter.admit(policy);
    if (!(decision instanceof Promise)) return settle(reply, policy, decision, done);
    decision.then((found) => settle(reply, policy, found, done), done);
  });
}

interface LimitedRoute {
  readonly surface?: string;
  readonly scope?: Scope | null;
}

// Not counted: public routes, the gateway, controllers, and what an operator does to credentials and the audit log.
function policyOf({ surface, scope }: LimitedRoute, principal: Principal): Policy | null {
  if (surface !== "core" || scope === null || scope === undefined) return null;
  if (operates(principal) && /^(keys|clients|tokens|audit):/.test(scope)) return null;
  return rateLimitOf(principal);
}

function settle(reply: FastifyReply, policy: Policy, decision: Decision, done: (error?: Error) => void): void {
  const { admitted, remaining, resetMs } = decision;
  const { name, limit, windowS } = policy;
  // Less a microsecond: fractions of the monotonic clock must not make 61 of 60.
  const resetS = Math.max(1, Math.ceil((resetMs - 0.001) / 1_000));
  reply.header("ratelimit-policy", `"${name}";q=${limit};w=${windowS}`);
  reply.header("ratelimit", `"${name}";r=${remaining};t=${resetS}`);
  if (admitted) done();
  else {
    const extra = { limit: name, quota: limit };
    done(new MagicError("rate_limited", describeLimit(policy), { retryAfterS: resetS, extra }));
  }
}
