// How long deliveries are kept: looked at now and then, and removed a few at a time, so that nobody waits for it.
import { setTimeout } from "node:timers/promises";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, DAY_MS, rfc3339 } from "#shared/clock.ts";

export interface DeliveryRetention {
  /** Days from when the last attempt was due by the schedule. */
  readonly days: number;
  /** Of one webhook: of more, the oldest that succeeded go. Failed ones, which may be redelivered, stay their days. */
  readonly count: number;
}

export const defaultRetention: DeliveryRetention = { days: 30, count: 100_000 };

export interface RetentionOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly kept: () => DeliveryRetention;
  /** See DeliverySettings. */
  readonly retryScheduleS: () => readonly number[];
}

const FIRST_MS = 60_000;
const EVERY_MS = 3_600_000;
/** With their payloads some megabytes at most. */
const BATCH = 200;
const PAUSE_MS = 20;

/** Begins to look; `sweep` looks now and answers how many deliveries went. */
export function keepDeliveries(options: RetentionOptions): { sweep(): Promise<number>; close(): void } {
  const { storage, clock, logger, kept } = options;
  const units = storage.units.webhook;
  const closed = new AbortController();
  const { signal } = closed;
  let timer = globalThis.setTimeout(look, FIRST_MS).unref();

  function look(): void {
    sweep()
      .then((removed) => {
        if (removed > 0) logger.info("webhook.deliveries_removed", { deliveries: removed });
      })
      .catch((error: unknown) => {
        if (!signal.aborted) logger.error("webhook.retention_failed", { error: String(error) });
      })
      .finally(() => {
        if (!signal.aborted) timer = globalThis.setTimeout(look, EVERY_MS).unref();
      });
  }

  async function sweep(): Promise<number> {
    const { days, count } = kept();
    const scheduledS = options.retryScheduleS().reduce((sum, pause) => sum + pause, 0);
    const queuedBefore = rfc3339(clock.now() - days * DAY_MS - scheduledS * 1000);
    let removed = 0;
    for (const webhookId of await units.ids()) {
      for (let after: string | null = ""; after !== null && !signal.aborted; ) {
        const batch: { removed: number; next: string | null } = await units.pruneDeliveries({
          ...{ webhookId, queuedBefore, count, after, limit: BATCH },
        });
        removed += batch.removed;
        after = batch.next;
        if (after !== null) await setTimeout(PAUSE_MS, undefined, { ref: false });
      }
    }
    return removed;
  }

  return {
    sweep,
    close() {
      closed.abort();
      clearTimeout(timer);
    },
  };
}
