// The audit log of a real daemon: one entry for every answer, seen at once, proven whole, alive when it was tampered with.
import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { fastify } from "fastify";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { useAudit } from "#daemon/http/audit.ts";
import { useRequestEnd } from "#daemon/http/request-end.ts";
import { anonymous } from "#daemon/http/route-config.ts";
import { anchorFile } from "#daemon/identity/audit/anchor.ts";
import { type AuditRecord, GENESIS } from "#daemon/identity/audit/chain.ts";
import { openAuditLog } from "#daemon/identity/audit/log.ts";
import { openAuditTrail } from "#daemon/identity/audit/trail.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { mixedCalls } from "./mixed-calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.close());

interface Entry {
  readonly id: string;
  readonly request_id: string;
  readonly outcome: string;
  readonly status: number;
  readonly action: string;
  readonly environment: string;
  readonly resource: string | null;
  readonly identity: { readonly type: string; readonly id: string | null };
}

async function entriesOf(query: string, token?: string): Promise<Entry[]> {
  return (await daemon.call("GET", `/v1/audit?limit=100&${query}`, token === undefined ? {} : { token })).body.data;
}

test("an entry that comes at whatever moment of a batch's end is stored, and its caller is answered", async () => {
  for (let ticks = 0; ticks < 24; ticks++) {
    const stored: string[] = [];
    const log = await openAuditLog({
      key: randomBytes(32),
      anchors: { read: async () => undefined, write: async () => undefined },
      store: {
        head: async () => undefined,
        append: async (_, rows) => {
          stored.push(...(JSON.parse(rows) as [number, string][]).map(([, id]) => id));
          return "appended";
        },
      },
      onError: (_, error) => expect.fail(String(error)),
    });
    await log.recordDurably(record("aud_1"));
    for (let tick = 0; tick < ticks; tick++) await undefined;
    await log.recordDurably(record("aud_2"));
    // And so is one that comes a turn later.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    await log.recordDurably(record("aud_3"));
    expect(stored, `after ${ticks} ticks`).toEqual(["aud_1", "aud_2", "aud_3"]);
    await log.close();
  }
});

test("an entry that was stored though the answer was lost is in the log once", async () => {
  const { units } = await temporaryStorage();
  let lost = true;
  const log = await openAuditLog({
    key: randomBytes(32),
    anchors: { read: async () => undefined, write: async () => undefined },
    store: {
      head: (after) => units.audit.head({ after }),
      append: async (after, rows) => {
        const answer = await units.audit.append({ after, rows });
        if (!lost) return answer;
        lost = false;
        throw new Error("the connection broke");
      },
    },
    onError: () => undefined,
  });
  await expect(log.recordDurably(record("aud_1"))).rejects.toThrow("broke");
  await log.recordDurably(record("aud_2"));
  const stored = await units.audit.page({ after: null, limit: 10 });
  expect(stored.map(({ id, sequence }) => [sequence, id])).toEqual([
    [1, "aud_1"],
    [2, "aud_2"],
  ]);
  await log.close();
});

function record(id: string): AuditRecord {
  return {
    ...{ id, timestamp: "2026-11-21T12:00:00.000Z", identity_type: "local", identity_id: null, action: "keys.create" },
    ...{ resource: null, outcome: "success", status: 201, request_id: "req_1", environment: "sandbox" },
  } as const;
}

async function makeKey(body: object) {
  return (await daemon.call("POST", "/v1/keys", { body })).body;
}

test("every answer has one entry, refused and failed ones too, that says who, what and how it ended", async () => {
  const { api_key, admin_key } = daemon.app.credentials;
  const key = await makeKey({ scopes: ["keys:read"], environment: "live" });
  const cases: [string, string, string | null, number, Partial<Entry>][] = [
    [
      "GET",
      "/v1/keys",
      key.secret,
      200,
      { outcome: "success", action: "keys.list", environment: "live", identity: { type: "key", id: key.id } },
    ],
    [
      "GET",
      `/v1/keys/${key.id}`,
      admin_key,
      200,
      { action: "keys.get", resource: key.id, identity: { type: "admin", id: null } },
    ],
    ["GET", "/v1/keys/none", admin_key, 404, { outcome: "failed", resource: "none" }],
    ["GET", "/v1/keys/a%00b", admin_key, 400, { outcome: "failed", resource: "a\ufffdb" }],
    [
      "GET",
      "/v1/keys",
      api_key,
      403,
      { outcome: "refused", environment: "sandbox", identity: { type: "key", id: "key_local" } },
    ],
    ["GET", "/v1/keys", null, 401, { outcome: "refused", identity: { type: "anonymous", id: null } }],
    [
      "GET",
      "/v1/keys",
      "sk_live_nobody",
      401,
      { outcome: "refused", environment: "live", identity: { type: "anonymous", id: null } },
    ],
    ["POST", "/v1/keys", admin_key, 422, { outcome: "failed", action: "keys.create" }],
    ["DELETE", `/v1/keys/${key.id}`, admin_key, 204, { outcome: "success", action: "keys.delete", resource: key.id }],
    ["GET", "/v1/health", null, 200, { outcome: "success", action: "health.get" }],
    ["GET", "/nowhere", null, 404, { outcome: "failed", action: "unknown", resource: null }],
    [
      "GET",
      "/v1/nowhere",
      admin_key,
      404,
      { outcome: "failed", resource: null, identity: { type: "admin", id: null } },
    ],
    ["PUT", "/v1/keys", "sk_live_nobody", 405, { outcome: "failed", identity: { type: "anonymous", id: null } }],
    ["GET", "/v1/%zz", null, 400, { outcome: "failed", action: "unknown" }],
    ["PUT", "/v1/keys", null, 405, { outcome: "failed" }],
    [
      "GET",
      "/v1/models",
      daemon.app.credentials.gateway_token,
      200,
      { action: "models.list", identity: { type: "token", id: "gt_local" } },
    ],
    [
      "GET",
      "/v1/models/sandbox/echo",
      daemon.app.credentials.gateway_token,
      200,
      { action: "models.get", resource: "sandbox/echo" },
    ],
  ];
  for (const [index, [method, path, token, status, expected]] of cases.entries()) {
    const id = `audit-case-${index}`;
    const body = method === "POST" ? {} : undefined;
    const answer = await daemon.call(method, path, { token, body, headers: { "x-request-id": id } });
    expect(answer.status, path).toBe(status);
    await expect.poll(() => entriesOf(`request_id=${id}`), { timeout: 10_000, interval: 25 }).toHaveLength(1);
    expect((await entriesOf(`request_id=${id}`))[0], `${method} ${path}`).toMatchObject({ status, ...expected });
  }
});

test("an upgrade is a call like any other", async () => {
  const socket = new WebSocket(`${daemon.url.replace("http:", "ws:")}/v1/logs/stream`, {
    headers: { authorization: "Bearer sk_live_wrong", "x-request-id": "upgrade" },
  });
  const answer = await new Promise<IncomingMessage>((resolve) =>
    socket.once("unexpected-response", (_request, response) => resolve(response)),
  );
  expect(JSON.parse(await text(answer))).toMatchObject({ code: "invalid_key", request_id: "upgrade", status: 401 });
  expect(answer.headers).toMatchObject({
    "x-request-id": "upgrade",
    "content-type": "application/problem+json",
    "www-authenticate": expect.stringContaining("Bearer"),
  });
  await expect.poll(() => entriesOf("request_id=upgrade"), { timeout: 10_000, interval: 25 }).toHaveLength(1);
  expect((await entriesOf("request_id=upgrade"))[0]).toMatchObject({
    action: "logs.stream",
    status: 401,
    outcome: "refused",
    environment: "live",
  });
});

test("an upgrade that is sent behind another request is answered behind it", async () => {
  const { hostname, port } = new URL(daemon.url);
  const head = `HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${daemon.app.credentials.local_token}\r\n`;
  const body = '{"scopes":["keys:read"]}';
  const change = `POST /v1/keys ${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  const behind = async (parts: readonly [string, RegExp][]) => {
    const socket = connect(Number(port), hostname);
    let answers = "";
    socket.on("data", (bytes) => {
      answers += bytes;
    });
    for (const [sent, expected] of parts) {
      socket.write(sent);
      await expect.poll(() => answers, { timeout: 10_000 }).toMatch(expected);
    }
    socket.destroy();
  };
  for (const [key, status] of [
    ["", 400],
    // Until its body has come whole Node shows another stream than the connection.
    ["Transfer-Encoding: chunked\r\n", 400],
    [`Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n`, 101],
  ] as const) {
    const both = `${change}GET /v1/logs/stream ${head}${upgrade}${key}\r\n`;
    await behind([[both, new RegExp(`^HTTP/1.1 201 .*HTTP/1.1 ${status} `, "s")]]);
  }
  // Refused before its body has come.
  await behind([
    ["POST /v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n", /^HTTP\/1.1 401 /],
    [`{}GET /v1/logs/stream ${head}${upgrade}\r\n`, /HTTP\/1.1 400 /],
  ]);
});

test("what is no HTTP, or asks for a tunnel, is answered under a request id that has its entry", async () => {
  const answered = async (sent: string): Promise<string | undefined> => {
    const socket = connect(Number(new URL(daemon.url).port), "127.0.0.1", () => socket.write(sent));
    return /x-request-id: (\S+)/i.exec(await text(socket))?.[1];
  };
  for (const [sent, status] of [
    ["GET /v1/keys HTTP/1.1\r\nno header\r\n\r\n", 400],
    [`GET /v1/keys HTTP/1.1\r\nx: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["CONNECT example.com:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405],
    ["CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\nbytes of TLS", 405],
  ] as const) {
    const entries = `request_id=${await answered(sent)}`;
    await expect.poll(() => entriesOf(entries), { timeout: 10_000, interval: 25 }).toHaveLength(1);
    const anonymous = { identity: { type: "anonymous", id: null }, action: "unknown", outcome: "failed" };
    expect((await entriesOf(entries))[0]).toMatchObject({ ...anonymous, status });
  }
});

test("a request whose body breaks off has one entry, under the id that its answer names, in its route's form", async () => {
  const { hostname, port } = new URL(daemon.url);
  const unknown = await entriesOf("action=unknown");
  for (const [path, form] of [
    ["/v1/keys", { code: "invalid_request", status: 400 }],
    ["/v1/chat/completions", { error: expect.objectContaining({ code: "invalid_request" }) }],
  ] as const)
    for (const [kind, body] of [
      ["at-once", "no chunk\r\n"],
      ["later", ""],
    ] as const) {
      const id = `broken-${kind}-${path.length}`;
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${daemon.app.credentials.local_token}\r\n` +
          `X-Request-Id: ${id}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
      );
      if (body === "") setTimeout(() => socket.write("no chunk\r\n"), 50);
      const [head = "", answer = ""] = (await text(socket)).split("\r\n\r\n");
      expect(head).toMatch(/^HTTP\/1\.1 400 .*connection: close/is);
      expect(head).toMatch(new RegExp(`x-request-id: ${id}`, "i"));
      expect(JSON.parse(answer)).toMatchObject(form);
      await expect.poll(() => entriesOf(`request_id=${id}`), { timeout: 10_000, interval: 25 }).toHaveLength(1);
      expect((await entriesOf(`request_id=${id}`))[0]).toMatchObject({ status: 400, outcome: "failed" });
    }
  expect(await entriesOf("action=unknown")).toEqual(unknown);
});

test("what a client is given or refused is seen in its environment", async () => {
  const { body } = await daemon.call("POST", "/v1/clients", { body: { scopes: ["keys:read"], environment: "live" } });
  const { client_id, client_secret } = body;
  const ask = (secret: string, id: string) =>
    daemon.call("POST", "/v1/auth/token", {
      token: null,
      body: { client_id, client_secret: secret },
      headers: { "x-request-id": id },
    });
  expect((await ask(client_secret, "given")).status).toBe(200);
  expect((await ask(`${client_secret.slice(0, -1)}_`, "malformed")).status).toBe(401);
  expect(
    (
      await ask(
        client_secret.replace(/.$/, (last: string) => (last === "0" ? "1" : "0")),
        "refused",
      )
    ).status,
  ).toBe(401);
  const { access_token } = (await ask(client_secret, "again")).body;
  await daemon.call("DELETE", `/v1/clients/${client_id}`);
  await daemon.call("GET", "/v1/keys/none", { token: access_token, headers: { "x-request-id": "revoked" } });
  const last = async (id: string) => {
    await expect.poll(() => entriesOf(`request_id=${id}`), { timeout: 10_000, interval: 25 }).toHaveLength(1);
    return (await entriesOf(`request_id=${id}`))[0];
  };
  expect(await last("given")).toMatchObject({ environment: "live", resource: client_id, identity: { id: client_id } });
  expect(await last("refused")).toMatchObject({ environment: "live", identity: { type: "anonymous" } });
  expect(await last("malformed")).toMatchObject({ environment: "sandbox" });
  expect(await last("revoked")).toMatchObject({ environment: "live", identity: { type: "anonymous" }, status: 401 });
});

test("a secret that stands where an id should is not kept", async () => {
  const { body } = await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"] } });
  await daemon.call("GET", `/v1/keys/${body.secret}`, { headers: { "x-request-id": "mistaken" } });
  await expect.poll(() => entriesOf("request_id=mistaken"), { timeout: 10_000, interval: 25 }).toHaveLength(1);
  expect((await entriesOf("request_id=mistaken"))[0]).toMatchObject({ resource: "[redacted]", status: 404 });
});

test("a change is in the log before its answer is: its entry needs no waiting", async () => {
  for (let index = 0; index < 20; index++) {
    const made = await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"] } });
    const { rows } = await daemon.app.identity.audit.list({
      limit: 5,
      request_id: String(made.headers.get("x-request-id")),
    });
    expect(rows.map((row) => [row.action, row.resource])).toEqual([["keys.create", made.body.id]]);
  }
});

test("a change whose caller leaves meanwhile has one entry, that says what became of it", async () => {
  const { hostname, port } = new URL(daemon.url);
  const leave = async (id: string, body: string, length = body.length) => {
    const socket = connect(Number(port), hostname);
    const request =
      `POST /v1/connections HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${daemon.app.credentials.local_token}\r\n` +
      `X-Request-Id: ${id}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;
    await new Promise((resolve) => socket.write(request, resolve));
    socket.destroy();
  };
  const outcomes = { made: [201], refused: [422, 499], cut: [400, 499] };
  for (let i = 0; i < 10; i++) {
    await leave(`made-${i}`, '{"provider":"stripe"}');
    await leave(`refused-${i}`, '{"provider":"none"}');
    await leave(`cut-${i}`, '{"provider"', 100);
  }
  const statusesOf = async (id: string) => (await entriesOf(`request_id=${id}`)).map(({ status }) => status);
  for (const [kind, expected] of Object.entries(outcomes))
    for (let i = 0; i < 10; i++) {
      await expect.poll(() => statusesOf(`${kind}-${i}`), { timeout: 5_000 }).toHaveLength(1);
      expect(expected).toContain((await statusesOf(`${kind}-${i}`))[0]);
    }
});

test("a change that its caller left has an entry also where the daemon ends before it", async () => {
  const app = fastify();
  const entries: unknown[] = [];
  useRequestEnd(app, createLogger({ sinks: [] }));
  app.decorateRequest("principal", { getter: () => anonymous });
  const tellLeft = useAudit(app, {
    record: ({ action, status }) => void entries.push([action, status]),
    recordDurably: () => Promise.reject(new Error("not awaited")),
  });
  const left = Promise.withResolvers<void>();
  app.post("/v1/things", { config: { scope: null, surface: "core" } }, (_request, { raw }) => {
    raw.on("close", left.resolve);
    socket.destroy();
    return new Promise(() => undefined);
  });
  const { hostname, port } = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
  const socket = connect(Number(port), hostname);
  socket.write("POST /v1/things HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await left.promise;
  await app.close();
  expect(entries).toEqual([]);
  tellLeft();
  expect(entries).toEqual([["things.create", 499]]);
});

test("filters by outcome, identity, action and time; pages in both directions", async () => {
  expect(new Set((await entriesOf("outcome=refused")).map(({ outcome }) => outcome))).toEqual(new Set(["refused"]));
  expect(new Set((await entriesOf("action=keys.create")).map(({ action }) => action))).toEqual(
    new Set(["keys.create"]),
  );
  expect(new Set((await entriesOf("identity=key_local")).map(({ identity }) => identity.id))).toEqual(
    new Set(["key_local"]),
  );
  expect(await entriesOf(`since=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`)).toEqual([]);
  expect(
    (await entriesOf(`until=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`)).length,
  ).toBeGreaterThan(5);
  const all = (await entriesOf("action=keys.create")).map(({ id }) => id);
  const first = (await daemon.call("GET", "/v1/audit?action=keys.create&limit=3")).body;
  const second = (await daemon.call("GET", `/v1/audit?action=keys.create&limit=3&starting_after=${first.next_cursor}`))
    .body;
  expect([...first.data, ...second.data].map(({ id }: Entry) => id)).toEqual(all.slice(0, 6));
  // `next_cursor` leads on in the direction that was asked for.
  const back = (await daemon.call("GET", `/v1/audit?action=keys.create&limit=2&ending_before=${all[5]}`)).body;
  const further = (await daemon.call("GET", `/v1/audit?action=keys.create&limit=2&ending_before=${back.next_cursor}`))
    .body;
  expect([...further.data, ...back.data].map(({ id }: Entry) => id)).toEqual(all.slice(1, 5));
  expect((await daemon.call("GET", "/v1/audit?outcome=odd")).status).toBe(422);
});

test("a key sees its own environment's entries, an operator both", async () => {
  const reader = await makeKey({ scopes: ["audit:read"], environment: "live", tier: "enterprise" });
  await daemon.call("GET", "/v1/audit", { token: reader.secret });
  await daemon.app.identity.audit.verify();
  const seen = await entriesOf("", reader.secret);
  expect(new Set(seen.map(({ environment }) => environment))).toEqual(new Set(["live"]));
  expect(new Set((await entriesOf("")).map(({ environment }) => environment))).toEqual(new Set(["live", "sandbox"]));
});

test("600 mixed calls at once: one entry each, in a valid chain", async () => {
  const { sent, recorded, proof } = await mixedCalls(daemon, 600);
  expect(proof).toMatchObject({ valid: true, problems: [] });
  expect(recorded).toEqual(sent);
});

test("daemons that share a database each prove its log: one that came later too, and what retention took on another one's turn", async () => {
  const real = await temporaryStorage();
  let pages = 0;
  const page: typeof real.units.audit.page = (args) => {
    pages++;
    return real.units.audit.page(args);
  };
  const { head, append, prune, lastBefore, look } = real.units.audit;
  const units = { setting: real.units.setting, audit: { head, append, prune, lastBefore, look, page } };
  const storage = { ...real, dialect: "postgres", units } as unknown as typeof real;
  const key = randomBytes(32);
  const logger = createLogger({ sinks: [] });
  const open = async (name: string, userState = temporaryFolder(), over = storage) => {
    const trail = await openAuditTrail({
      ...{ storage: over, key, logger, clock: systemClock, startOver: false, retentionDays: () => null },
      ...{ root: `/${name}`, userState },
    });
    onTestFinished(() => trail.close());
    return trail;
  };
  const call = { identity: { type: "local", id: null }, environment: "live", action: "keys.list" } as const;
  const entry = { ...call, resource: null, status: 200, requestId: "req_1" };
  // The first had a log in its own file before.
  const [home, file] = [temporaryFolder(), await temporaryStorage()];
  const alone = await open("first", home, file);
  for (let index = 0; index < 9; index++) await alone.recordDurably(entry);
  await alone.close();
  const first = await open("first", home);
  await first.recordDurably(entry);
  const second = await open("second");
  for (const trail of [second, first, second]) await trail.recordDurably(entry);
  expect(await second.verify()).toMatchObject({ valid: true, entries: 4 });
  // Many that ask at once are answered by two walks: one was under way when the others came.
  pages = 0;
  const proofs = await Promise.all(Array.from({ length: 20 }, () => second.verify()));
  expect(new Set(proofs.map(({ valid, entries }) => `${valid} ${entries}`))).toEqual(new Set(["true 4"]));
  expect(pages).toBe(2);
  // The newest stays: without it the first, which has not seen it, would give its number again.
  expect(await first.prune(new Date(Date.now() + 1_000))).toBe(3);
  await first.recordDurably(entry);
  expect(await second.verify()).toMatchObject({ valid: true, entries: 2 });
  await storage.units.setting.put({
    key: "identity.audit_base",
    value: JSON.stringify({ sequence: 5, mac: "", sealed: "" }),
  });
  expect(await first.verify()).toMatchObject({ valid: true, entries: 2 });
  expect((await second.verify()).problems).toMatchObject([{ code: "missing" }]);
  expect(await (await open("first", home, file)).verify()).toMatchObject({ valid: true, entries: 9 });
});

test("retention leaves a checkpoint: older entries go, the proof holds", async () => {
  const own = await startDaemon();
  onTestFinished(() => own.close());
  for (let index = 0; index < 11; index++) await own.call("GET", "/v1/keys");
  await own.app.identity.audit.verify();
  expect(await own.app.identity.audit.prune(new Date(Date.now() + 1_000))).toBeGreaterThanOrEqual(10);
  await own.call("GET", "/v1/keys");
  await own.restart();
  expect(await own.app.identity.audit.verify()).toMatchObject({ valid: true, problems: [] });
});

test("a daemon that never lives for hours looks at its retention too", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const storage = await temporaryStorage();
  const trail = await openAuditTrail({
    ...{ storage, key: randomBytes(32), clock: systemClock, logger: createLogger({ sinks: [] }), startOver: false },
    ...{ root: "/root", userState: temporaryFolder(), retentionDays: () => -1 },
  });
  onTestFinished(() => trail.close());
  const identity = { type: "local", id: null } as const;
  const call = { identity, environment: "live", action: "keys.list", resource: null, status: 200, requestId: "req_1" };
  for (let index = 0; index < 3; index++) await trail.recordDurably({ ...call, environment: "live" });
  vi.advanceTimersByTime(60_000);
  await vi.waitFor(async () => expect(await storage.units.audit.page({ after: null, limit: 9 })).toHaveLength(1));
});

/** A stopped daemon with some entries, whose database is changed by `change` before it is started again. */
async function tamper(change: (db: DatabaseSync) => void): Promise<TestDaemon> {
  const own = await startDaemon();
  onTestFinished(() => own.close());
  for (let index = 0; index < 10; index++) await own.call("GET", "/v1/keys");
  await own.app.close();
  const db = new DatabaseSync(join(own.root, ".magic", "magic.db"));
  change(db);
  db.close();
  await own.restart();
  return own;
}

const columns =
  "timestamp, identity_type, identity_id, action, resource, outcome, status, request_id, environment, mac";

test.each([
  [
    "entries added, edited and deleted",
    `insert into audit_entry select null, 'x', ${columns} from audit_entry where sequence = 4;
     insert into audit_entry select -1, 'y', ${columns} from audit_entry where sequence = 4;
     update audit_entry set outcome = 'failed' where sequence = 3;
     update audit_entry set mac = x'00ff' where sequence = 6;
     delete from audit_entry where sequence = 9`,
    ["unexpected", "unexpected", "altered", "altered", "altered", "missing"],
  ],
  ["its end cut off", "delete from audit_entry where sequence > 6", ["missing"]],
  ["its entries deleted", "delete from audit_entry", ["missing"]],
  ["its table dropped", "drop table audit_entry", ["missing"]],
])("a daemon whose log had %s starts, goes on, and keeps saying so", async (_what, sql, codes) => {
  const own = await tamper((db) => db.exec(sql));
  // A cut-off end must not be covered up by what is written after it.
  for (let round = 0; round < 2; round++) {
    if (round > 0) await own.restart();
    expect((await own.call("GET", "/v1/keys")).status).toBe(200);
    const { body } = await own.call("GET", "/v1/audit/verification");
    expect(body.valid).toBe(false);
    expect(body.problems.map((problem: { code: string }) => problem.code)).toEqual(codes);
  }
});

test.for([
  ["where numbers end", ["9007199254740991", "1e300", "9223372036854775807"], ["missing", "unexpected", "unexpected"]],
  ["at the last place that there is", ["4503599627370496"], ["missing"]],
] as const)("entries that somebody put %s keep no later ones out", async ([, places, codes]) => {
  const own = await tamper((db) => {
    for (const [at, place] of places.entries())
      db.exec(`insert into audit_entry select ${place}, 'x${at}', ${columns} from audit_entry where sequence = 4`);
  });
  await own.call("GET", "/v1/keys", { headers: { "x-request-id": "behind" } });
  const listed = async () => (await own.call("GET", "/v1/audit?request_id=behind")).body.data;
  await expect.poll(listed, { timeout: 10_000, interval: 25 }).toHaveLength(1);
  const { problems } = await own.app.identity.audit.verify();
  expect(problems.map(({ code }) => code)).toEqual(codes);
});

test("anchors that are written at once, as after a freeze, leave a whole one, the last", async () => {
  const folder = temporaryFolder();
  const anchors = anchorFile(join(folder, "audit", "a.json"), Buffer.alloc(32));
  const placed = (sequence: number) => ({ head: { sequence, mac: "m".repeat(sequence) }, base: GENESIS });
  await Promise.all([900, 5, 40, 1_000, 3].map((sequence) => anchors.write(placed(sequence))));
  expect(await anchors.read()).toEqual(placed(3));
});

test("a log without its anchor, or with another log's, is not valid", async () => {
  const own = await tamper(() => undefined);
  expect((await own.app.identity.audit.verify()).valid).toBe(true);
  await own.app.close();
  rmSync(join(own.home, "audit"), { recursive: true });
  await own.restart();
  const { audit } = own.app.identity;
  expect((await audit.verify()).problems.map(({ code }) => code)).toEqual(["anchor_missing"]);
  // Retention's checkpoint is no new anchor: the finding stays.
  expect(await audit.prune(new Date(Date.now() + 1_000))).toBeGreaterThan(5);
  expect((await audit.verify()).problems.map(({ code }) => code)).toContain("anchor_missing");
});

test("a copied root takes its anchor along and then has one of its own", async () => {
  const own = await tamper(() => undefined);
  await own.app.close();
  const anchors = () => readdirSync(join(own.home, "audit"));
  expect(anchors()).toHaveLength(1);
  cpSync(own.root, `${own.root}-kept`, { recursive: true });
  const elsewhere = join(own.root, "..", "moved");
  mkdirSync(elsewhere, { recursive: true });
  renameSync(join(own.root, ".magic"), join(elsewhere, ".magic"));
  const copy = await startDaemon({ root: elsewhere, env: { MAGIC_HOME: own.home } });
  expect((await copy.app.identity.audit.verify()).valid).toBe(true);
  await copy.close();
  expect(anchors()).toHaveLength(2);
  renameSync(join(`${own.root}-kept`, ".magic"), join(own.root, ".magic"));
  await own.restart();
  expect((await own.app.identity.audit.verify()).valid).toBe(true);
});

test("a backup of a daemon that runs is proven where the user's state was copied before the database", async () => {
  const own = await tamper(() => undefined);
  cpSync(own.home, `${own.home}-backup`, { recursive: true });
  for (let index = 0; index < 5; index++) await own.call("GET", "/v1/keys");
  await own.app.close();
  rmSync(own.home, { recursive: true });
  renameSync(`${own.home}-backup`, own.home);
  await own.restart();
  expect(await own.app.identity.audit.verify()).toMatchObject({ valid: true, problems: [] });
});
