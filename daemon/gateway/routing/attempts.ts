// The attempts of one call, exactly as many as its policy has: `retries` more at the same candidate for what may pass there, the
// next candidate for what may pass elsewhere, nothing after the first content byte. Nobody below this file retries.
import type { ChatOutcome, FailureOutcome } from "#daemon/gateway/providers/adapter.ts";
import { type Failure, failure, fallsThrough, retriesHere } from "#daemon/gateway/providers/failure.ts";
import { type AbortNotice, pause } from "#shared/abort.ts";
import { backoff, jittered } from "#shared/backoff.ts";
import type { Clock } from "#shared/clock.ts";
import type { Breakers } from "./breaker.ts";
import type { Candidate } from "./candidate.ts";
import type { Measurements } from "./measurements.ts";
import type { Plan } from "./plan.ts";

/** One upstream request, for the log and the trace. */
export interface AttemptRecord {
  readonly candidate: Candidate;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly failure: Failure | null;
  /** What the provider charged for an attempt that failed, if it said so. */
  readonly charged: FailureOutcome["usage"];
}

export interface Attempted {
  readonly outcome: ChatOutcome;
  /** Who gave the outcome. */
  readonly candidate: Candidate;
  readonly attempts: readonly AttemptRecord[];
}

export interface AttemptContext {
  readonly clock: Clock;
  readonly random: () => number;
  readonly breakers: Breakers;
  readonly measurements: Measurements;
  readonly stream: boolean;
  /** Aborted when the call is over: the client left, or the total time is up. */
  readonly signal: AbortNotice;
  /** Raises the reservation to what this candidate may cost beside what earlier attempts did; false: the budget does not allow it. */
  readonly afford: (candidate: Candidate, earlier: readonly AttemptRecord[]) => boolean | Promise<boolean>;
  readonly attempt: (candidate: Candidate) => Promise<ChatOutcome>;
}

const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 4_000;

/** Tries the plan's candidates in order until one answers or nothing is left. Never throws for what an upstream does. */
export async function attemptRoute(plan: Plan, context: AttemptContext): Promise<Attempted> {
  const { clock, breakers, measurements, stream } = context;
  const attempts: AttemptRecord[] = [];
  let last: Attempted | undefined;
  // Whom a breaker passes over comes once more behind the others: it is called where none of them could be.
  let { candidates } = plan;
  for (let index = 0; index < candidates.length; index++) {
    const candidate = candidates[index] as Candidate;
    const passedOver = index >= plan.candidates.length;
    if (passedOver && last) break;
    if (!passedOver && !breakers.admit(candidate.name)) {
      candidates = [...candidates, candidate];
      continue;
    }
    const affordable = context.afford(candidate, attempts);
    if (!(typeof affordable === "boolean" ? affordable : await affordable)) {
      if (!passedOver) breakers.released(candidate.name);
      continue;
    }
    const pace = measurements.of(candidate.name, stream);
    for (let tried = 0; ; tried++) {
      const startedAt = clock.monotonic();
      pace.begun(startedAt);
      const outcome = await context.attempt(candidate);
      const endedAt = clock.monotonic();
      const failed = outcome.kind === "failure" ? outcome : null;
      pace.ended(startedAt, endedAt, failed?.failure ?? null);
      const charged = failed?.usage ?? null;
      attempts.push({ candidate, startedAt, endedAt, failure: failed?.failure ?? null, charged });
      last = { outcome, candidate, attempts };
      if (!failed) {
        if (outcome.kind === "completion") breakers.succeeded(candidate.name);
        return last;
      }
      const wait = tried < plan.retries ? pauseBefore(failed.failure, tried, plan.timeoutMs, context.random) : null;
      if (wait !== null && (await pause(wait, context.signal)) && (await context.afford(candidate, attempts))) continue;
      settleBreaker(breakers, candidate.name, failed.failure);
      if (!fallsThrough(failed.failure) || context.signal.aborted) return last;
      break;
    }
  }
  return last ?? { outcome: nothingLeft, candidate: plan.candidates[0] as Candidate, attempts };
}

/** Tells the breaker how a call ended; a refusal of this very request says that the upstream is well. */
export function settleBreaker(breakers: Breakers, name: string, failed: Failure | null): void {
  if (!failed) breakers.succeeded(name);
  else if (failed.kind === "aborted" || failed.kind === "rate_limit" || failed.kind === "quota")
    breakers.released(name);
  else if (unwell(failed)) breakers.failed(name);
  else breakers.succeeded(name);
}

function unwell({ kind }: Failure): boolean {
  return ["overloaded", "internal", "server", "timeout", "reset", "truncated", "protocol"].includes(kind);
}

// Milliseconds until the next try here, or null: none. A hint of the upstream is obeyed where it fits into the policy's time.
function pauseBefore(failed: Failure, tried: number, timeoutMs: number, random: () => number): number | null {
  if (!retriesHere(failed)) return null;
  const own = jittered(backoff(tried, FIRST_BACKOFF_MS, MAX_BACKOFF_MS), random);
  if (failed.retryAfterMs === null) return own;
  return failed.retryAfterMs <= timeoutMs ? Math.max(failed.retryAfterMs, own / 4) : null;
}

const nothingLeft: FailureOutcome = {
  kind: "failure",
  failure: failure("overloaded", "No candidate of the policy could be called."),
  usage: null,
};
