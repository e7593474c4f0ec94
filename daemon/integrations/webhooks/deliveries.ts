// Sends what the queue holds: signed, bounded, through the egress guard, again by the schedule until it is taken or given up.
import { setTimeout } from "node:timers/promises";
import { isMagicError } from "#contract/errors.ts";
import type { Egress } from "#daemon/egress/egress.ts";
import type { Jobs } from "#daemon/jobs/jobs.ts";
import type { Job, Outcome } from "#daemon/jobs/queue.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Attempt, DeliveryRecord, WebhookRecord } from "#daemon/storage/tables/webhook.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { retryAfterSeconds } from "../retry-after.ts";
import { type SigningSecret, signedHeaders } from "./signature.ts";

export interface DeliverySettings {
  /** Seconds before each attempt: as many attempts as there are numbers. */
  readonly retryScheduleS: readonly number[];
  readonly timeoutS: number;
}

/** 10 attempts over about three days. */
export const defaultSettings: DeliverySettings = {
  retryScheduleS: [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
  timeoutS: 15,
};

export interface DeliveriesOptions {
  readonly storage: Storage;
  readonly jobs: Jobs;
  readonly egress: Egress;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: () => DeliverySettings;
  readonly secretsOf: (webhook: WebhookRecord) => readonly SigningSecret[];
}

/** Seconds that a receiver may ask for by Retry-After. */
const LONGEST_WAIT_S = 86_400;
/** Of an answer that are read, so that its connection serves again. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** Attempts at one receiver at a time; and receivers. Who does not answer holds up nobody's deliveries but its own. */
const PARALLEL = 16;
const RECEIVERS = 32;
/** Milliseconds after which a webhook that is being sent something is looked at for more. */
const LOOK_MS = 250;
/** Milliseconds after which one webhook's deliveries are no longer begun while others may wait for its place. */
const TURN_MS = 5_000;

/** Defines the queue; answers how to wake it. */
export function createDeliveries(options: DeliveriesOptions): { wake(): void } {
  const { storage, jobs, egress, clock, logger, settings, secretsOf } = options;
  const units = storage.units.webhook;
  // No attempt is put further ahead: one that lies there was put before the clock was set back, or by a schedule of days that is shorter
  // now, and is due. A minute is what a clock is corrected by without anybody noticing.
  const aheadMs = (): number => Math.max(LONGEST_WAIT_S, ...settings().retryScheduleS) * 1000 + 60_000;
  let turns = 0;
  return jobs.define<{ webhook: string }>("webhook", {
    ...{ concurrency: RECEIVERS, aheadMs },
    handle(job) {
      turns++;
      return turn(job).finally(() => turns--);
    },
  });

  // Sends what is due at one webhook until nothing is; or until others may have its place, who wait only where all places are taken.
  async function turn({ payload, signal }: Job<{ webhook: string }>): Promise<Outcome> {
    const webhookId = payload.webhook;
    const underWay = new Map<string, Promise<void>>();
    const failures: unknown[] = [];
    const turnEnds = clock.monotonic() + TURN_MS;
    const due = async (limit: number) => {
      const except = [...underWay.keys()];
      const now = clock.now();
      const reach = { now: rfc3339(now), ahead: rfc3339(now + aheadMs()) };
      return limit === 0 ? [] : units.dueDeliveries({ webhookId, ...reach, limit, except });
    };
    const failed = (error: unknown): void => void failures.push(error);
    for (;;) {
      const ended = signal.aborted || failures.length > 0 || (turns >= RECEIVERS && clock.monotonic() > turnEnds);
      const more = await due(ended ? 0 : PARALLEL - underWay.size).catch(failed);
      for (const delivery of more ?? []) {
        const attempt = deliver(delivery, signal).catch(failed);
        underWay.set(
          delivery.id,
          attempt.finally(() => underWay.delete(delivery.id)),
        );
      }
      if (underWay.size === 0) break;
      await Promise.race([...underWay.values(), setTimeout(LOOK_MS, undefined, { ref: false })]);
    }
    if (failures.length > 0) throw failures[0];
    const next = await units.nextAttempt({ webhookId });
    return next === null ? undefined : { runAgainAt: Math.max(Date.parse(next), clock.now()) };
  }

  async function deliver(delivery: DeliveryRecord, signal: AbortSignal): Promise<void> {
    const webhook = await units.get({ id: delivery.webhook_id, environment: delivery.environment });
    if (webhook === null) return;
    const made = delivery.attempts.length - delivery.attempts_before;
    // Who asks for a redelivery wants to see whether the receiver is well again: its first attempt goes out all the same.
    const asked = made === 0 && delivery.attempts_before > 0;
    if (webhook.status === "disabled" && !asked) {
      await record(delivery, "failed", attemptOf(clock.now(), 0, null, "the webhook is disabled"), null, null);
      return;
    }
    const { retryScheduleS, timeoutS } = settings();
    const firstMs = (retryScheduleS[0] ?? 0) * 1000;
    const firstAt = Date.parse(delivery.queued_at) + firstMs;
    if (made === 0 && firstAt > clock.now() && firstAt <= clock.now() + firstMs) {
      await units.defer({ id: delivery.id, until: rfc3339(firstAt) });
      return;
    }

    const { attempt, retryAfterS } = await send(webhook, delivery, timeoutS * 1000, signal);
    if (signal.aborted && attempt.response_code === null) return;
    const code = attempt.response_code ?? 0;
    if (code >= 200 && code < 300) {
      await record(delivery, "succeeded", attempt, null, null);
      return;
    }
    const pauseS = retryScheduleS[made + 1];
    if (code === 410 || pauseS === undefined) {
      await record(delivery, "failed", attempt, null, code === 410 ? "gone" : "exhausted");
      return;
    }
    const next = clock.now() + Math.max(pauseS, retryAfterS) * 1000;
    await record(delivery, "pending", attempt, rfc3339(next), null);
  }

  async function send(
    webhook: WebhookRecord,
    { event_id, payload }: DeliveryRecord,
    timeoutMs: number,
    signal: AbortSignal,
  ) {
    const at = clock.now();
    const started = clock.monotonic();
    try {
      const { status, headers } = await egress.request(webhook.url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "user-agent": "magic-webhooks",
          ...signedHeaders(event_id, at, payload, secretsOf(webhook)),
        },
        body: payload,
        timeoutMs,
        maxBytes: MAX_RESPONSE_BYTES,
        ignoreBody: true,
        signal,
      });
      const error =
        status >= 200 && status < 300
          ? null
          : status >= 300 && status < 400
            ? "redirects are not followed"
            : `answered ${status}`;
      return {
        attempt: attemptOf(at, clock.monotonic() - started, status, error),
        retryAfterS: Math.min(LONGEST_WAIT_S, retryAfterSeconds(headers["retry-after"], at) ?? 0),
      };
    } catch (error) {
      const detail = isMagicError(error) ? (error as Error).message : String(error);
      return { attempt: attemptOf(at, clock.monotonic() - started, null, detail), retryAfterS: 0 };
    }
  }

  async function record(
    { id, webhook_id, event_id, queued_at: queuedAt }: DeliveryRecord,
    status: "pending" | "succeeded" | "failed",
    attempt: Attempt,
    nextAttemptAt: string | null,
    disable: "gone" | "exhausted" | null,
  ): Promise<void> {
    const now = rfc3339(clock.now());
    const disabled = await units.recordAttempt({ id, queuedAt, status, attempt, nextAttemptAt, disable, now });
    if (status === "failed")
      logger.warn("webhook.delivery_failed", { webhook: webhook_id, event_id, detail: attempt.error });
    if (disabled) logger.warn("webhook.disabled", { webhook: webhook_id, reason: disable });
  }
}

function attemptOf(at: number, durationMs: number, response_code: number | null, error: string | null): Attempt {
  return { at: rfc3339(at), response_code, duration_ms: Math.round(durationMs), error: error?.slice(0, 500) ?? null };
}
