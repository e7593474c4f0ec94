// Two daemons' runtimes over one Postgres: what one deploys, moves or removes, the other follows.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRuntime, type OwnedRuntime } from "#daemon/controllers/create-runtime.ts";
import type { Artifact } from "#daemon/controllers/runtime.ts";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createMetrics } from "#daemon/telemetry/metrics.ts";
import { createTracer } from "#daemon/telemetry/trace.ts";
import { systemClock } from "#shared/clock.ts";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { contractOf, noPorts, principal, put } from "./harness.ts";

type Units = Storage["units"]["controller"];

const root = mkdtempSync(join(tmpdir(), "magic-replicas-"));
let server: Awaited<ReturnType<typeof startPostgres>>;
const replicas: { runtime: OwnedRuntime; storage: Storage }[] = [];

const missing = postgresMissing();

beforeAll(async () => {
  if (missing) return;
  server = await startPostgres();
  const databaseUrl = await server.createDatabase("replicas");
  for (let n = 0; n < 2; n++) {
    const storage = await openStorage({ root: join(root, String(n)), databaseUrl });
    const log = createLogger({ sinks: [] });
    const services = { root, storage, log, metrics: createMetrics(), tracer: createTracer(), clock: systemClock };
    replicas.push({ storage, runtime: createRuntime({ ...services, ports: noPorts, zygotes: 1 }) });
  }
}, 120_000);
afterAll(async () => {
  for (const { runtime, storage } of replicas) {
    await runtime.close(1_000);
    await storage.close();
  }
  await server?.stop();
  rmSync(root, { recursive: true, force: true });
});

const at = (n: number): OwnedRuntime => replicas[n]?.runtime as OwnedRuntime;
const ask = async (n: number, version?: string): Promise<unknown> =>
  (await at(n).invoke("twin", { input: {}, requestId: "req_1", principal, version })).output;

async function deploy(n: number, answer: number, version = "1.0.0"): Promise<void> {
  put(join(root, "controllers/twin/contract.yaml"), JSON.stringify(contractOf("twin", { version })));
  put(join(root, "controllers/twin/handler.ts"), `export default () => ${answer};`);
  await at(n).deploy(await at(n).build(join(root, "controllers/twin")));
}

async function follows(n: number, answer: unknown): Promise<void> {
  let seen: unknown;
  for (let tries = 0; tries < 100; tries++) {
    seen = await ask(n).catch((error: { code: string }) => error.code);
    if (seen === answer) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  expect(seen).toBe(answer);
}

test.skipIf(missing)(
  "a deploy, a new version, a rollback, a removal and a new beginning reach the other replica",
  async () => {
    expect(await ask(1).catch((error: { code: string }) => error.code)).toBe("controller_not_found");
    await deploy(0, 1);
    await follows(1, 1);
    await deploy(1, 2, "1.1.0");
    await follows(0, 2);
    expect(await ask(0, "1.0.0")).toBe(1);
    await at(0).rollback("twin");
    await follows(1, 1);
    await at(1).remove("twin");
    await follows(0, "controller_not_found");
    // The same version with other code: what was loaded of the first is not what serves.
    await deploy(0, 3);
    await follows(1, 3);
    await follows(0, 3);
  },
);

test.skipIf(missing)("what one has deployed a moment ago counts at the other", async () => {
  const deployed = async (n: number, version: string, input_schema: Record<string, unknown>) => {
    put(join(root, "controllers/told/contract.yaml"), JSON.stringify(contractOf("told", { version, input_schema })));
    put(join(root, "controllers/told/handler.ts"), "export default () => 1;");
    return await at(n).deploy(await at(n).build(join(root, "controllers/told")));
  };
  for (let minor = 0; minor < 5; minor++) {
    await deployed(0, `${minor + 1}.0.0`, { type: "object" });
    expect((await at(1).get("told")).serving).toBe(`${minor + 1}.0.0`);
    expect((await at(1).list()).find(({ name }) => name === "told")?.serving).toBe(`${minor + 1}.0.0`);
    await expect(deployed(1, `${minor + 1}.1.0`, { type: "string" })).rejects.toMatchObject({
      code: "incompatible_version",
    });
  }
});

test.skipIf(missing)(
  "two deploys of one version at once: the same code is one version, other code is a conflict",
  async () => {
    const outcomes: string[] = [];
    for (let n = 0; n < 10; n++) {
      const version = `2.${n}.0`;
      put(join(root, "controllers/rival/contract.yaml"), JSON.stringify(contractOf("rival", { version })));
      const built: Artifact[] = [];
      for (const answer of [1, n < 5 ? 1 : 2]) {
        put(join(root, "controllers/rival/handler.ts"), `export default () => ${answer};`);
        built.push(await at(0).build(join(root, "controllers/rival")));
      }
      const both = built.map((artifact, replica) =>
        at(replica)
          .deploy(artifact)
          .then(
            () => "ok",
            (error: { code?: string; message: string }) => error.code ?? error.message,
          ),
      );
      outcomes.push((await Promise.all(both)).sort().join(" "));
    }
    expect(outcomes).toEqual([...Array(5).fill("ok ok"), ...Array(5).fill("conflict ok")]);
  },
);

test.skipIf(missing)("keys are shared, expire, are counted, and take concurrent writes", async () => {
  const [one, other] = replicas.map(({ storage }) => storage.units.controller) as [Units, Units];
  const scope = { controller: "twin", environment: "live" };
  const now = "2026-01-01T00:00:00.000Z";
  const set = (units: Units, key: string, value: string, expires_at: string | null = null) =>
    units.setKey({ ...scope, key, value, expires_at, now });
  const get = (units: Units, key: string, at = now, environment = "live") =>
    units.getKey({ ...scope, environment, key, now: at });
  await set(one, "k", '"a"');
  expect([await get(other, "k"), await get(other, "k", now, "sandbox"), await get(other, "absent")]).toEqual([
    '"a"',
    null,
    null,
  ]);
  await set(other, "short", "1", "2026-01-01T00:00:01.000Z");
  expect([await get(one, "short"), await get(one, "short", "2026-01-01T00:00:01.000Z")]).toEqual(["1", null]);
  await Promise.all(Array.from({ length: 64 }, (_, n) => set(n % 2 ? one : other, "hot", String(n))));
  expect(Number(await get(one, "hot"))).toBeGreaterThanOrEqual(0);
  await one.deleteKey({ ...scope, key: "k" });
  expect(await get(other, "k")).toBeNull();
});
