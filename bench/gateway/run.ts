// What the gateway costs over a bare passthrough, everything on: authentication, limits, a budget, routing, ledger, metrics, logs,
// traces. CPU is user and system time of the whole process, from /proc (Linux). Trust the ratios, not the absolute figures.
//   node build.js && node bench/gateway/run.ts [--seconds 5] [--rounds 3] [--only json-c32,...]
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { nodeFlags } from "#client/daemon/spawn.ts";
import { cpuOf, median } from "../measure.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    only: { type: "string" },
    prof: { type: "boolean", default: false },
  },
});
const here = import.meta.dirname;
const [UPSTREAM, PASSTHROUGH, MAGIC] = [19_100, 19_200, 19_300];
const message = {
  role: "user",
  content: "Say in one sentence why a gateway in front of several model providers is useful.",
};
const long = Array.from({ length: 63 }, (_, i) => ({
  role: i % 2 ? "assistant" : "user",
  content: `turn ${i}: ${'a line of a longer conversation with "quotes" and a newline\n'.repeat(16)}`,
}));
const base = { model: "openai/gpt-4o-mini", temperature: 0.7, max_tokens: 256, user: "bench" };
const small = JSON.stringify({ ...base, messages: [message] });
const scenarios = {
  "json-c32": { body: small, connections: 32, rate: 0, per: "requests" },
  "json-64k-c32": {
    body: JSON.stringify({ ...base, messages: [...long, message] }),
    connections: 32,
    rate: 0,
    per: "requests",
  },
  "sse-paced": {
    body: JSON.stringify({ ...base, stream: true, messages: [message] }),
    connections: 64,
    rate: 0,
    per: "events",
  },
  "json-500rps": { body: small, connections: 64, rate: 500, per: "requests" },
} as const;

const children: ChildProcess[] = [];
const folder = mkdtempSync(join(tmpdir(), "magic-bench-"));

async function tokenOf(runtimeFile: string): Promise<string> {
  while (!existsSync(runtimeFile)) await new Promise((resolve) => setTimeout(resolve, 50));
  return (JSON.parse(readFileSync(runtimeFile, "utf8")) as { gateway_token: string }).gateway_token;
}

async function start(args: readonly string[], env: Record<string, string>, speaks = true): Promise<ChildProcess> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  if (child.stdout && speaks)
    await new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  return child;
}

interface Target {
  readonly name: string;
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

interface Measured {
  readonly cpu: number;
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
  readonly failures: number;
}

async function measure(target: Target, name: keyof typeof scenarios, seconds: number): Promise<Measured> {
  const { per, ...load } = scenarios[name];
  const job = JSON.stringify({ ...load, url: target.url, token: target.token, seconds });
  const before = cpuOf(target.pid);
  const child = spawn(process.execPath, [join(here, "load.ts"), job], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const part of child.stdout) text += String(part);
  const seen = JSON.parse(text) as { requests: number; events: number; failures: number; p50: number; p99: number };
  const cpu = (cpuOf(target.pid) - before) / Math.max(1, seen[per]);
  return { cpu, p50: seen.p50, p99: seen.p99, perSecond: seen.requests / seconds, failures: seen.failures };
}

async function targets(): Promise<readonly [Target, Target]> {
  await start([join(here, "upstream.ts")], { PORT: String(UPSTREAM) });
  const upstream = `http://127.0.0.1:${UPSTREAM}`;
  const bare = await start([join(here, "passthrough.ts")], { PORT: String(PASSTHROUGH), UPSTREAM: upstream });
  writeFileSync(
    join(folder, "magic.yaml"),
    JSON.stringify({
      version: 1,
      gateway: {
        providers: { openai: { api_key: "bench", base_url: `${upstream}/v1` } },
        limits: { requests_per_minute: 100_000_000, tokens_per_minute: 1_000_000_000, concurrent: 10_000 },
        budgets: [{ scope: "user", name: "bench", usd: 1_000, per: "month" }],
      },
      egress: { allow_private: [`127.0.0.1:${UPSTREAM}`] },
    }),
  );
  const dist = join(here, "../../dist/daemon.js");
  const profile = values.prof ? ["--cpu-prof", `--cpu-prof-dir=${tmpdir()}/magic-prof`] : [];
  const env = { MAGIC_HOME: join(folder, "home") };
  const daemon = await start([...nodeFlags, ...profile, dist, "--root", folder, "--port", String(MAGIC)], env, false);
  const token = await tokenOf(join(folder, ".magic", "daemon.json"));
  return [
    { name: "passthrough", url: `http://127.0.0.1:${PASSTHROUGH}`, token: "x", pid: bare.pid ?? 0 },
    { name: "magic", url: `http://127.0.0.1:${MAGIC}`, token, pid: daemon.pid ?? 0 },
  ];
}

try {
  const [bare, magic] = await targets();
  const names = (values.only?.split(",") ?? Object.keys(scenarios)) as (keyof typeof scenarios)[];
  const seconds = Number(values.seconds);
  for (const target of [bare, magic]) await measure(target, "json-c32", 4);
  console.log(
    "scenario       CPU ratio   CPU us (bare, magic)   added p50 ms   p99 ms (bare, magic)   per s (bare, magic)   failures",
  );
  for (const name of names) {
    const rounds: [Measured, Measured][] = [];
    for (let round = 0; round < Number(values.rounds); round++)
      rounds.push([await measure(bare, name, seconds), await measure(magic, name, seconds)]);
    const of = (which: 0 | 1, what: keyof Measured) => median(rounds.map((round) => round[which][what]));
    const ratio = median(rounds.map(([a, b]) => b.cpu / a.cpu));
    const pair = (what: keyof Measured, digits: number, factor = 1) =>
      `${(of(0, what) * factor).toFixed(digits)}, ${(of(1, what) * factor).toFixed(digits)}`;
    console.log(
      [
        name.padEnd(14),
        `${ratio.toFixed(2)}x`.padStart(9),
        pair("cpu", 1, 1000).padStart(22),
        (of(1, "p50") - of(0, "p50")).toFixed(2).padStart(14),
        pair("p99", 1).padStart(22),
        pair("perSecond", 0).padStart(21),
        String(of(1, "failures")).padStart(10),
      ].join(" "),
    );
  }
} finally {
  for (const child of children) child.kill(values.prof ? "SIGTERM" : "SIGKILL");
  await new Promise((resolve) => setTimeout(resolve, values.prof ? 3_000 : 200));
  rmSync(folder, { recursive: true, force: true });
}
