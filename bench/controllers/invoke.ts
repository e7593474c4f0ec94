// Warm invokes over HTTP: a controller in its cell, all checks, accounting and logs on, against a bare Fastify route that does the same
// checks and runs the same handler in-process. Processor time of all processes of a contender, from /proc: wall time on a shared machine
// says little. workerd and deno take part where they are installed (npm install --prefix FOLDER workerd deno):
//   node build.js && taskset -c 0 node bench/controllers/invoke.ts [--seconds 4] [--rounds 3] [--clients 32] [--warmup 6] [--peers FOLDER]
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { startDaemon } from "./daemon.ts";
import { handlerSource, inputSchema, outputSchema } from "./subject.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    clients: { type: "string", default: "32" },
    warmup: { type: "string", default: "6" },
    peers: { type: "string" },
  },
});
const clients = Number(values.clients);
const folder = mkdtempSync(join(tmpdir(), "magic-bench-"));
const path = "/v1/controllers/echo/invoke";

interface Contender {
  readonly name: string;
  readonly url: string;
  readonly token: string;
  pids(): number[];
  stop(): Promise<void> | void;
}

const contenders: Contender[] = [await magic(), await program("fastify", [process.execPath, local("fastify.ts")])];
const workerd = peer("workerd", "@cloudflare/workerd-linux-64/bin/workerd");
if (workerd) contenders.push(await program("workerd", [workerd, "serve", workerdConfig()]));
const deno = peer("deno", "@deno/linux-x64-glibc/deno");
if (deno) contenders.push(await program("deno", [deno, "run", "-A", webWorker("deno.mjs", true)]));

const results = new Map<string, { calls: number; cpu: number; seconds: number }>();
// Until the compilers have settled: a daemon is more code than a handler.
for (const one of contenders) await load(one, Number(values.warmup));
for (let round = 0; round < Number(values.rounds); round++)
  for (const one of contenders) {
    const before = cpuSeconds(one.pids());
    const began = performance.now();
    const calls = await load(one, Number(values.seconds));
    const sum = results.get(one.name) ?? { calls: 0, cpu: 0, seconds: 0 };
    sum.calls += calls;
    sum.cpu += cpuSeconds(one.pids()) - before;
    sum.seconds += (performance.now() - began) / 1000;
    results.set(one.name, sum);
  }
const bare = results.get("fastify");
const [daemon] = contenders;
if (daemon) {
  // One contender is several processes: where its time goes.
  const pids = daemon.pids();
  const before = pids.map((pid) => cpuSeconds([pid]));
  const calls = await load(daemon, 2);
  const each = pids.map((pid, at) => ((cpuSeconds([pid]) - (before[at] ?? 0)) / calls) * 1e6);
  const own = threads(pids[0] ?? 0);
  console.log(
    `magic's processes: ${each.map((us) => us.toFixed(0)).join(" + ")} µs a call; the daemon's threads: ${own}`,
  );
}
console.log(`${clients} clients, load ${loadavg()[0]?.toFixed(1)}`);
for (const [name, { calls, cpu, seconds }] of results) {
  const perCall = (cpu / calls) * 1e6;
  const ratio = bare ? bare.cpu / bare.calls / (cpu / calls) : Number.NaN;
  console.log(
    `${name.padEnd(8)} ${perCall.toFixed(0)} µs of processor a call, ${(1e6 / perCall).toFixed(0)} calls/s on one core, ${ratio.toFixed(2)}x fastify; ${(calls / seconds).toFixed(0)}/s wall`,
  );
}
for (const one of contenders) await one.stop();
rmSync(folder, { recursive: true, force: true });

async function load(contender: Contender, seconds: number): Promise<number> {
  const pool = new Pool(contender.url, { connections: clients, pipelining: 1 });
  const until = performance.now() + seconds * 1000;
  const headers = { "content-type": "application/json", authorization: `Bearer ${contender.token}` };
  const body = JSON.stringify({ input: { text: "does it work?" } });
  let calls = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < until) {
        const answer = await pool.request({ path, method: "POST", headers, body });
        const document = (await answer.body.json()) as { output?: { label: string } };
        if (document.output?.label !== "question") throw new Error(`${contender.name}: ${JSON.stringify(document)}`);
        calls++;
      }
    }),
  );
  await pool.close();
  return calls;
}

async function magic(): Promise<Contender> {
  const daemon = await startDaemon();
  const contract = { name: "echo", version: "1.0.0", input_schema: inputSchema, output_schema: outputSchema };
  daemon.write("controllers/echo/contract.yaml", JSON.stringify({ ...contract, limits: { concurrency: 64 } }));
  daemon.write("controllers/echo/handler.ts", handlerSource);
  const artifact = await daemon.request("/v1/dev/builds", {
    method: "POST",
    body: JSON.stringify({ folder: `${daemon.root}/controllers/echo` }),
  });
  const deployed = await daemon.request("/v1/controllers", { method: "POST", body: await artifact.text() });
  if (deployed.status !== 201) throw new Error(await deployed.text());
  return { name: "magic", url: daemon.url, token: daemon.token, pids: () => family(daemon.pid), stop: daemon.stop };
}

async function program(name: string, command: readonly string[]): Promise<Contender> {
  const [file, ...args] = command;
  const child: ChildProcess = spawn(file as string, args, {
    env: { ...process.env, TOKEN: "bench", PORT: "45871" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url =
    name === "workerd"
      ? await answering("http://127.0.0.1:45870")
      : await new Promise<string>((resolve) =>
          createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", resolve),
        );
  return {
    name,
    url,
    token: "bench",
    pids: () => family(child.pid as number),
    stop: () => void child.kill(),
  };
}

/** The program itself, not npm's launcher: that would be one process more. */
function peer(name: string, path: string): string | undefined {
  const file = join(values.peers ?? "", "node_modules", path);
  if (values.peers !== undefined && existsSync(file)) return file;
  console.log(`${name} does not take part: it is not installed under --peers`);
  return undefined;
}

async function answering(url: string): Promise<string> {
  for (let tries = 0; tries < 100; tries++) {
    if (await fetch(url, { method: "POST", body: "{}" }).catch(() => null)) return url;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`${url} does not answer`);
}

/** The same handler with hand-written checks of its input: neither runtime brings a validator. */
function webWorker(file: string, serve: boolean): string {
  const source = `const run = (input) => ({ label: input.text.includes("?") ? "question" : "praise", length: input.text.length });
const handle = async (request) => {
  if (request.headers.get("authorization") !== "Bearer bench") return Response.json({ code: "unauthorized" }, { status: 401 });
  const { input } = await request.json();
  if (typeof input?.text !== "string" || input.text.length > 4000) return Response.json({ code: "input_invalid" }, { status: 422 });
  return Response.json({ output: run(input), request_id: crypto.randomUUID(), version: "1.0.0", duration_ms: 0, usage: {} });
};
${serve ? 'Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ({ port }) => console.log("http://127.0.0.1:" + port) }, handle);' : "export default { fetch: handle };"}
`;
  writeFileSync(join(folder, file), source);
  return join(folder, file);
}

function workerdConfig(): string {
  webWorker("worker.mjs", false);
  const file = join(folder, "config.capnp");
  writeFileSync(
    file,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = (modules = [ (name = "worker.mjs", esModule = embed "worker.mjs") ], compatibilityDate = "2024-09-01")) ],
  sockets = [ (name = "http", address = "127.0.0.1:45870", http = (), service = "main") ]
);
`,
  );
  return file;
}

function local(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

/** A process and all below it. */
function family(pid: number): number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const fields = statOf(Number(name));
      return fields ? [[Number(name), Number(fields[1])] as const] : [];
    });
  const found = [pid];
  for (const parent of found) for (const [child, its] of parents) if (its === parent) found.push(child);
  return found;
}

/** The share of each busy thread. */
function threads(pid: number): string {
  const times = readdirSync(`/proc/${pid}/task`).map((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  });
  const all = times.reduce((a, b) => a + b, 0);
  return times
    .filter((ticks) => ticks > all / 50)
    .map((ticks) => `${Math.round((ticks / all) * 100)} %`)
    .join(", ");
}

function cpuSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = statOf(pid);
    return sum + (fields ? (Number(fields[11]) + Number(fields[12])) / 100 : 0);
  }, 0);
}

function statOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
