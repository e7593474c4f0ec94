// A daemon with another master key than the one that sealed what its database keeps.
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openSeals } from "#daemon/secrets/seals.ts";
import type { NewConnection } from "#daemon/storage/repositories/connection.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";
import { FINGERPRINT_SETTING } from "#shared/master-key.ts";
import { startDaemon, type TestDaemon } from "#test/identity/daemon.ts";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";

const live = { headers: { "magic-environment": "live" } };

async function daemonWith(): Promise<{ daemon: TestDaemon; connection: string; webhook: string; client: object }> {
  const daemon = await startDaemon();
  onTestFinished(() => daemon.close());
  const made = async (path: string, body: object) => (await daemon.call("POST", path, { body, ...live })).body;
  const connection = await made("/v1/connections", {
    provider: "postgres",
    config: { url: "postgres://u:p@127.0.0.1:1/x" },
  });
  const webhook = await made("/v1/webhooks", { url: "https://example.com/hook", events: ["sync.failed"] });
  const token = daemon.app.credentials.admin_key;
  const client = await daemon.call("POST", "/v1/clients", {
    token,
    body: { name: "c", scopes: ["syncs:read"], environment: "sandbox", tier: "starter" },
  });
  const { client_id, client_secret } = client.body;
  return { daemon, connection: connection.id, webhook: webhook.id, client: { client_id, client_secret } };
}

const keyFile = ({ home }: TestDaemon): string => join(home, "master.key");
const problems = async (daemon: TestDaemon) => (await daemon.call("GET", "/v1/daemon")).body.problems;

test("with another key everything but what is sealed works, and what is sealed is refused with one code, until the key is back", async () => {
  const { daemon, connection, webhook, client } = await daemonWith();
  const credentials = { body: { credentials: { password: "new" } }, ...live };
  const path = `/v1/connections/${connection}`;
  expect(await problems(daemon)).toEqual([]);
  copyFileSync(keyFile(daemon), `${keyFile(daemon)}.kept`);
  rmSync(keyFile(daemon));
  await daemon.restart();

  const refused = await daemon.call("PATCH", path, credentials);
  expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([503, "master_key_mismatch", false]);
  expect(refused.body.detail).toContain(keyFile(daemon));
  expect(await problems(daemon)).toEqual([
    { code: "master_key_mismatch", detail: refused.body.detail, next: expect.stringContaining("--forget-sealed") },
  ]);
  const create = { body: { provider: "postgres", config: { url: "postgres://u:p@127.0.0.1:1/x" } } };
  for (const [method, where, options] of [
    ["POST", "/v1/connections", { ...create, ...live }],
    ["POST", "/v1/connections", create],
    ["POST", `${path}/check`, live],
    ["GET", `${path}/objects`, live],
    ["POST", "/v1/webhooks", { body: { url: "https://example.com/x", events: ["sync.failed"] }, ...live }],
    ["POST", `/v1/webhooks/${webhook}/roll`, { body: {}, ...live }],
    [
      "POST",
      "/v1/connections/oauth/start",
      { body: { provider: "salesforce", callback_url: "https://a.example", config: { client_id: "x" } }, ...live },
    ],
  ] as const)
    expect([where, (await daemon.call(method, where, options)).body.code]).toEqual([where, "master_key_mismatch"]);
  const login = { token: null, body: { grant_type: "client_credentials", ...client } };
  expect((await daemon.call("POST", "/v1/auth/token", login)).status).toBe(503);

  // Nothing is sealed here, so nothing is in the way.
  const keyed = { body: { provider: "postgres" }, headers: { "idempotency-key": "k1" } };
  const first = await daemon.call("POST", "/v1/connections", keyed);
  expect(first.status).toBe(201);
  expect((await daemon.call("POST", "/v1/connections", keyed)).text).toBe(first.text);
  expect((await daemon.call("PATCH", path, { body: { name: "renamed" }, ...live })).status).toBe(200);
  expect((await daemon.call("GET", path, live)).body).toMatchObject({ name: "renamed", status: "pending" });

  copyFileSync(`${keyFile(daemon)}.kept`, keyFile(daemon));
  await daemon.restart();
  expect(await problems(daemon)).toEqual([]);
  expect((await daemon.call("PATCH", path, credentials)).status).toBe(200);
  expect((await daemon.call("POST", "/v1/auth/token", login)).status).toBe(200);
  expect((await daemon.call("POST", `/v1/webhooks/${webhook}/roll`, { body: {}, ...live })).status).toBe(200);
});

test("what another key sealed is given up only on demand: connections lose their settings, webhooks their secrets", async () => {
  const { daemon, connection, webhook } = await daemonWith();
  rmSync(keyFile(daemon));
  await daemon.restart({ flags: { "forget-sealed": true } });
  expect(await problems(daemon)).toEqual([]);
  // The proof of the audit log begins anew; a restart without the flag goes on with it.
  const proof = async () => (await daemon.call("GET", "/v1/audit/verification")).body;
  const { unproven } = await proof();
  expect(unproven).toBeGreaterThan(0);
  await daemon.restart();
  expect(await proof()).toMatchObject({ valid: true, unproven, problems: [] });
  expect((await proof()).entries).toBeGreaterThan(unproven);
  const path = `/v1/connections/${connection}`;
  const given = (await daemon.call("GET", path, live)).body;
  expect(given).toMatchObject({ status: "pending", health: { status: "unknown" } });
  expect(given.health.message).toMatch(/enter them again/);
  const again = { body: { config: { url: "postgres://u:p@127.0.0.1:1/x" } }, ...live };
  expect((await daemon.call("PATCH", path, again)).status).toBe(200);
  expect((await daemon.call("GET", `/v1/webhooks/${webhook}`, live)).body.status).toBe("disabled");
  const rolled = await daemon.call("POST", `/v1/webhooks/${webhook}/roll`, { body: {}, ...live });
  expect(rolled.body.secret).toMatch(/^whsec_/);
  await daemon.restart();
  expect(await problems(daemon)).toEqual([]);
});

test("a database in which nothing is sealed takes any key, one from before fingerprints the key that opens it", async () => {
  const storage = await temporaryStorage();
  const [first, second] = [temporaryFolder(), temporaryFolder()];
  const mismatch = async (home: string) =>
    (await openSeals({ storage, home, forget: false, clock: systemClock, logger: createLogger({ sinks: [] }) }))
      .mismatch;
  expect([await mismatch(first), await mismatch(second), await mismatch(first)]).toEqual([null, null, null]);
  const options = { storage, home: first, forget: false, clock: systemClock, logger: createLogger({ sinks: [] }) };
  const sealer = (await openSeals(options)).lasting("connections");
  const place = { tenant: "sandbox", row: "conn_1", field: "secret" };
  const now = "2026-11-22T00:00:00.000Z";
  const connection: NewConnection = {
    ...{ id: "conn_1", environment: "sandbox" as const, provider: "postgres", name: "p", status: "connected" as const },
    health: { status: "healthy", checked_at: null, latency_ms: null, message: null },
    ...{ metadata: {}, secret: sealer.seal("{}", place), created_at: now, updated_at: now, last_synced_at: null },
  };
  await storage.units.connection.create({ connection, limit: null });
  expect([await mismatch(second), await mismatch(first)]).toEqual([
    expect.stringMatching(/sealed with the master key/),
    null,
  ]);
  await storage.units.setting.remove({ key: FINGERPRINT_SETTING });
  expect([await mismatch(second), await mismatch(first), await mismatch(second)]).toEqual([
    expect.stringMatching(/sealed with another master key/),
    null,
    expect.stringMatching(/sealed with the master key/),
  ]);
});

test("where nothing is sealed, another key begins the proof of the audit log anew", async () => {
  const daemon = await startDaemon();
  onTestFinished(() => daemon.close());
  await daemon.call("GET", "/v1/keys");
  await daemon.app.close();
  rmSync(keyFile(daemon));
  await daemon.restart();
  await daemon.call("GET", "/v1/keys");
  for (let round = 0; round < 2; round++) {
    const { body } = await daemon.call("GET", "/v1/audit/verification");
    expect(body).toMatchObject({ valid: true, unproven: 1, problems: [] });
    await daemon.restart();
  }
});

test.skipIf(postgresMissing())("replicas on one database must have one key, also while nothing is sealed", async () => {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const databaseUrl = await server.createDatabase("seals");
  const mismatches: (string | null)[] = [];
  for (const home of [temporaryFolder(), temporaryFolder()]) {
    const storage = await temporaryStorage({ databaseUrl });
    const options = { storage, home, forget: false, clock: systemClock, logger: createLogger({ sinks: [] }) };
    mismatches.push((await openSeals(options)).mismatch);
  }
  expect(mismatches).toEqual([null, expect.stringMatching(/sealed with the master key/)]);
});
