// Counts calls of several daemons over one database together: the window lies there, and each call is admitted there. Calls that
// come while the database is being asked are asked for together, so that replicas meet once a round and not once a call.
import type { TakeCalls, TakenCalls } from "#daemon/storage/repositories/rate-window.ts";
import type { Policy, RateLimiter } from "./rate-limiter.ts";
import type { Decision } from "./sliding-window.ts";

interface Waiting {
  resolve(decision: Decision): void;
  reject(error: unknown): void;
}

export function createSharedLimiter(take: (calls: TakeCalls) => Promise<TakenCalls>): RateLimiter {
  const queues = new Map<string, Waiting[]>();

  // One round at a time for a policy; the queue's presence says that one is under way.
  async function rounds({ name, limit, windowS }: Policy, waiting: Waiting[]): Promise<void> {
    while (waiting.length > 0) {
      const round = waiting.splice(0);
      try {
        const taken = await take({ name, limit, windowMs: windowS * 1_000, calls: round.length });
        for (const [at, one] of round.entries()) one.resolve(decisionOf(taken, at));
      } catch (error) {
        for (const one of round) one.reject(error);
      }
    }
    queues.delete(name);
  }

  return {
    admit(policy) {
      return new Promise<Decision>((resolve, reject) => {
        const under = queues.get(policy.name);
        if (under) under.push({ resolve, reject });
        else {
          const waiting = [{ resolve, reject }];
          queues.set(policy.name, waiting);
          void rounds(policy, waiting);
        }
      });
    },
    close: async () => undefined,
  };
}

// What remained after this one, and not after all that were asked for together.
function decisionOf({ admitted, remaining, resetMs }: TakenCalls, at: number): Decision {
  return { admitted: at < admitted, remaining: at < admitted ? remaining + admitted - at - 1 : remaining, resetMs };
}
