// Connections, syncs and runs over HTTP, in the sandbox and live.
import { cpSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";

async function pair({ call }: TestDaemon, live = false, metadata = {}) {
  const ids = [];
  for (const provider of ["postgres", "sqlite"]) {
    const made = await call("POST", "/v1/connections", { provider, metadata }, { live });
    expect(made.status).toBe(201);
    ids.push(made.body.id);
  }
  return {
    source: { connection: ids[0], object: "public.orders" },
    destination: { connection: ids[1], table: "orders" },
  };
}

test("a connection is made from its provider alone, read, patched and deleted once", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const { status, body: made } = await call("POST", "/v1/connections", { provider: "postgres" });
  expect(status).toBe(201);
  expect(made).toMatchObject({
    object: "connection",
    provider: "postgres",
    environment: "sandbox",
    status: "connected",
    last_synced_at: null,
    metadata: {},
  });
  expect(made.id).toMatch(/^conn_/);
  expect((await call("GET", `/v1/connections/${made.id}`)).body).toEqual(made);
  const patch = { name: "Warehouse", metadata: { a: 1, b: "x" } };
  expect((await call("PATCH", `/v1/connections/${made.id}`, patch)).body).toMatchObject(patch);
  const merged = await call("PATCH", `/v1/connections/${made.id}`, { metadata: { a: null, c: true }, name: null });
  expect(merged.body).toMatchObject({ name: "postgres", metadata: { b: "x", c: true } });
  const fifty = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i]));
  const grown = await call("PATCH", `/v1/connections/${made.id}`, { metadata: fifty });
  expect(grown.body).toMatchObject({ status: 422, errors: [{ pointer: "/metadata" }] });
  const config = (from: number) => Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`k${from + i}`, i]));
  expect((await call("PATCH", `/v1/connections/${made.id}`, { config: config(0) })).status).toBe(200);
  const larger = await call("PATCH", `/v1/connections/${made.id}`, { config: config(150) });
  expect(larger.body).toMatchObject({ status: 422, errors: [{ pointer: "/config" }] });
  expect((await call("DELETE", `/v1/connections/${made.id}`)).status).toBe(200);
  expect((await call("DELETE", `/v1/connections/${made.id}`)).status).toBe(404);
  for (const id of [made.id, "", "x".repeat(400), "x".repeat(4_000)])
    expect((await call("GET", `/v1/connections/${id}`)).body).toMatchObject({ status: 404, code: "not_found" });
  const unknown = await call("POST", "/v1/connections", { provider: "nonesuch" });
  expect(unknown.body).toMatchObject({
    status: 422,
    detail: expect.stringMatching(/^\/provider: there is no connector/),
  });
  const slip = await call("POST", "/v1/connections", { provider: "postgers" });
  expect(slip.body).toMatchObject({ detail: expect.stringContaining("did you mean postgres?") });
});

test("changes of one resource that come at once are all kept, however many", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const ends = await pair(daemon, true);
  const { body: sync } = await call("POST", "/v1/syncs", ends, { live: true });
  const hook = { url: "https://example.com", events: ["sync.completed"] };
  const { body: webhook } = await call("POST", "/v1/webhooks", hook, { live: true });
  const paths = [`/v1/connections/${ends.source.connection}`, `/v1/syncs/${sync.id}`];
  const members = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, i]));
  const answers = await Promise.all(
    Object.entries(members).flatMap(([name, value]) => [
      ...paths.map((path) => call("PATCH", path, { metadata: { [name]: value } }, { live: true })),
      call("PATCH", `/v1/webhooks/${webhook.id}`, { description: name }, { live: true }),
    ]),
  );
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  for (const path of paths) expect((await call("GET", path, undefined, { live: true })).body.metadata).toEqual(members);
});

test("read-only, unknown and wrong fields are refused all at once, each by its pointer", async () => {
  const { call } = await startDaemon();
  const { body: made } = await call("POST", "/v1/connections", { provider: "postgres" });
  for (const patch of [{ status: "disabled" }, { id: "x" }, { provider: "mysql" }, { health: {} }, { nonsense: 1 }]) {
    const refused = await call("PATCH", `/v1/connections/${made.id}`, patch);
    expect(refused.status).toBe(422);
    expect(refused.body).toMatchObject({
      code: "validation_failed",
      errors: [{ pointer: `/${Object.keys(patch)[0]}` }],
    });
  }
  // Of what may be null too: neither that it is not null, nor a second time that it fits nothing.
  const odd = await call("PATCH", `/v1/connections/${made.id}`, { name: "", metadata: { deep: {}, kept: null } });
  expect(odd.body.errors).toEqual([
    { pointer: "/name", code: "minLength", detail: "must NOT have fewer than 1 characters" },
    { pointer: "/metadata/deep", code: "type", detail: expect.stringMatching(/^must be string or number/) },
  ]);
  const { status, body } = await call("POST", "/v1/syncs", {
    source: { connection: "conn_x" },
    destination: {},
    mode: "odd",
    schedule: "every day",
    extra: 1,
  });
  expect(status).toBe(422);
  expect(body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual(
    [
      ...["/destination/connection", "/destination/table", "/extra", "/mode"],
      ...["/schedule", "/source/connection", "/source/object"],
    ].sort(),
  );
  const pointers = async (path: string, sent: object, live = false) =>
    (await call("POST", path, sent, { live })).body.errors.map(({ pointer }: { pointer: string }) => pointer).sort();
  expect(await pointers("/v1/connections", { provider: "nonesuch", "a/b": 1 })).toEqual(["/a~1b", "/provider"]);
  expect(await pointers("/v1/webhooks", { url: "ftp://x", events: [] }, true)).toEqual(["/events", "/url"]);
  const ends = await pair({ call } as TestDaemon);
  const twice = await pointers("/v1/syncs", { ...ends, primary_key: ["a", "a"], columns: ["b", "b"] });
  expect(twice).toEqual(["/columns", "/primary_key"]);
  expect(await pointers("/v1/syncs", { ...ends, schedule: "x", mapping: { "a/b": "c", d: "c" } })).toEqual([
    ...["/mapping/a~1b", "/mapping/d", "/schedule"],
  ]);
  const named = { "a\nb": { deep: true }, [`${"k".repeat(60)}\n`]: 1 };
  expect(await pointers("/v1/syncs", { ...ends, mapping: { "a\nb": 5 }, metadata: named })).toEqual(
    expect.arrayContaining(["/mapping/a\nb", "/metadata/a\nb", `/metadata/${"k".repeat(60)}\n`]),
  );
  expect((await call("POST", "/v1/connections", { provider: "no-such-system" })).body.errors[0].pointer).toBe(
    "/provider",
  );
  const unknown = await call("POST", "/v1/syncs", {
    source: { connection: "conn_x", object: "a" },
    destination: { connection: "conn_y", table: "b" },
  });
  expect(unknown.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
    "/source/connection",
    "/destination/connection",
  ]);
  for (const schedule of [
    "every day",
    "61 * * * *",
    "2030-01-01T00:00:00Z",
    { cron: "* * * * *", timezone: "Mars/Base" },
  ])
    expect((await call("POST", "/v1/syncs", { ...(await pair({ call } as TestDaemon)), schedule })).status).toBe(422);
});

test("lists are newest first and page both ways, with deleted ids as cursors too", async () => {
  const { call } = await startDaemon();
  const ids: string[] = [];
  for (let i = 0; i < 7; i++)
    ids.unshift((await call("POST", "/v1/connections", { provider: i % 2 ? "mysql" : "postgres" })).body.id);
  const list = async (query: string) => (await call("GET", `/v1/connections?${query}`)).body;
  const idsOf = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);
  const first = await list("limit=3");
  expect(idsOf(first)).toEqual(ids.slice(0, 3));
  expect(first).toMatchObject({ object: "list", has_more: true, next_cursor: ids[2] });
  await call("DELETE", `/v1/connections/${ids[2]}`);
  const second = await list(`limit=3&starting_after=${first.next_cursor}`);
  expect(idsOf(second)).toEqual(ids.slice(3, 6));
  expect(await list(`limit=3&starting_after=${second.next_cursor}`)).toMatchObject({
    data: [{ id: ids[6] }],
    has_more: false,
    next_cursor: null,
  });
  expect(idsOf(await list(`limit=2&ending_before=${ids[5]}`))).toEqual(ids.slice(3, 5));
  expect(idsOf(await list("provider=mysql"))).toHaveLength(3);
  expect(idsOf(await list("status=failed"))).toEqual([]);
  for (const query of [
    "limit=0",
    "limit=101",
    "limit=x",
    "limit=1e1",
    "limit=%205",
    "starting_after=%27",
    `starting_after=${ids[0]}&ending_before=${ids[1]}`,
  ])
    for (const path of ["connections", "syncs", "keys", "clients", "gateway-tokens", "audit"])
      expect((await call("GET", `/v1/${path}?${query}`)).status, `${path} ${query}`).toBe(422);
  // Another noun's ids are no places in this list, though they could be compared with its own.
  const noun = {
    keys: "key",
    clients: "client",
    "gateway-tokens": "gt",
    audit: "aud",
    syncs: "sync",
    connections: "conn",
  };
  for (const [path, prefix] of Object.entries(noun))
    for (const other of ["conn", "sync", "zz", "a", `${prefix}s`])
      for (const direction of ["starting_after", "ending_before"]) {
        const { status, body } = await call("GET", `/v1/${path}?${direction}=${other}_01k0000000`);
        expect(status, `${path} ${other}`).toBe(other === prefix ? 200 : 422);
        if (status !== 200) expect(body.errors).toMatchObject([{ pointer: `/${direction}`, code: "format" }]);
      }
  expect((await call("GET", "/v1/connections?limit=1.5")).body.errors).toEqual([
    { pointer: "/limit", code: "type", detail: "must be integer" },
  ]);
  for (const path of ["connections", "syncs", "keys", "audit", "connectors", `connections/${ids[0]}/objects`]) {
    const { status, body } = await call("GET", `/v1/${path}?stauts=failed`);
    expect([status, body.errors], path).toEqual([
      ...[422, [{ pointer: "/stauts", code: "additionalProperties", detail: "unknown field" }]],
    ]);
  }
  for (const path of ["/v1/connectors", `/v1/connections/${ids[0]}/objects`])
    expect((await call("GET", `${path}?starting_after=a&ending_before=b`)).status, path).toBe(422);
});

test("of what may be a text or an object, the object's own problems are told", async () => {
  const daemon = await startDaemon();
  const sync = await pair(daemon);
  const found = async (schedule: unknown) =>
    (await daemon.call("POST", "/v1/syncs", { ...sync, schedule })).body.errors.map(
      ({ pointer, code }: { pointer: string; code: string }) => `${pointer} ${code}`,
    );
  expect(await found({ cron: "0 * * * *", zone: "UTC" })).toEqual(["/schedule/zone additionalProperties"]);
  expect(await found({})).toEqual(["/schedule/cron required"]);
  expect(await found({ cron: 5 })).toEqual(["/schedule/cron type"]);
  expect(await found("")).toEqual(["/schedule minLength"]);
  expect(await found(5)).toEqual(["/schedule type"]);
});

test("a sandbox trigger completes at once, and a sync's records are the sum over its runs", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const { status, body: sync } = await call("POST", "/v1/syncs", { ...(await pair(daemon)), schedule: "0 * * * *" });
  expect(status).toBe(201);
  expect(sync).toMatchObject({ status: "active", records_synced: 0, last_run: null, mode: "full_refresh" });
  expect(new Date(sync.next_run_at).getUTCMinutes()).toBe(0);
  let total = 0;
  for (let i = 0; i < 6; i++) {
    const { status: accepted, body: run } = await call("POST", `/v1/syncs/${sync.id}/trigger`);
    expect(accepted).toBe(202);
    expect(run).toMatchObject({ object: "run", sync: sync.id, status: "completed", trigger: "manual", error: null });
    expect(run.records_read).toBe(run.records_synced + run.records_rejected);
    expect(Date.parse(run.finished_at)).toBeGreaterThan(Date.parse(run.started_at));
    const rejects = await call("GET", `/v1/runs/${run.id}/rejects`);
    expect(rejects.body.data).toHaveLength(run.records_rejected);
    total += run.records_synced;
    expect((await call("POST", `/v1/runs/${run.id}/cancel`)).status).toBe(409);
  }
  const after = (await call("GET", `/v1/syncs/${sync.id}`)).body;
  expect(after).toMatchObject({ status: "active", records_synced: total, last_run: { status: "completed" } });
  const runs = (await call("GET", `/v1/syncs/${sync.id}/runs?limit=2`)).body;
  expect(runs.data[0].id).toBe(after.last_run.id);
  expect(runs.has_more).toBe(true);
  expect((await call("GET", `/v1/connections/${sync.source.connection}`)).body.last_synced_at).toBe(
    after.last_run.finished_at,
  );
  const objects = (await call("GET", `/v1/connections/${sync.source.connection}/objects`)).body;
  expect(objects.data[0]).toMatchObject({ primary_key: ["id"], schema: { type: "object" } });
  // As a live database's are shown: types, their order, and nothing more.
  expect(objects.data[0].schema).toEqual({
    type: "object",
    properties: {
      id: { type: "integer" },
      ...Object.fromEntries(["name", "email", "country"].map((name) => [name, { type: ["string", "null"] }])),
      created_at: { type: ["string", "null"], format: "date-time" },
      updated_at: { type: ["string", "null"], format: "date-time" },
    },
    required: ["id"],
  });
  expect(objects.data[0].cursor_candidates).toEqual(["id", "created_at", "updated_at"]);
  const path = `/v1/connections/${sync.source.connection}/objects`;
  const [first, second, third] = objects.data;
  const page = (await call("GET", `${path}?limit=1&starting_after=${first.name}`)).body;
  expect(page).toMatchObject({ data: [second], has_more: true, next_cursor: second.name });
  expect((await call("GET", `${path}?limit=1&ending_before=${third.name}`)).body.data).toEqual([second]);
  expect((await call("GET", `${path}?limit=0`)).status).toBe(422);
});

test("sandbox triggers of one sync that come at once are all accepted, however many", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const { body: sync } = await call("POST", "/v1/syncs", await pair(daemon));
  const trigger = () => call("POST", `/v1/syncs/${sync.id}/trigger`);
  const answers = await Promise.all(Array.from({ length: 130 }, trigger));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(130);
  const synced = answers.reduce((sum, { body }) => sum + body.records_synced, 0);
  expect((await call("GET", `/v1/syncs/${sync.id}`)).body.records_synced).toBe(synced);
});

test("simulated values are those of seed, id and ordinal: a copy of the state answers alike", async () => {
  const first = await startDaemon();
  const { body: sync } = await first.call("POST", "/v1/syncs", await pair(first));
  await first.close();
  const copy = temporaryFolder();
  cpSync(first.root, copy, { recursive: true });
  const values = async (root: string) => {
    const daemon = await startDaemon({ root, env: { MAGIC_HOME: first.home } });
    const found = [];
    for (let i = 0; i < 3; i++) {
      const { body } = await daemon.call("POST", `/v1/syncs/${sync.id}/trigger`);
      const { id, started_at, finished_at, ...rest } = body;
      found.push({ ...rest, took: Date.parse(finished_at) - Date.parse(started_at) });
    }
    const connection = (await daemon.call("POST", `/v1/connections/${sync.source.connection}/check`)).body;
    await daemon.close();
    return { found, health: connection.health };
  };
  expect(await values(first.root)).toEqual(await values(copy));
});

test("metadata.simulate makes runs fail, and the sync recovers when it is taken away", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const ends = await pair(daemon, false, { simulate: "run_failed" });
  const { body: sync } = await call("POST", "/v1/syncs", ends);
  const { body: run } = await call("POST", `/v1/syncs/${sync.id}/trigger`);
  expect(run).toMatchObject({ status: "failed", records_synced: 0, errors: [{ code: "simulated_failure" }] });
  expect((await call("GET", `/v1/syncs/${sync.id}`)).body).toMatchObject({
    status: "failed",
    errors: [{ code: "simulated_failure" }],
  });
  for (const id of [ends.source.connection, ends.destination.connection])
    await call("PATCH", `/v1/connections/${id}`, { metadata: { simulate: null } });
  expect((await call("POST", `/v1/syncs/${sync.id}/trigger`)).body.status).toBe("completed");
  expect((await call("GET", `/v1/syncs/${sync.id}`)).body.status).toBe("active");
});

test("deleting a connection pauses its syncs, which can then be neither triggered nor resumed", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const ends = await pair(daemon);
  const { body: sync } = await call("POST", "/v1/syncs", { ...ends, schedule: "0 * * * *" });
  await call("DELETE", `/v1/connections/${ends.destination.connection}`);
  expect((await call("GET", `/v1/syncs/${sync.id}`)).body).toMatchObject({ status: "paused", next_run_at: null });
  expect(await call("POST", `/v1/syncs/${sync.id}/trigger`)).toMatchObject({
    status: 409,
    body: { code: "connection_missing" },
  });
  expect(await call("PATCH", `/v1/syncs/${sync.id}`, { status: "active" })).toMatchObject({
    status: 409,
    body: { code: "connection_missing" },
  });
  expect((await call("GET", `/v1/syncs?connection=${ends.source.connection}`)).body.data).toHaveLength(1);
});

test("pause and resume by PATCH; other states are nobody's to set", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const { body: sync } = await call("POST", "/v1/syncs", await pair(daemon));
  expect((await call("PATCH", `/v1/syncs/${sync.id}`, { status: "paused" })).body.status).toBe("paused");
  expect((await call("POST", `/v1/syncs/${sync.id}/trigger`)).body.code).toBe("conflict");
  expect((await call("PATCH", `/v1/syncs/${sync.id}`, { status: "active", schedule: "realtime" })).body).toMatchObject({
    status: "active",
    schedule: "realtime",
  });
  for (const status of ["running", "failed", "deleted", null, 1])
    expect((await call("PATCH", `/v1/syncs/${sync.id}`, { status })).status).toBe(422);
  expect((await call("PATCH", `/v1/syncs/${sync.id}`, { records_synced: 5 })).status).toBe(422);
  const scheduled = async (schedule: unknown) =>
    (await call("PATCH", `/v1/syncs/${sync.id}`, { schedule })).body.schedule;
  expect(await scheduled({ timezone: "Europe/Berlin" })).toBeUndefined();
  expect(await scheduled({ cron: "0 * * * *", timezone: "Europe/Berlin" })).toMatchObject({ cron: "0 * * * *" });
  expect(await scheduled({ timezone: "Asia/Tokyo" })).toEqual({ cron: "0 * * * *", timezone: "Asia/Tokyo" });
  expect(await scheduled({ timezone: null, cron: "5 * * * *" })).toEqual({ cron: "5 * * * *" });
  expect(await scheduled(null)).toBe("manual");
  const mapped = async (mapping: unknown) => (await call("PATCH", `/v1/syncs/${sync.id}`, { mapping })).body.mapping;
  expect(await mapped({ id: "key", name: "title" })).toEqual({ id: "key", name: "title" });
  expect(await mapped({ id: null, email: "mail" })).toEqual({ name: "title", email: "mail" });
  expect(await mapped(null)).toBeNull();
  const many = (from: number) =>
    Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`a${from + i}`, `b${from + i}`]));
  expect(await mapped(many(0))).toEqual(many(0));
  const grown = await call("PATCH", `/v1/syncs/${sync.id}`, { mapping: many(1200) });
  expect(grown.body).toMatchObject({ status: 422, errors: [{ pointer: "/mapping", code: "maxProperties" }] });
});

test("the other environment's resources do not exist", async () => {
  const daemon = await startDaemon();
  const { call } = daemon;
  const { body: sync } = await call("POST", "/v1/syncs", await pair(daemon));
  const { body: run } = await call("POST", `/v1/syncs/${sync.id}/trigger`);
  const paths = [
    `/v1/syncs/${sync.id}`,
    `/v1/runs/${run.id}`,
    `/v1/syncs/${sync.id}/runs`,
    `/v1/runs/${run.id}/rejects`,
    `/v1/connections/${sync.source.connection}`,
    `/v1/connections/${sync.source.connection}/objects`,
  ];
  for (const path of paths) expect((await call("GET", path, undefined, { live: true })).status, path).toBe(404);
  expect((await call("POST", `/v1/syncs/${sync.id}/trigger`, {}, { live: true })).status).toBe(404);
  expect((await call("GET", "/v1/syncs", undefined, { live: true })).body.data).toEqual([]);
});

test("tiers limit live connections and active syncs, naming limit, tier and way out", async () => {
  const daemon = await startDaemon();
  const { body: key } = await daemon.call("POST", "/v1/keys", {
    name: "k",
    scopes: ["connections:read", "connections:write", "syncs:read", "syncs:write"],
    environment: "live",
    tier: "starter",
  });
  const call: TestDaemon["call"] = (method, path, body, options) =>
    daemon.call(method, path, body, options?.live ? { token: key.secret } : {});
  const ends = await pair({ ...daemon, call }, true);
  for (let i = 0; i < 3; i++) await call("POST", "/v1/connections", { provider: "postgres" }, { live: true });
  const sixth = await call("POST", "/v1/connections", { provider: "postgres" }, { live: true });
  expect(sixth).toMatchObject({
    status: 403,
    body: { code: "limit_reached", limit: "connections", max: 5, tier: "starter" },
  });
  expect(sixth.body.detail).toMatch(/starter.*5 connections.*Delete.*professional/);
  const syncs = [];
  for (let i = 0; i < 3; i++) syncs.push((await call("POST", "/v1/syncs", ends, { live: true })).body.id);
  expect((await call("POST", "/v1/syncs", ends, { live: true })).body).toMatchObject({
    code: "limit_reached",
    limit: "active syncs",
  });
  await call("PATCH", `/v1/syncs/${syncs[0]}`, { status: "paused" }, { live: true });
  expect((await call("POST", "/v1/syncs", ends, { live: true })).status).toBe(201);
  expect((await call("PATCH", `/v1/syncs/${syncs[0]}`, { status: "active" }, { live: true })).body.code).toBe(
    "limit_reached",
  );
  for (let i = 0; i < 8; i++)
    expect((await call("POST", "/v1/connections", { provider: "postgres" })).status).toBe(201);
});

test("secrets of a connection are in no answer and in no file", async () => {
  const daemon = await startDaemon();
  const canary = "canary-7f3a9b1c5d";
  const body = {
    provider: "postgres",
    config: { url: `postgres://u:${canary}@h/db`, deep: { key: canary } },
    credentials: { password: canary },
  };
  for (const live of [false, true]) {
    const made = await daemon.call("POST", "/v1/connections", body, { live });
    const seen = [made.body];
    for (const path of [`/v1/connections/${made.body.id}`, "/v1/connections"])
      seen.push((await daemon.call("GET", path, undefined, { live })).body);
    seen.push(
      (await daemon.call("PATCH", `/v1/connections/${made.body.id}`, { credentials: { token: canary } }, { live }))
        .body,
    );
    expect(JSON.stringify(seen)).not.toContain(canary);
  }
  await daemon.close();
  const files = (folder: string): string[] =>
    readdirSync(folder).flatMap((name) =>
      statSync(join(folder, name)).isDirectory() ? files(join(folder, name)) : [join(folder, name)],
    );
  for (const file of files(daemon.root)) expect(readFileSync(file).includes(canary), file).toBe(false);
});
