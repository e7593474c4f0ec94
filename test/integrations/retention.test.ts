// What would grow for ever, and does not.
import { expect, onTestFinished, test, vi } from "vitest";
import { keepDeliveries } from "#daemon/integrations/webhooks/retention.ts";
import type { DeliveryRecord } from "#daemon/storage/tables/webhook.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { temporaryStorage } from "#test/temporary.ts";

test("deliveries of every webhook go some days after the schedule has ended, in as many batches as it takes", async () => {
  const storage = await temporaryStorage();
  const environment = "live" as const;
  const start = "2026-01-01T00:00:00.000Z";
  for (const id of ["wh_1", "wh_2"])
    await storage.units.webhook.create({
      webhook: {
        ...{ id, environment, url: "https://a", events: [], status: "enabled", description: null, secrets: "" },
        ...{ succeeded_at: null, revision: 1, created_at: start, updated_at: start },
      },
    });
  const left = async (webhookId: string) =>
    (await storage.units.webhook.listDeliveries({ webhookId, page: { limit: 1000 } })).rows.length;
  for (const [webhookId, count] of [
    ["wh_1", 450],
    ["wh_2", 3],
  ] as const)
    await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const event = { environment, type: "test", data: {}, now: start, webhookId, eventId: `evt_${i}` };
        const { id } = (await storage.units.webhook.deliver(event)) as DeliveryRecord;
        const end = { status: "succeeded" as const, attempt: null, nextAttemptAt: null, disable: null, now: start };
        if (i > 0) await storage.units.webhook.recordAttempt({ id, queuedAt: start, ...end });
      }),
    );
  let now = Date.parse(start);
  const day = 86_400_000;
  const kept = { days: 30, count: 440 };
  const logger = createLogger({ sinks: [] });
  const clock = { now: () => now, monotonic: () => now };
  const retention = keepDeliveries({ storage, logger, clock, kept: () => kept, retryScheduleS: () => [0, 2 * 86_400] });
  onTestFinished(retention.close);
  // Ten are too many, of which one is pending.
  expect(await retention.sweep()).toBe(9);
  now += 31.9 * day;
  expect(await retention.sweep()).toBe(0);
  now += 0.2 * day;
  expect(await retention.sweep()).toBe(440 + 2);
  expect([await left("wh_1"), await left("wh_2")]).toEqual([1, 1]);
  // By itself too.
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const looked = vi.fn(() => kept);
  const own = keepDeliveries({ storage, logger, clock, kept: looked, retryScheduleS: () => [0] });
  onTestFinished(own.close);
  vi.advanceTimersByTime(60_000);
  expect(looked).toHaveBeenCalledTimes(1);
});
