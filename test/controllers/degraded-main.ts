// A daemon's runtime on a machine that lacks some system calls: a filter that this process lays on itself answers them as an old kernel
// would. Prints what isolation is in force and what becomes of a deploy and an invocation.
import { digestOf } from "#daemon/controllers/bundle/digest.ts";
import { action, answer, assemble, ifEqual, label, load, offset } from "#daemon/controllers/cell/lockdown/bpf.ts";
import { openKernel } from "#daemon/controllers/cell/lockdown/kernel.ts";
import { type Syscall, syscallNumber, thisArchitecture } from "#daemon/controllers/cell/lockdown/syscalls.ts";
import { createRuntime } from "#daemon/controllers/create-runtime.ts";
import { openStorage } from "#daemon/storage/open.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createMetrics } from "#daemon/telemetry/metrics.ts";
import { createTracer } from "#daemon/telemetry/trace.ts";
import { systemClock } from "#shared/clock.ts";

const { lacking, allowWeakSandbox, root } = JSON.parse(process.argv[2] ?? "") as {
  lacking: Syscall[];
  allowWeakSandbox: boolean;
  root: string;
};
const ENOSYS = 38;
const architecture = thisArchitecture();
if (architecture === null) throw new Error("not on this machine");
const kernel = openKernel(architecture);
const filter = assemble([
  load(offset.number),
  ...lacking.map((name) => ifEqual(syscallNumber(name, architecture) ?? 0, "lacking")),
  answer(action.allow),
  label("lacking"),
  answer(action.errno(ENOSYS)),
]);
if (lacking.length > 0) {
  kernel.noNewPrivileges();
  kernel.seccomp(filter);
}

const storage = await openStorage({ root });
const logs: Record<string, unknown>[] = [];
const runtime = createRuntime({
  ...{ root, storage, allowWeakSandbox, clock: systemClock, metrics: createMetrics(), tracer: createTracer() },
  log: createLogger({ sinks: [({ text }) => logs.push(JSON.parse(text) as Record<string, unknown>)] }),
  ports: { llm: null, egress: null, databases: null, secrets: null, kv: null, syncs: null },
});
const contract = { name: "c", version: "1.0.0", input_schema: true, output_schema: true };
const code = `module.exports = () => { try { return require("node:fs").readFileSync("/etc/passwd", "latin1").length; } catch (error) { return "refused"; } };`;
const failure = (error: { code?: string; message: string }) => ({ code: error.code ?? "none", message: error.message });
const isolation = await runtime.isolation().catch(failure);
const deployed = await runtime
  .deploy({ contract, code, map: "", digest: digestOf(contract, code) })
  .then(() => "deployed", failure);
const principal = { type: "local", id: null, environment: "sandbox", scopes: new Set(), tier: "starter" } as never;
const output = await runtime
  .invoke("c", { input: {}, requestId: "req_1", principal })
  .then((result) => result.output, failure);
const line = logs.findLast((one) => one["event"] === "controller.invoked");
await runtime.close();
await storage.close();
process.stdout.write(JSON.stringify({ isolation, deployed, output, level: line?.["isolation"] ?? null }), () =>
  process.exit(),
);
