// A controller runtime over real storage in a temp folder, with controllers written by the test.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import type { ControllerContract } from "#contract/controller.ts";
import type { MagicError } from "#contract/errors.ts";
import { type Scope, scopes } from "#contract/identity.ts";
import { createRuntime, type OwnedRuntime, type RuntimeServices } from "#daemon/controllers/create-runtime.ts";
import type { Ports } from "#daemon/controllers/ports.ts";
import { isLargeOutput } from "#daemon/controllers/serving/large-output.ts";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createMetrics, type Metrics } from "#daemon/telemetry/metrics.ts";
import { createTracer, type Tracer } from "#daemon/telemetry/trace.ts";
import { systemClock } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";

export const principal = {
  type: "local",
  id: null,
  environment: "sandbox",
  scopes: new Set<Scope>(scopes),
  tier: "starter",
} as const;

export interface Bench {
  readonly root: string;
  readonly runtime: OwnedRuntime;
  readonly storage: Storage;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  readonly logs: Record<string, unknown>[];
  write(name: string, handler: string, contract?: Partial<ControllerContract>): string;
  deploy(name: string, handler: string, contract?: Partial<ControllerContract>): Promise<string>;
  invoke(name: string, input?: unknown, more?: { version?: string; signal?: AbortSignal }): Promise<unknown>;
  /** The error of a call that must fail. */
  failure(call: Promise<unknown>): Promise<MagicError>;
  /** The error's code, or "ok"; a large output is left as the text that it is, as the daemon's own routes do. */
  outcome(name: string, input?: unknown): Promise<string>;
  close(): Promise<void>;
}

const open: Bench[] = [];
afterAll(async () => {
  await Promise.all(open.splice(0).map((bench) => bench.close()));
});

export const noPorts: Ports = { llm: null, egress: null, databases: null, secrets: null, kv: null, syncs: null };

export async function openBench(
  options: {
    ports?: Partial<Ports>;
    zygotes?: number;
    mostCells?: number;
    loadWithinMs?: number;
    buildWithinMs?: number;
    /** Told each time the runtime asks storage for something of controllers, which counts as shared then; what it throws is the answer. */
    onStorage?: (unit: string, args: unknown) => void;
  } = {},
): Promise<Bench> {
  const root = mkdtempSync(join(tmpdir(), "magic-cell-test-"));
  const storage = overheard(await openStorage({ root }), options.onStorage);
  const logs: Record<string, unknown>[] = [];
  const log = createLogger({ sinks: [({ text }) => logs.push(JSON.parse(text) as Record<string, unknown>)] });
  const metrics = createMetrics();
  const tracer = createTracer();
  const services: RuntimeServices = {
    root,
    storage,
    log,
    metrics,
    tracer,
    clock: systemClock,
    ports: { ...noPorts, ...options.ports },
    zygotes: options.zygotes ?? 2,
    ...(options.mostCells === undefined ? {} : { mostCells: options.mostCells }),
    ...(options.loadWithinMs === undefined ? {} : { loadWithinMs: options.loadWithinMs }),
    ...(options.buildWithinMs === undefined ? {} : { buildWithinMs: options.buildWithinMs }),
  };
  const runtime = createRuntime(services);
  const call = async (name: string, input: unknown = {}, more: { version?: string; signal?: AbortSignal } = {}) =>
    (await runtime.invoke(name, { input, requestId: newId("req"), principal, ...more })).output;
  const bench: Bench = {
    root,
    runtime,
    storage,
    metrics,
    tracer,
    logs,
    write(name, handler, contract = {}) {
      const folder = join(root, "controllers", name);
      put(join(folder, "handler.ts"), handler);
      put(join(folder, "contract.yaml"), JSON.stringify(contractOf(name, contract)));
      return folder;
    },
    async deploy(name, handler, contract = {}) {
      const artifact = await runtime.build(bench.write(name, handler, contract));
      await runtime.deploy(artifact);
      return artifact.digest;
    },
    async invoke(name, input, more) {
      const output = await call(name, input, more);
      return isLargeOutput(output) ? output.value() : output;
    },
    failure: (call) =>
      call.then(
        () => Promise.reject(new Error("the call did not fail")),
        (error: MagicError) => error,
      ),
    outcome: (name, input) =>
      call(name, input).then(
        (output) => {
          if (isLargeOutput(output)) output.release();
          return "ok";
        },
        async (error: { code?: string }) => {
          // Whoever calls without a pause would let nobody else come to a turn, once all fails at once.
          await new Promise((resolve) => setImmediate(resolve));
          return error.code ?? "unknown";
        },
      ),
    async close() {
      await runtime.close(1_000);
      await storage.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
  open.push(bench);
  return bench;
}

function overheard(storage: Storage, onStorage: ((unit: string, args: unknown) => void) | undefined): Storage {
  if (!onStorage) return storage;
  const controller = new Proxy(storage.units.controller, {
    get: (units, unit) => async (args: unknown) => {
      onStorage(String(unit), args);
      return await (Reflect.get(units, unit) as (args: unknown) => unknown)(args);
    },
  });
  return { ...storage, dialect: "postgres", units: { ...storage.units, controller } };
}

export function contractOf(name: string, contract: Partial<ControllerContract> = {}): ControllerContract {
  return { name, version: "1.0.0", input_schema: true, output_schema: true, ...contract };
}

export function put(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Whether the check comes true within the time. */
export async function settle(check: () => boolean, withinMs = 3_000): Promise<boolean> {
  const until = Date.now() + withinMs;
  while (Date.now() < until) {
    if (check()) return true;
    await new Promise((done) => setTimeout(done, 20));
  }
  return check();
}
