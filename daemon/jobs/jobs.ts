// The durable queue and scheduler: a job put here runs at its time, at least once, across restarts. One interface whatever holds
// the rows; who needs work to outlive the process defines a queue (queue.ts: how one takes and runs it).
import type { Presence } from "#daemon/storage/presence.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { openQueue, type Queue, type QueueHost, type QueueOptions } from "./queue.ts";

export interface Jobs {
  define<T>(name: string, options: QueueOptions<T>): Queue<T>;
  /** Begins to run what is due. */
  start(): Promise<void>;
  /** Takes no more work and waits for what runs. */
  stop(): Promise<void>;
}

export interface JobsOptions {
  readonly storage: Storage;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** In whose name jobs are taken. */
  readonly presence?: Presence;
}

export function createJobs({ storage, clock = systemClock, logger, presence }: JobsOptions): Jobs {
  const wakers: (() => void)[] = [];
  const stopping = new AbortController();
  let started = false;
  const host: QueueHost = {
    units: storage.units.job,
    owner: presence?.process ?? newId("worker"),
    clock,
    logger,
    // Another replica may put work; with SQLite only this process does, and it wakes the queue itself.
    pollMs: storage.dialect === "postgres" ? 1000 : 15_000,
    started: () => started,
    stopping: stopping.signal,
    running: new Set(),
  };
  return {
    define(name, options) {
      const queue = openQueue(name, options, host);
      wakers.push(queue.wake);
      return queue;
    },

    async start() {
      if (storage.dialect === "sqlite") await host.units.releaseOthers({ owner: host.owner });
      // Its name is noted, should it say only later that it lives.
      else await presence?.announce().catch(() => undefined);
      started = true;
      for (const wake of wakers) wake();
    },

    async stop() {
      stopping.abort();
      await Promise.allSettled(host.running);
    },
  };
}
