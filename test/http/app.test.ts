import { mkdtemp, rm, stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fastify } from "fastify";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { errors, MagicError } from "#contract/errors.ts";
import { type App, createApp } from "#daemon/app.ts";
import { healthRoutes } from "#daemon/http/routes/health.ts";
import { createMetrics } from "#daemon/telemetry/metrics.ts";

// Generous, for machines that do other things too.
vi.setConfig({ testTimeout: 60_000 });

const patience = { timeout: 20_000 };
let root: string;
let app: App;
let url: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-app-"));
  app = await createApp({ root });
  const body = Type.Object(
    { name: Type.String(), count: Type.Integer({ minimum: 1 }), deep: Type.Object({ table: Type.String() }) },
    { additionalProperties: false },
  );
  const config = { scope: "syncs:write", surface: "core" } as const;
  for (const scope of [null, "syncs:read"] as const)
    app.fastify.get(`/v1/away/${scope}`, { config: { scope, surface: "core" } }, async () => {
      throw new MagicError("storage_unavailable", 'no pg_hba.conf entry for user "owner"', { retryAfterS: 2 });
    });
  app.fastify.post("/v1/things/:id", { config, schema: { body } }, async (request) => ({ id: request.id }));
  app.fastify.get("/v1/things", { config: { scope: "audit:read" } }, async () => {
    throw new Error("secret stays inside");
  });
  const bodyLimit = 16 * 1024 * 1024;
  app.fastify.post("/v1/many/:id", { config, bodyLimit, schema: { body } }, async (request) => ({ id: request.id }));
  app.fastify.post("/v1/completions", { config: { ...config, errors: "openai" }, schema: { body } }, async () => ({}));
  url = await app.listen();
});

afterAll(async () => {
  await app.close();
  await rm(root, { recursive: true, force: true });
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(app.credentials.local_token), ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

test("what a database says as it refuses is told to nobody unknown", async () => {
  const told = async (scope: string) => {
    const answer = await fetch(`${url}/v1/away/${scope}`, { headers: bearer(app.credentials.local_token) });
    return [answer.status, answer.headers.get("retry-after"), ((await answer.json()) as { detail: string }).detail];
  };
  expect(await told("syncs:read")).toEqual([503, "2", 'no pg_hba.conf entry for user "owner"']);
  expect(await told("null")).toEqual([503, "2", errors.storage_unavailable.title]);
});

test("health answers without a credential, and both paths alike", async () => {
  for (const path of ["/health", "/v1/health"]) {
    const answer = await fetch(url + path);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ status: "ok", api_version: "v1", environment: "development" });
  }
});

test("health that many ask for at once asks each part once, and anew for who comes later", async () => {
  const health = fastify();
  const asked: (() => void)[] = [];
  healthRoutes(health, {
    checks: { storage: () => new Promise((resolve) => asked.push(resolve)) },
    deployment: () => "development",
  });
  for (let round = 1; round <= 2; round++) {
    const answers = Array.from({ length: 50 }, () => health.inject("/health"));
    await expect.poll(() => asked).toHaveLength(round);
    await new Promise((resolve) => setTimeout(resolve, 50));
    asked[round - 1]?.();
    expect(new Set((await Promise.all(answers)).map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
  }
  expect(asked).toHaveLength(2);
  await health.close();
});

test("a well-formed request id is kept, another is replaced", async () => {
  const kept = await fetch(`${url}/health`, { headers: { "x-request-id": "my-id.1" } });
  expect(kept.headers.get("x-request-id")).toBe("my-id.1");
  const replaced = await fetch(`${url}/health`, { headers: { "x-request-id": "no spaces" } });
  expect(replaced.headers.get("x-request-id")).toMatch(/^req_/);
});

test("a validation error lists every problem, and each pointer names the key itself", async () => {
  const answer = await post("/v1/things/1", { count: 0, deep: {}, extra: 1 });
  expect(answer.status).toBe(422);
  expect(answer.headers.get("content-type")).toContain("application/problem+json");
  const problem = (await answer.json()) as { code: string; errors: { pointer: string }[] };
  expect(problem.code).toBe("validation_failed");
  expect(problem.errors.map((error) => error.pointer).sort()).toEqual(["/count", "/deep/table", "/extra", "/name"]);
});

test("a huge invalid body is answered with its first problem", async () => {
  const answer = await post(
    "/v1/things/1",
    [...Array(300_000)].map(() => 1),
  );
  expect(answer.status).toBe(422);
  expect(((await answer.json()) as { errors: unknown[] }).errors).toHaveLength(1);
});

test("the gateway's errors have OpenAI's form", async () => {
  const invalid = await post("/v1/completions", { name: "x", count: 1, deep: { table: 2 } });
  expect(invalid.status).toBe(400);
  expect(await invalid.json()).toMatchObject({ error: { type: "invalid_request_error", param: "deep.table" } });
  const unknown = await post("/v1/completions", {}, bearer("sk_test_unknown"));
  expect(unknown.status).toBe(401);
  expect(await unknown.json()).toMatchObject({ error: { code: "invalid_api_key" } });
});

test("a caller without the scope gets 403 before anything is validated", async () => {
  const answer = await fetch(`${url}/v1/things`, { headers: bearer(app.credentials.api_key) });
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ code: "insufficient_scope", scope: "audit:read" });
});

test("an unexpected error is logged with its stack and not answered; a refusal needs no stack", async () => {
  const answer = await fetch(`${url}/v1/things`, { headers: bearer(app.credentials.local_token) });
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain("secret stays inside");
  await fetch(`${url}/v1/away/syncs:read`, { headers: bearer(app.credentials.local_token) });
  const logged = (words: string) =>
    app.logStream.read(0, 1000).lines.findLast(({ text }) => text.includes("request.failed") && text.includes(words));
  expect(JSON.parse(logged("secret stays inside")?.text ?? "").error.stack).toContain("app.test.ts");
  expect(JSON.parse(logged("pg_hba.conf")?.text ?? "").error).toEqual({ message: expect.stringContaining("pg_hba") });
});

test("404, 405 with Allow, 406, 413, 415 and broken JSON are told apart", async () => {
  const status = async (answer: Promise<Response>) => {
    const { code } = (await (await answer).json()) as { code: string };
    return [(await answer).status, code];
  };
  expect(await status(fetch(`${url}/v1/nothing`))).toEqual([404, "not_found"]);
  const method = await fetch(`${url}/v1/things/7`, { method: "DELETE" });
  expect([method.status, method.headers.get("allow")]).toEqual([405, "POST"]);
  expect(await method.json()).toMatchObject({ code: "method_not_allowed" });
  const token = await fetch(`${url}/v1/auth/token`);
  expect([token.status, token.headers.get("content-type")]).toEqual([405, "application/problem+json"]);
  const gateway = await fetch(`${url}/v1/chat/completions`);
  expect(await gateway.json()).toMatchObject({ error: { type: "invalid_request_error", code: "method_not_allowed" } });
  expect(await status(fetch(`${url}/health`, { headers: { accept: "text/html" } }))).toEqual([406, "not_acceptable"]);
  expect(await status(post("/v1/things/1", "{nope"))).toEqual([400, "invalid_request"]);
  const forbidden = await post("/v1/things/1", '{"__proto__": {"x": 1}}');
  expect([forbidden.status, await forbidden.json()]).toMatchObject([
    400,
    { detail: expect.stringContaining("__proto__") },
  ]);
  expect(await status(post("/v1/things/1", "a=b", { "content-type": "text/plain" }))).toEqual([
    415,
    "unsupported_media_type",
  ]);
  for (const header of [
    { "content-encoding": "gzip" },
    { "content-type": "application/json; charset=latin1" },
    { "content-type": 'application/json;Charset="UTF-16"' },
  ])
    expect(await status(post("/v1/things/1", "{}", header))).toEqual([415, "unsupported_media_type"]);
  expect((await post("/v1/things/1", "{}", { "content-type": 'application/json; charset="UTF-8"' })).status).not.toBe(
    415,
  );
  // Without a body nothing is read as anything.
  const odd = { "content-type": "text/plain; charset=ISO-8859-1", "content-encoding": "gzip" };
  expect((await fetch(`${url}/health`, { headers: odd })).status).toBe(200);
});

test.each([
  ["/v1/things/1", "1 MB", 1024 * 1024],
  ["/v1/connections", "1 MB", 1024 * 1024],
  ["/v1/auth/token", "64 kB", 64 * 1024],
  ["/v1/controllers/echo/invoke", "8 MB", 8 * 1024 * 1024],
  ["/v1/controllers", "48 MB", 48 * 1024 * 1024],
  ["/v1/chat/completions", "64 MB", 64 * 1024 * 1024],
  ["/v1/embeddings", "64 MB", 64 * 1024 * 1024],
  ["/v1/route/explain", "64 MB", 64 * 1024 * 1024],
])("%s reads %s at the most, and says so", async (path, shown, limit) => {
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.credentials.local_token}\r\nContent-Type: application/json`;
  const answer = await raw(`${head}\r\nContent-Length: ${limit + 1}\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  expect(answer).toContain(`${shown} are read here at the most`);
});

test("what is nowhere is told as such, whatever its body", async () => {
  for (const [method, path, status] of [
    ["POST", "/v1/nothing", 404],
    ["POST", "/health", 405],
    ["QUERY", "/v1/things/7", 405],
    ["QUERY", "/v1/nothing", 404],
  ] as const) {
    const body = method === "POST" ? { headers: { "content-type": "text/plain" }, body: "{" } : {};
    expect((await fetch(url + path, { method, ...body })).status, `${method} ${path}`).toBe(status);
  }
});

/** Rejects where the other side has closed the connection. */
const written = (socket: Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())));

test("who sends too much reads why, however long it goes on sending", async () => {
  const head = `POST /v1/things/1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.credentials.local_token}\r\nContent-Type: application/json`;
  const megabyte = Buffer.alloc(1024 * 1024, " ");
  const chunk = ["100000\r\n", "\r\n"] as const;
  for (const [framing, before = "", after = ""] of [
    ["Content-Length: 83886080"],
    ["Content-Length: 83886080\r\nConnection: close"],
    ["Transfer-Encoding: chunked", ...chunk],
    ["Transfer-Encoding: chunked\r\nConnection: close", ...chunk],
  ] as const) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let answer = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => {}); // written() tells.
    socket.write(`${head}\r\n${framing}\r\n\r\n`);
    const piece = Buffer.concat([Buffer.from(before), megabyte, Buffer.from(after)]);
    for (let sent = 0; sent < 80; sent++) await written(socket, piece);
    await expect.poll(() => answer, patience).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  }
});

test("who is refused at once, and asked to be closed, reads why behind all that it sends, and is closed", async () => {
  const length = 16 * 1024 * 1024;
  for (const [path, status] of [
    ["/v1/things/1", 401],
    ["/v1/nothing", 404],
    ["/v1/auth/token", 413],
  ] as const) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let answer = "";
    const ended = new Promise((resolve) => socket.once("end", resolve));
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close`;
    socket.on("error", () => {}); // written() tells.
    socket.write(`${head}\r\nContent-Length: ${length}\r\n\r\n`);
    await expect.poll(() => answer, patience).toContain("\r\n\r\n");
    for (let sent = 0; sent < length; sent += 1024 * 1024) await written(socket, Buffer.alloc(1024 * 1024, " "));
    await ended;
    expect(answer).toContain(`HTTP/1.1 ${status} `);
  }
});

test("a body is UTF-8, and has no millions of lists or keys", async () => {
  const send = (body: Uint8Array<ArrayBuffer>) =>
    fetch(`${url}/v1/many/1`, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(app.credentials.local_token) },
      body,
    });
  const valid = { name: "\ufffd é", count: 1, deep: { table: "t" } };
  expect((await send(Buffer.from(JSON.stringify(valid)))).status).toBe(200);
  for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xc3]]) {
    const refused = await send(Buffer.from([...Buffer.from('{"name":"'), ...bytes, ...Buffer.from('"}')]));
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([400, "invalid_request"]);
  }
  // Halves of a pair would be kept as another text than was acknowledged, and Postgres keeps no NUL.
  for (const [name, status] of [
    ["\\ud83d\\ude00 \\\\ud800", 200],
    ["a\\uD800", 400],
    ["\\udc00\\ud83d", 400],
    ["a\\u0000b", 400],
    ["\\\\u0000", 200],
  ] as const)
    expect((await send(Buffer.from(`{"name":"${name}","count":1,"deep":{"table":"t"}}`))).status, name).toBe(status);
  expect((await send(Buffer.from(`{"name":[${"[],".repeat(600_000)}1]}`))).status).toBe(400);
  // Brackets and colons inside strings do not count.
  expect(
    (await send(Buffer.from(`{"name":"${'[{\\"a\\":'.repeat(1_100_000)}","count":1,"deep":{"table":"t"}}`))).status,
  ).toBe(200);
  const keys = Array.from({ length: 300_000 }, (_, at) => `"${at}":1`).join();
  expect((await send(Buffer.from(`{"name":{${keys}}}`))).status).toBe(400);
});

test.each([
  ["a foreign Host", "Host: evil.example\r\n", 403],
  ["a Host that begins like ours", "Host: localhost.evil.example\r\n", 403],
  ["two Host headers", "Host: localhost\r\nHost: localhost\r\n", 400],
  ["two credentials", "Host: localhost\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n", 400],
  ["no Host", "", 400],
  ["an unreadable Host", "Host: a b\r\n", 400],
  ["a foreign Origin", "Host: localhost\r\nOrigin: https://evil.example\r\n", 403],
  ["a page from another local port", "Host: localhost\r\nOrigin: http://localhost:3000\r\n", 403],
  ["an opaque Origin", "Host: localhost\r\nOrigin: null\r\n", 403],
  [
    "both Content-Length and Transfer-Encoding",
    "Host: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    400,
  ],
  ["two Content-Lengths", "Host: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n", 400],
  ["an ordinary request", "Host: localhost\r\n", 200],
  ["a page of the daemon's own", "Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200],
])("%s gets the right answer, and the next request is served", async (_name, headers, status) => {
  const answer = await raw(`GET /health HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  const [, id] = /^X-Request-Id: (\S+)$/im.exec(answer) ?? [];
  const body = JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1));
  if (status !== 200)
    expect(body).toMatchObject({ status, request_id: id, retryable: false, code: expect.any(String) });
  expect((await fetch(`${url}/health`)).status).toBe(200);
});

test("a route that does not say who may call it is refused at start", async () => {
  const other = await createApp({ root });
  expect(() => other.fastify.get("/v1/open", async () => "")).toThrow(/names no scope/);
  await other.close();
});

test("the credentials are the user's alone, and outlive the app", async () => {
  const again = await createApp({ root });
  expect(again.credentials).toEqual(app.credentials);
  expect((await stat(join(root, ".magic", "credentials.json"))).mode & 0o777).toBe(0o600);
  await again.close();
});

test("only counters are called _total", async () => {
  const { text } = await createMetrics({ process: true }).render();
  const totals = text.split("\n").filter((line) => /^# TYPE \S+_total /.test(line));
  expect(totals.length).toBeGreaterThan(0);
  for (const line of totals) expect(line).toMatch(/ counter$/);
});

test("metrics count requests by route", async () => {
  await post("/v1/things/1", {});
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(text).toContain('route="/v1/things/:id"');
});

function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      answer += chunk;
      // A caller that owes the rest of its body is waited for: whoever has the answer leaves.
      const [head = "", body] = answer.split("\r\n\r\n");
      if (body !== undefined && body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1])) socket.destroy();
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}

test("closing waits for an answer under way, and not for its connection", async () => {
  const other = await createApp({ root });
  const answered = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  other.fastify.get("/v1/slow", { config: { scope: null } }, async () => {
    reached.resolve();
    await answered.promise;
    return "done";
  });
  const slow = fetch(`${await other.listen()}/v1/slow`);
  await reached.promise;
  const closed = other.close();
  answered.resolve();
  expect(await (await slow).text()).toBe("done");
  const began = performance.now();
  await closed;
  // An idle connection would be kept for 72 s.
  expect(performance.now() - began).toBeLessThan(20_000);
});

test.each([
  ["while its handler works", "waits"],
  ["while its answer streams", "streams"],
  ["while a handler that took the socket writes", "hijacked"],
])("a caller that leaves %s ends its request: logged as 499, no longer open", async (_name, path) => {
  const other = await createApp({ root, env: { MAGIC_HOME: root } });
  const config = { scope: null, surface: "core" } as const;
  const began = Promise.withResolvers<void>();
  other.fastify.get("/v1/waits", { config }, async () => {
    began.resolve();
    await new Promise(() => {});
  });
  other.fastify.get("/v1/streams", { config }, async (_request, reply) => {
    began.resolve();
    return reply.type("text/plain").send(
      Readable.from(
        (async function* () {
          while (!reply.raw.destroyed) {
            yield "x".repeat(1_000);
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        })(),
      ),
    );
  });
  other.fastify.get("/v1/hijacked", { config }, async (_request, reply) => {
    reply.hijack();
    reply.raw.write("x");
    began.resolve();
  });
  const leave = new AbortController();
  const left = fetch(`${await other.listen()}/v1/${path}`, { signal: leave.signal }).then((answer) => answer.text());
  await began.promise;
  leave.abort();
  await expect(left).rejects.toThrow("aborted");
  const lines = () =>
    other.logStream
      .read(0, 1_000)
      .lines.map(({ text }) => JSON.parse(text) as Record<string, unknown>)
      .filter(({ event }) => event === "http.request");
  await expect.poll(lines, patience).toHaveLength(1);
  expect(lines()[0]).toMatchObject({ status: 499, code: "client_closed", route: `/v1/${path}` });
  // The answer never ended: what is told is the time until the caller left.
  expect(lines()[0]?.["duration_ms"]).toBeGreaterThan(0);
  expect(await other.activity.heldBy()).toBeUndefined();
  expect((await other.metrics.render()).text).toContain("magic_http_requests_open 0");
  await other.close();
});
