// What GET /v1/syncs/:id costs with authentication, rate limit and audit log on, over the same read in bare Fastify. Every round
// has a daemon of its own, since the limit (professional: 10,000 a minute) outlives restarts. CPU is user and system time of the
// whole process, from /proc (Linux); trust the ratios.
//   node build.js && node bench/api/run.ts [--requests 9000] [--rounds 5] [--connections 32] [--prof]
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
    requests: { type: "string", default: "9000" },
    rounds: { type: "string", default: "5" },
    connections: { type: "string", default: "32" },
    prof: { type: "boolean", default: false },
  },
});
const requests = Number(values.requests);
const connections = Number(values.connections);
const here = import.meta.dirname;
const [DAEMON, BARE] = [19_400, 19_500];

interface Measured {
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly failures: number;
}

async function measure(pid: number, port: number, path: string, token: string, count: number): Promise<Measured> {
  const job = JSON.stringify({ url: `http://127.0.0.1:${port}`, path, token, connections, requests: count });
  const before = cpuOf(pid);
  const child = spawn(process.execPath, [join(here, "load.ts"), job], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const part of child.stdout) text += String(part);
  // What is written behind the answers belongs to them.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const { seconds, ...seen } = JSON.parse(text) as { seconds: number; p50: number; p99: number; failures: number };
  return { ...seen, cpuUs: ((cpuOf(pid) - before) * 1000) / count, perSecond: count / seconds };
}

async function round(): Promise<{ magic: Measured; bare: Measured }> {
  const folder = mkdtempSync(join(tmpdir(), "magic-bench-"));
  const children: ChildProcess[] = [];
  const start = (args: readonly string[], env: Record<string, string>) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    return child;
  };
  try {
    writeFileSync(join(folder, "magic.yaml"), "version: 1\n");
    const profile = values.prof ? ["--cpu-prof", `--cpu-prof-dir=${tmpdir()}/magic-prof`] : [];
    const dist = join(here, "../../dist/daemon.js");
    const daemon = start([...nodeFlags, ...profile, dist, "--root", folder, "--port", String(DAEMON)], {
      MAGIC_HOME: join(folder, "home"),
    });
    const { path, key, local } = await aSync(join(folder, ".magic", "daemon.json"));
    const bare = start([join(here, "bare.ts")], { PORT: String(BARE), DATABASE: join(folder, ".magic", "magic.db") });
    if (bare.stdout)
      await new Promise((resolve) => createInterface({ input: bare.stdout as never }).once("line", resolve));
    const ask = (child: ChildProcess, port: number, token: string, count: number) =>
      measure(child.pid ?? 0, port, path, token, count);
    // The local token is not counted: it warms up without using the limit.
    await ask(daemon, DAEMON, local, requests);
    await ask(bare, BARE, "x", requests);
    return { magic: await ask(daemon, DAEMON, key, requests), bare: await ask(bare, BARE, "x", requests) };
  } finally {
    for (const child of children) child.kill(values.prof ? "SIGTERM" : "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, values.prof ? 3_000 : 200));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function aSync(runtimeFile: string): Promise<{ path: string; key: string; local: string }> {
  while (!existsSync(runtimeFile)) await new Promise((resolve) => setTimeout(resolve, 50));
  const { url, local_token: local } = JSON.parse(readFileSync(runtimeFile, "utf8")) as Record<string, string>;
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = {
      authorization: `Bearer ${local}`,
      "content-type": "application/json",
      "magic-environment": "live",
    };
    return (await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json() as never;
  };
  const { id: connection } = await post("/v1/connections", { provider: "sqlite", config: { path: "none.sqlite" } });
  const { id } = await post("/v1/syncs", {
    source: { connection, object: "a" },
    destination: { connection, table: "b" },
  });
  const { secret = "" } = await post("/v1/keys", {
    ...{ name: "bench", scopes: ["syncs:read"], environment: "live", tier: "professional" },
  });
  return { path: `/v1/syncs/${id}`, key: secret, local: local ?? "" };
}

const rounds: Awaited<ReturnType<typeof round>>[] = [];
for (let index = 0; index < Number(values.rounds); index++) rounds.push(await round());
const of = (which: "magic" | "bare", what: keyof Measured) => median(rounds.map((one) => one[which][what]));
for (const which of ["bare", "magic"] as const)
  console.log(
    `${which.padEnd(6)} ${of(which, "perSecond").toFixed(0)}/s, p50 ${of(which, "p50").toFixed(2)} ms, p99 ${of(which, "p99").toFixed(2)} ms, ` +
      `CPU ${of(which, "cpuUs").toFixed(0)} us a request, ${of(which, "failures")} failures`,
  );
console.log(
  `throughput ${median(rounds.map(({ magic, bare }) => magic.perSecond / bare.perSecond)).toFixed(2)}x, ` +
    `CPU ${median(rounds.map(({ magic, bare }) => magic.cpuUs / bare.cpuUs)).toFixed(2)}x`,
);
