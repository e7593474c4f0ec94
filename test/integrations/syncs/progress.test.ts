// What a run says of its way.
import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { aheadOf } from "#shared/sync-progress.ts";
import { runInWorker } from "#shared/sync-worker.ts";
import { specOf } from "./harness.ts";

test("a run's share, part and time left are told while it reads, as far as they are known", () => {
  const progress = {
    phase: "read",
    records_read: 250,
    records_written: 0,
    records_rejected: 0,
    bytes: 1,
    records_total: 1000,
    partitions: { done: 1, total: 4 },
    waiting_for: "rows",
  } as const;
  expect(aheadOf(progress, 10)).toBe("25 % of about 1,000 records, part 2 of 4, about 30 s left");
  expect(aheadOf({ ...progress, partitions: { done: 0, total: 1 }, records_read: 2000 }, 10)).toBe(
    "99 % of about 1,000 records",
  );
  expect(aheadOf({ ...progress, records_total: null }, 10)).toBe("");
  expect(aheadOf({ ...progress, phase: "merge" }, 10)).toBe("");
});

test("a worker that computes without an end cannot say that it stalls: it is ended, and not begun again", async () => {
  let started = 0;
  const outcome = await runInWorker(specOf({ from: "", object: "", to: "", table: "" }, { stall_timeout_s: 0.1 }), {
    signal: new AbortController().signal,
    onProgress: () => {},
    silenceMs: 100,
    start: () => {
      started++;
      return spawn(process.execPath, ["-e", "for (;;);"], { stdio: ["ignore", "ignore", "ignore", "ipc"] });
    },
  });
  expect(outcome).toMatchObject({ status: "failed", error: { code: "run_stalled" } });
  expect(started).toBe(1);
});

test("a run whose process is lost again and again counts what its checkpoints had committed", async () => {
  const progress = { phase: "read", records_read: 250, records_written: 199, records_rejected: 1, bytes: 5 };
  const script = `process.send({ type: "progress", progress: ${JSON.stringify(progress)} }, () => process.exit(1))`;
  const outcome = await runInWorker(specOf({ from: "", object: "", to: "", table: "" }), {
    signal: new AbortController().signal,
    onProgress: () => {},
    start: () => spawn(process.execPath, ["-e", script], { stdio: ["ignore", "ignore", "ignore", "ipc"] }),
  });
  expect(outcome).toMatchObject({
    error: { code: "worker_lost" },
    records_read: 250,
    records_synced: 199,
    changed: true,
  });
});
