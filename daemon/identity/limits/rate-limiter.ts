// Counts calls against windows that outlive the daemon. Slots are taken from storage in small blocks before they are used, so
// that a killed daemon comes back knowing of at least as many calls as it admitted. For replicas: shared-limiter.ts.
import type { Clock } from "#shared/clock.ts";
import { type Decision, SlidingWindow } from "./sliding-window.ts";

/** One limit: which window is counted, how many calls it takes, how long it is. */
export interface Policy {
  /** The account's window; the name in the RateLimit headers as well. */
  readonly name: string;
  readonly limit: number;
  readonly windowS: number;
}

export interface RateLimiter {
  /** Admits one call, or refuses it. Answers at once except when a block of slots must be stored first. */
  admit(policy: Policy): Decision | Promise<Decision>;
  /** Stores what is counted exactly; before the daemon stops. */
  close(): Promise<void>;
}

/** The calls of one window as they are stored: at most some hundred groups, oldest first. */
export interface StoredWindow {
  /** Milliseconds since the epoch: when the last call of each group was admitted, or a moment later. */
  readonly times: readonly number[];
  /** How many calls each group has; absent: one. */
  readonly counts?: readonly number[];
  /** Slots set aside and perhaps used since; 0 after a clean stop. */
  readonly ahead: number;
}

export interface WindowStore {
  load(name: string): Promise<StoredWindow | undefined>;
  /** Durable when it resolves. */
  save(name: string, window: StoredWindow): Promise<void>;
}

interface Counter {
  readonly window: SlidingWindow;
  /** Slots stored and not used yet. */
  ahead: number;
  storing: Promise<void> | undefined;
  /** Until then nothing is stored, by the monotonic clock: it failed just now, and callers wait for each try. */
  idleUntil: number;
}

const RETRY_MS = 5_000;

export interface RateLimiterOptions {
  readonly clock: Clock;
  readonly store: WindowStore;
  /** Told when storing fails: counting goes on in memory, since a full disk must not refuse what only reads. */
  readonly onError?: (error: unknown) => void;
}

export function createRateLimiter({ clock, store, onError }: RateLimiterOptions): RateLimiter {
  const counters = new Map<string, Counter | Promise<Counter>>();
  const openedAt = clock.monotonic();

  // Loads a window once. What might have been used before a crash counts as used just before the start: late rather than too much.
  async function open(policy: Policy): Promise<Counter> {
    const window = new SlidingWindow(policy.limit, policy.windowS * 1000);
    const stored = await store.load(policy.name).catch((error: unknown) => {
      onError?.(error);
      return undefined;
    });
    if (stored) {
      const wall = clock.now();
      const now = clock.monotonic();
      for (const [at, time] of stored.times.entries()) window.restore(now, wall - time, stored.counts?.[at] ?? 1);
      const youngestMs = wall - (stored.times.at(-1) ?? 0);
      window.restore(now, Math.min(now - openedAt, youngestMs), stored.ahead);
    }
    const counter: Counter = { window, ahead: 0, storing: undefined, idleUntil: 0 };
    counters.set(policy.name, counter);
    return counter;
  }

  // Blocks of a second's worth: a limit of 60 a minute is stored call by call, one of 10,000 about once a second.
  async function setAside(policy: Policy, counter: Counter): Promise<void> {
    const room = counter.window.remaining(clock.monotonic());
    const block = Math.min(room, Math.max(1, Math.floor(policy.limit / policy.windowS)));
    if (block === 0) return;
    if (clock.monotonic() >= counter.idleUntil)
      await store.save(policy.name, snapshot(counter, block)).catch((error: unknown) => {
        onError?.(error);
        counter.idleUntil = clock.monotonic() + RETRY_MS;
      });
    counter.ahead = block;
  }

  function snapshot(counter: Counter, ahead: number): StoredWindow {
    const wall = clock.now();
    const groups = counter.window.groups(clock.monotonic());
    return {
      times: groups.map(({ ageMs }) => Math.ceil(wall - ageMs)),
      counts: groups.map(({ calls }) => calls),
      ahead,
    };
  }

  function take(counter: Counter): Decision {
    const decision = counter.window.take(clock.monotonic());
    if (decision.admitted) counter.ahead--;
    return decision;
  }

  async function admitSlowly(policy: Policy): Promise<Decision> {
    const found = counters.get(policy.name);
    if (found === undefined) counters.set(policy.name, open(policy));
    const counter = await (counters.get(policy.name) as Counter | Promise<Counter>);
    while (counter.ahead === 0 && counter.window.remaining(clock.monotonic()) > 0) {
      counter.storing ??= setAside(policy, counter).finally(() => {
        counter.storing = undefined;
      });
      await counter.storing;
    }
    return take(counter);
  }

  return {
    admit(policy) {
      const counter = counters.get(policy.name);
      const ready =
        counter !== undefined &&
        !(counter instanceof Promise) &&
        (counter.ahead > 0 || counter.window.remaining(clock.monotonic()) === 0);
      return ready ? take(counter) : admitSlowly(policy);
    },
    async close() {
      for (const [name, pending] of counters) {
        const counter = await pending;
        await counter.storing?.catch(() => undefined);
        await store.save(name, snapshot(counter, 0));
      }
    },
  };
}
