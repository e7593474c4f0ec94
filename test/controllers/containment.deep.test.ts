// One controller misbehaves, its neighbour is called all the while: how late its own callers are answered, and what the neighbour feels.
import { execFileSync } from "node:child_process";
import { getPriority } from "node:os";
import { expect, test } from "vitest";
import { type Bench, openBench, settle } from "./harness.ts";

const TIMEOUT_MS = 1_000;
const attacks: Record<string, string> = {
  "a loop": "for (;;);",
  "a regular expression": "/^(a+)+$/.test('a'.repeat(40) + 'b');",
  "Atomics.wait": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
  "a loop of microtasks": "const spin = () => Promise.resolve().then(spin); await spin();",
  "a loop of immediates": "const spin = () => setImmediate(spin); spin(); await new Promise(() => {});",
  "a loop after the answer": "setImmediate(() => { for (;;); }); return {};",
  "a heap bomb": "const a = []; for (;;) a.push({ x: new Array(100).fill(Math.random()) });",
  "a bomb of buffers": "const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1));",
  "a flood of log lines": "for (;;) { for (let i = 0; i < 500; i++) request.log.info('x'.repeat(1000)); await null; }",
  "a flood of broker calls":
    "for (;;) { for (let i = 0; i < 100; i++) request.kv.get('k').catch(() => {}); await new Promise(setImmediate); }",
  "a flood of the console": "for (;;) { console.log('y'.repeat(100000)); await null; }",
  "a flood of rejections":
    "for (;;) { for (let i = 0; i < 200; i++) Promise.reject(new Error('z')); await new Promise(setImmediate); }",
  "a flood of timers": "for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1); await new Promise(() => {});",
  "an output of 8 MB, again and again": "return 'o'.repeat((8 << 20) - 10);",
  "an output too large": "return 'o'.repeat(40 << 20);",
  "a promise that never settles": "await new Promise(() => {});",
};

function quantile(values: readonly number[], q: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * q)] ?? Number.NaN;
}

/** Latencies of the neighbour, called every 5 ms whatever happens, while `until` runs. */
async function neighbour(bench: Bench, until: Promise<unknown>): Promise<number[]> {
  const latencies: number[] = [];
  const open = new Set<Promise<void>>();
  let going = true;
  void until.finally(() => {
    going = false;
  });
  while (going) {
    const began = performance.now();
    const one: Promise<void> = bench.invoke("neighbour").then(() => {
      latencies.push(performance.now() - began);
      open.delete(one);
    });
    open.add(one);
    await new Promise((done) => setTimeout(done, 5));
  }
  await Promise.all(open);
  return latencies;
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

test("whatever a controller does, its callers are answered at the deadline and its neighbour goes on", async () => {
  const bench = await openBench();
  await bench.deploy("neighbour", "export default () => ({ ok: true });");
  await bench.invoke("neighbour");
  await neighbour(bench, sleep(1_000));
  const lines: string[] = [];
  const lateness: number[] = [];
  for (const [name, attack] of Object.entries(attacks)) {
    const controller = `a${lines.length}`;
    await bench.deploy(controller, `export default async (request) => { ${attack} };`, {
      limits: { timeout_ms: TIMEOUT_MS, memory_mb: 64 },
    });
    const quiet = quantile(await neighbour(bench, sleep(1_500)), 0.99);
    const outcomes = new Map<string, number>();
    const attacking = Promise.all(
      Array.from({ length: 4 }, async (_, turn) => {
        await sleep(turn * 200);
        const began = performance.now();
        const outcome = await bench.outcome(controller);
        const late = performance.now() - began - TIMEOUT_MS;
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        if (outcome === "timeout") lateness.push(late);
        // Nobody waits beyond the deadline, whatever the outcome.
        expect(late, `${name}: ${outcome}`).toBeLessThan(1_000);
      }),
    );
    const attacked = quantile(await neighbour(bench, attacking), 0.99);
    lines.push(
      `${name}: neighbour's p99 ${quiet.toFixed(1)} -> ${attacked.toFixed(1)} ms (${(attacked / quiet).toFixed(1)}x); ${JSON.stringify([...outcomes])}`,
    );
    bench.logs.length = 0;
    expect(await bench.outcome("neighbour"), name).toBe("ok");
    // The figure to hold is 2x on an idle machine; this must hold on a busy one.
    expect(attacked, name).toBeLessThan(Math.max(250, quiet * 10));
    await bench.runtime.remove(controller);
  }
  process.stdout.write(
    `${lines.join("\n")}\nanswered after the deadline: p50 ${quantile(lateness, 0.5).toFixed(1)}, p95 ${quantile(lateness, 0.95).toFixed(1)}, max ${quantile(lateness, 1).toFixed(1)} ms\n`,
  );
  expect(quantile(lateness, 0.5)).toBeLessThan(50);
});

test("a cell that takes a core for itself, though it yields, comes after its neighbours", async () => {
  const bench = await openBench();
  await bench.deploy(
    "greedy",
    "export default async () => { for (const end = Date.now() + 8_000; Date.now() < end; ) { for (let i = 0; i < 1e6; i++) Math.sqrt(i); await new Promise(setImmediate); } return 1; };",
  );
  const call = bench.outcome("greedy");
  const children = (): string[] =>
    execFileSync("pgrep", ["-P", String(process.pid)], { encoding: "utf8" })
      .trim()
      .split("\n");
  // A busy machine may not give it a core at once.
  expect(await settle(() => children().some((pid) => getPriority(Number(pid)) === 10), 8_000)).toBe(true);
  expect(await call).toBe("ok");
});
