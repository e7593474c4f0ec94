// Refresh tokens that rotate: what takes its time.
import { expect, test } from "vitest";
import { latch, startRotating, storedConnections, workers } from "./rotation.ts";
import { ended, live, trigger } from "./runs.ts";

test.skipIf(process.platform !== "linux")(
  "a rotated token outlives a killed worker and a restart, is shared by runs at the same time, and lies sealed",
  async () => {
    const { vendor, root, daemon, start, source, newSync } = await startRotating(true);
    const [one, two] = [await newSync("one"), await newSync("two")];
    const runs = await Promise.all([trigger(daemon, one), trigger(daemon, two)]);
    for (const run of runs) expect(await ended(daemon, run)).toMatchObject({ status: "completed", records_synced: 3 });
    expect(vendor).toMatchObject({ granted: 1, reused: 0 });

    // The worker is killed after it has refreshed and read a page: the one that takes over finds the new token.
    vendor.expire();
    const [reached, hold] = [latch(), latch()];
    vendor.beforePage = async (page) => {
      if (page !== "2") return;
      reached.release();
      await hold.open;
    };
    const run = await trigger(daemon, one);
    await reached.open;
    vendor.beforePage = async () => {};
    vendor.expire();
    for (const pid of workers()) process.kill(pid, "SIGKILL");
    hold.release();
    expect(await ended(daemon, run)).toMatchObject({ status: "completed", records_synced: 3 });
    expect(vendor).toMatchObject({ granted: 3, reused: 0 });

    // Other settings leave it; a check uses it.
    await daemon.call("PATCH", `/v1/connections/${source}`, { config: { start: "2026-01-01" } }, live);
    const { body: checked } = await daemon.call("POST", `/v1/connections/${source}/check`, undefined, live);
    expect(checked).toMatchObject({ status: "connected" });
    await daemon.close();
    expect(JSON.stringify(storedConnections(root))).not.toContain("canary");

    vendor.expire();
    const again = await start();
    expect(await ended(again, await trigger(again, two))).toMatchObject({ status: "completed" });
    expect(vendor).toMatchObject({ granted: 4, reused: 0 });
  },
  120_000,
);

test("a run that is cancelled while the vendor replaces its token loses nothing; a new grant takes the place of the old", async () => {
  const { vendor, daemon, source, newSync } = await startRotating(false);
  const sync = await newSync("one");
  const [asked, hold] = [latch(), latch()];
  vendor.beforeToken = async () => {
    asked.release();
    await hold.open;
  };
  const run = await trigger(daemon, sync);
  await asked.open;
  await daemon.call("POST", `/v1/runs/${run}/cancel`, undefined, live);
  // Longer than a cancelled worker that waits for nothing is left alive.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  vendor.beforeToken = async () => {};
  hold.release();
  expect(await ended(daemon, run)).toMatchObject({ status: "canceled" });
  vendor.expire();
  expect(await ended(daemon, await trigger(daemon, sync))).toMatchObject({ status: "completed" });
  expect(vendor).toMatchObject({ granted: 2, reused: 0 });

  vendor.expire();
  const credentials = { refresh_token: `refresh-canary-${vendor.granted}` };
  await daemon.call("PATCH", `/v1/connections/${source}`, { credentials }, live);
  expect(await ended(daemon, await trigger(daemon, sync))).toMatchObject({ status: "completed" });
  expect(vendor).toMatchObject({ granted: 3, reused: 0 });
}, 120_000);
