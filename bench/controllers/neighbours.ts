// What a controller feels while another one misbehaves: it is invoked steadily over HTTP, quiet and attacked phases in turn, so that what
// the machine does besides comes to both. First the ratio of the p99s, then that of the median phase. Beside them stands why: how long the daemon's main thread and the neighbour's
// cell ran, and how long they waited for a processor (percent of the phases' time, quiet -> attacked).
//   node build.js && node bench/controllers/neighbours.ts [--only REGEXP] [--rounds 4] [--phase 1300]
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { attacks } from "#test/controllers/attacks.ts";
import { startDaemon } from "./daemon.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "." },
    rounds: { type: "string", default: "4" },
    phase: { type: "string", default: "1300" },
    every: { type: "string", default: "4" },
    timeout: { type: "string", default: "1000" },
  },
});
const phaseMs = Number(values.phase);
const everyMs = Number(values.every);
const timeoutMs = Number(values.timeout);

const daemon = await startDaemon();
const headers = { "content-type": "application/json", authorization: `Bearer ${daemon.token}` };
const pool = new Pool(daemon.url, { connections: 8, pipelining: 1 });
await deploy("neighbour", "export default () => ({ ok: true });", {});
await neighbour(3_000);
const cell = await cellOf();
const attacker = fork(new URL("attacker.ts", import.meta.url), [daemon.url, daemon.token, String(timeoutMs)]);
await once(attacker, "message");

for (const [name, { handler, contract = {} }] of Object.entries(attacks)) {
  if (!new RegExp(values.only).test(name)) continue;
  const controller = `attack-${name.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase()}`;
  await deploy(controller, `export default async (request) => { ${handler} };`, {
    limits: { timeout_ms: timeoutMs, memory_mb: 64 },
    ...contract,
  });
  const quiet = newPhase();
  const attacked = newPhase();
  const outcomes = new Map<string, number>();
  const late: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    await measure(quiet);
    attacker.send({ controller });
    await measure(attacked);
    attacker.send({ stop: true });
    const [done] = (await once(attacker, "message")) as [{ outcomes: [string, number][]; late: number[] }];
    for (const [outcome, times] of done.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + times);
    late.push(...done.late);
    // What the last calls left behind, a new zygote among it.
    await sleep(300);
  }
  const [q, a] = [quantile(quiet.latencies, 0.99), quantile(attacked.latencies, 0.99)];
  const part = (of: (phase: Phase) => number): string =>
    `${percent(of(quiet), quiet)}>${percent(of(attacked), attacked)}`;
  console.log(
    [
      name.padEnd(36),
      `${(a / q).toFixed(2)}x`.padStart(7),
      `${(quantile(attacked.each, 0.5) / quantile(quiet.each, 0.5)).toFixed(2)}x`.padStart(7),
      `p99 ${q.toFixed(2)} > ${a.toFixed(2)}  p50 ${quantile(quiet.latencies, 0.5).toFixed(2)} > ${quantile(attacked.latencies, 0.5).toFixed(2)}  max ${Math.max(...attacked.latencies).toFixed(1)}`,
      `daemon ran ${part((one) => one.daemon.ran)} waited ${part((one) => one.daemon.waited)}`,
      `cell ran ${part((one) => one.cell.ran)} waited ${part((one) => one.cell.waited)}`,
      `client waited ${part((one) => one.client.waited)}`,
      `n ${attacked.latencies.length}`,
      late.length > 0 ? `late p50 ${quantile(late, 0.5).toFixed(1)} max ${Math.max(...late).toFixed(1)}` : "",
      [...outcomes].map((one) => one.join(" ")).join(", "),
    ].join(" | "),
  );
  await daemon.request(`/v1/controllers/${controller}`, { method: "DELETE" });
}
attacker.kill();
await pool.close();
await daemon.stop();

interface Schedule {
  ran: number;
  waited: number;
}
interface Phase {
  readonly latencies: number[];
  /** The p99 of each turn. */
  readonly each: number[];
  readonly daemon: Schedule;
  readonly cell: Schedule;
  readonly client: Schedule;
  ms: number;
}

function newPhase(): Phase {
  const none = (): Schedule => ({ ran: 0, waited: 0 });
  return { latencies: [], each: [], daemon: none(), cell: none(), client: none(), ms: 0 };
}

async function measure(phase: Phase): Promise<void> {
  const pids = { daemon: daemon.pid, cell, client: process.pid };
  const of = (pid: number): Schedule => schedule(pid);
  const before = { daemon: of(pids.daemon), cell: of(pids.cell), client: of(pids.client) };
  const began = performance.now();
  const latencies = await neighbour(phaseMs);
  phase.latencies.push(...latencies);
  phase.each.push(quantile(latencies, 0.99));
  phase.ms += performance.now() - began;
  for (const who of ["daemon", "cell", "client"] as const) {
    const now = of(pids[who]);
    phase[who].ran += now.ran - before[who].ran;
    phase[who].waited += now.waited - before[who].waited;
  }
}

/** Latencies of the neighbour, called every few milliseconds whatever happens. */
async function neighbour(ms: number): Promise<number[]> {
  const latencies: number[] = [];
  const open = new Set<Promise<void>>();
  const ends = performance.now() + ms;
  for (let next = performance.now(); next < ends; ) {
    const began = performance.now();
    const one: Promise<void> = invoke("neighbour").then(() => {
      latencies.push(performance.now() - began);
      open.delete(one);
    });
    open.add(one);
    next = Math.max(next + everyMs, performance.now());
    await sleep(Math.max(0, next - performance.now()));
  }
  await Promise.all(open);
  return latencies;
}

async function invoke(name: string): Promise<void> {
  const answer = await pool.request({
    path: `/v1/controllers/${name}/invoke`,
    method: "POST",
    headers,
    body: '{"input":{}}',
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(text);
}

async function deploy(name: string, handler: string, contract: object): Promise<void> {
  const whole = { name, version: "1.0.0", input_schema: true, output_schema: true, ...contract };
  daemon.write(`controllers/${name}/contract.yaml`, JSON.stringify(whole));
  daemon.write(`controllers/${name}/handler.ts`, handler);
  const folder = `${daemon.root}/controllers/${name}`;
  const artifact = await daemon.request("/v1/dev/builds", { method: "POST", body: JSON.stringify({ folder }) });
  const deployed = await daemon.request("/v1/controllers", { method: "POST", body: await artifact.text() });
  if (deployed.status !== 201) throw new Error(await deployed.text());
}

/** The daemon's child that works while the neighbour is called. */
async function cellOf(): Promise<number> {
  const pids = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === daemon.pid);
  const before = pids.map((pid) => schedule(pid).ran);
  await neighbour(300);
  const grown = pids.map((pid, at) => schedule(pid).ran - (before[at] ?? 0));
  return pids[grown.indexOf(Math.max(...grown))] as number;
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0;
  }
}

/** Milliseconds that a process's main thread ran, and waited for a processor. */
function schedule(pid: number): Schedule {
  try {
    const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ").map(Number);
    return { ran: ran / 1e6, waited: waited / 1e6 };
  } catch {
    return { ran: Number.NaN, waited: Number.NaN };
  }
}

function percent(ms: number, phase: Phase): string {
  return ((ms / phase.ms) * 100).toFixed(0);
}

function quantile(of: readonly number[], q: number): number {
  return [...of].sort((a, b) => a - b)[Math.floor((of.length - 1) * q)] ?? Number.NaN;
}
