// kill -9 of the daemon at random moments of `magic dev`, seeded: the session comes back, a command finds it, no cell is orphaned.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DevProcess, startDev } from "./dev-process.ts";
import { createSandbox, type Sandbox } from "./magic.ts";

const KILLS = Number(process.env["MAGIC_TEST_KILLS"] ?? 50);
const SEED = Number(process.env["MAGIC_TEST_SEED"] ?? 7);

let box: Sandbox;
let dev: DevProcess;
beforeAll(async () => {
  box = createSandbox();
  await box.magic(["scaffold", "--name", "hello"]);
  await box.magic(["config", "set", "daemon.port", "0"]);
  dev = startDev(box);
  await dev.next("ready");
});
afterAll(async () => {
  dev?.child.kill("SIGKILL");
  await box.dispose();
});

/** mulberry32: the same moments for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Cells that are not among `before`, with their parents. */
function cells(before: ReadonlySet<string>): { pid: string; parent: number }[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || before.has(pid)) return [];
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("cell-")) return [];
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return [{ pid, parent: Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]) }];
    } catch {
      return [];
    }
  });
}

test(`${KILLS} kills: every time a command answers afterwards, and no cell is left`, async () => {
  const next = random(SEED);
  const before = new Set(cells(new Set()).map(({ pid }) => pid));
  const handler = join(box.folder, "controllers", "hello", "handler.ts");
  const source = readFileSync(handler, "utf8");
  for (let round = 0; round < KILLS; round++) {
    const status = JSON.parse((await box.magic(["daemon", "status", "--json"])).stdout);
    if (next() < 0.5) writeFileSync(handler, source.replace("Hello", `Hello ${round}`));
    const invoking = box.magic(["invoke", "hello", "--input", '{"name":"Ada"}', "--json"]);
    await sleep(next() * 400);
    if (typeof status.pid === "number") process.kill(status.pid, "SIGKILL");
    await invoking;
    // The back-off after crashes is for daemons that commands start unasked; this one is asked for.
    const started = await box.magic(["daemon", "start", "--json"]);
    expect(started.code, started.stderr).toBe(0);
    await dev.next("ready", () => true, 90_000);
    const answer = await box.magic(["invoke", "hello", "--input", '{"name":"Ada"}', "--json"]);
    expect(answer.code, `round ${round}: ${answer.stderr}`).toBe(0);
    const found = cells(before);
    expect(found.length).toBeGreaterThan(0);
    expect(
      found.filter(({ parent }) => parent === 1),
      `round ${round}`,
    ).toEqual([]);
  }
  expect((await box.magic(["doctor", "--json"])).code).toBe(0);
});
