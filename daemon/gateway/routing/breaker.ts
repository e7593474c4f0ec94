// Circuit breakers, one per provider and model. Closed: everything passes. Open, after a run of failed calls: other candidates are
// preferred. Half-open, after a while: one call at a time tries whether it is well again. A candidate without an alternative is
// called in any state: refusing it would help nobody.
import type { Clock } from "#shared/clock.ts";

export type BreakerState = "closed" | "open" | "half_open";

export interface Breakers {
  state(key: string): BreakerState;
  /** Takes the one half-open trial; true also when closed. False: somebody else is trying, or it is open. */
  admit(key: string): boolean;
  succeeded(key: string): void;
  failed(key: string): void;
  /** The admitted call ended without telling anything about the upstream (the client left). */
  released(key: string): void;
  /** For the metric: every breaker that ever failed. */
  states(): readonly (readonly [key: string, state: BreakerState])[];
}

export interface BreakerOptions {
  /** Failed calls in a row, all their attempts counted as one, that open it. */
  readonly failures?: number;
  /** A run of failures older than this starts anew. */
  readonly windowMs?: number;
  readonly openMs?: number;
}

interface Circuit {
  failures: number;
  firstFailureAt: number;
  openedAt: number | null;
  trialAt: number | null;
}

/** Models' names come from clients: one that invents them must not fill the memory, nor the metric. */
const MOST_CIRCUITS = 1_000;

export function createBreakers(clock: Clock, options: BreakerOptions = {}): Breakers {
  const { failures = 20, windowMs = 60_000, openMs = 10_000 } = options;
  const circuits = new Map<string, Circuit>();

  const stateOf = (circuit: Circuit | undefined): BreakerState => {
    if (!circuit || circuit.openedAt === null) return "closed";
    return clock.monotonic() - circuit.openedAt >= openMs ? "half_open" : "open";
  };
  // A trial that never reported back does not block the next one for ever.
  const trialUnderWay = (circuit: Circuit) => circuit.trialAt !== null && clock.monotonic() - circuit.trialAt < openMs;

  return {
    state: (key) => stateOf(circuits.get(key)),
    admit(key) {
      const circuit = circuits.get(key);
      const state = stateOf(circuit);
      if (!circuit || state === "closed") return true;
      if (state === "open" || trialUnderWay(circuit)) return false;
      circuit.trialAt = clock.monotonic();
      return true;
    },
    succeeded: (key) => void circuits.delete(key),
    failed(key) {
      const now = clock.monotonic();
      const known = circuits.get(key);
      const [oldest] = circuits.size < MOST_CIRCUITS ? [] : circuits.keys();
      if (!known && oldest !== undefined) circuits.delete(oldest);
      if (!known || (known.openedAt === null && now - known.firstFailureAt > windowMs)) {
        circuits.set(key, { failures: 1, firstFailureAt: now, openedAt: failures <= 1 ? now : null, trialAt: null });
        return;
      }
      known.failures++;
      known.trialAt = null;
      if (known.openedAt !== null || known.failures >= failures) known.openedAt = now;
    },
    released(key) {
      const circuit = circuits.get(key);
      if (circuit) circuit.trialAt = null;
    },
    states: () => [...circuits].map(([key, circuit]) => [key, stateOf(circuit)] as const),
  };
}
