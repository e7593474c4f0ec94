// When secrets were last used: noted in memory on every request, stored every few seconds.
import { type Clock, rfc3339 } from "#shared/clock.ts";

export interface Uses {
  note(secretId: string): void;
  /** Stores what was noted; at most this is lost when the process is killed. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const EVERY_MS = 5_000;

export function createUses(clock: Clock, store: (used: [string, string][]) => Promise<void>): Uses {
  let noted = new Map<string, number>();
  const flush = async () => {
    if (noted.size === 0) return;
    const batch = noted;
    noted = new Map();
    try {
      await store([...batch].map(([id, at]) => [id, rfc3339(at)]));
    } catch {
      // A time of use is not worth an error: the next flush tries again, newer notes winning.
      for (const [id, at] of batch) if (!noted.has(id)) noted.set(id, at);
    }
  };
  const timer = setInterval(flush, EVERY_MS).unref();
  return {
    note: (secretId) => noted.set(secretId, clock.now()),
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
