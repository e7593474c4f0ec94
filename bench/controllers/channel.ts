// The runtime without HTTP: what an invocation costs in the daemon's process and in the cell, how long its way through the channel takes,
// and how soon a zygote answers for the first time.
//   node bench/controllers/channel.ts [--calls 40000] [--clients 32]
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Scope, scopes } from "#contract/identity.ts";
import { type Cell, type CellOutcome, startCell } from "#daemon/controllers/cell/cell.ts";
import { allLayers } from "#daemon/controllers/cell/lockdown/boot.ts";
import { createRuntime } from "#daemon/controllers/create-runtime.ts";
import { cpuMilliseconds } from "#daemon/controllers/serving/watchdog.ts";
import { openStorage } from "#daemon/storage/open.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createMetrics } from "#daemon/telemetry/metrics.ts";
import { createTracer } from "#daemon/telemetry/trace.ts";
import { systemClock } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { quantile } from "./daemon.ts";
import { handlerSource, inputSchema, outputSchema } from "./subject.ts";

const { values } = parseArgs({
  options: { calls: { type: "string", default: "40000" }, clients: { type: "string", default: "32" } },
});
const calls = Number(values.calls);
const principal = {
  type: "local",
  id: null,
  environment: "sandbox",
  scopes: new Set<Scope>(scopes),
  tier: "starter",
} as const;
const ports = { llm: null, egress: null, databases: null, secrets: null, kv: null, syncs: null };
const root = mkdtempSync(join(tmpdir(), "magic-bench-"));
const storage = await openStorage({ root });
let lines = 0;
const log = createLogger({ sinks: [() => lines++] });
const services = { root, storage, log, metrics: createMetrics(), tracer: createTracer(), clock: systemClock };
const runtime = createRuntime({ ...services, ports });
const contract = {
  name: "echo",
  version: "1.0.0",
  input_schema: inputSchema,
  output_schema: outputSchema,
  limits: { concurrency: 64 },
};
mkdirSync(join(root, "controllers/echo"), { recursive: true });
writeFileSync(join(root, "controllers/echo/contract.yaml"), JSON.stringify(contract));
writeFileSync(join(root, "controllers/echo/handler.ts"), handlerSource);
const artifact = await runtime.build(join(root, "controllers/echo"));
await runtime.deploy(artifact);
const invoke = (): Promise<unknown> =>
  runtime.invoke("echo", { input: { text: "does it work?" }, requestId: newId("req"), principal });

async function run(clients: number, most: number): Promise<number> {
  let left = most;
  const before = process.cpuUsage();
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) await invoke();
    }),
  );
  const { user, system } = process.cpuUsage(before);
  return (user + system) / most;
}
await run(Number(values.clients), 5_000);
console.log(`load ${loadavg()[0]?.toFixed(1)}`);
console.log(
  `${values.clients} in flight: ${(await run(Number(values.clients), calls)).toFixed(1)} µs of the daemon's processor a call`,
);
const alone: number[] = [];
for (let i = 0; i < 5_000; i++) {
  const began = performance.now();
  await invoke();
  alone.push((performance.now() - began) * 1000);
}
console.log(`one in flight, with all checks: p50 ${quantile(alone, 0.5)} p99 ${quantile(alone, 0.99)} µs`);
await runtime.close(1_000);
await storage.close();
rmSync(root, { recursive: true, force: true });

const trips: number[] = [];
const cold: Record<string, number[]> = { "a small bundle": [], "a bundle of 130 kB": [] };
const message = { input: { text: "?" }, id: "req_1", deadline: Date.now() + 60_000, environment: "sandbox" };
const call = { message, broker: () => ({ call: () => Promise.reject(new Error("none")), close() {} }), onLog() {} };
const outcomeOf = (cell: Cell): Promise<CellOutcome> =>
  new Promise((onEnd, onGone) => {
    cell.invoke({ ...call, onEnd, onGone });
  });
const ballast = Array.from(
  { length: 1_300 },
  (_, n) => `exports.f${n} = function (a, b) { return a * ${n} + b; /* ${"x".repeat(40)} */ };`,
);
for (let round = 0; round < 12; round++)
  for (const [name, code] of [
    ["a small bundle", artifact.code],
    ["a bundle of 130 kB", `${ballast.join("\n")}\n${artifact.code}`],
  ] as const) {
    const cell = await startCell(allLayers);
    // A zygote in a pool has been idle for a while.
    await new Promise((done) => setTimeout(done, 50));
    const began = performance.now();
    await cell.load(
      { controller: "echo", version: "1.0.0", filename: "echo.magic.js", memoryBytes: 128 * 2 ** 20 },
      code,
      () => {},
    );
    await outcomeOf(cell);
    cold[name]?.push(performance.now() - began);
    if (round === 11) {
      for (let i = 0; i < 20_000; i++) {
        const at = performance.now();
        await outcomeOf(cell);
        if (i > 2_000) trips.push((performance.now() - at) * 1000);
      }
      console.log(
        `the cell's processor: ${((cpuMilliseconds(cell.pid) * 1000) / 20_000).toFixed(1)} µs a call, its start included`,
      );
    }
    cell.kill("killed", "done");
    await cell.gone;
  }
console.log(`round trip through the channel: p50 ${quantile(trips, 0.5)} p99 ${quantile(trips, 0.99)} µs`);
for (const [name, list] of Object.entries(cold))
  console.log(`zygote to first answer, ${name}: p50 ${quantile(list, 0.5)} p95 ${quantile(list, 0.95)} ms`);
process.exit();
