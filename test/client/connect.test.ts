import { execFileSync, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { listAudit } from "#client/audit.ts";
import { connect } from "#client/daemon/connect.ts";
import { inspectDaemon } from "#client/daemon/inspect.ts";
import { createApiClient, requestPage } from "#client/http.ts";
import { followLogs } from "#client/logs.ts";
import type { CrashNote, RuntimeFile } from "#contract/protocol.ts";
import { PROTOCOL } from "#contract/protocol.ts";
import { type App, createApp } from "#daemon/app.ts";
import { noteCrash } from "#daemon/process/crash-note.ts";
import { writeRuntimeFile } from "#daemon/process/runtime-file.ts";
import { processStarted } from "#shared/process-identity.ts";
import { listen } from "#test/listen.ts";

// Generous, for machines that do other things too.
vi.setConfig({ testTimeout: 60_000 });

let root: string;
const cleanups: (() => unknown)[] = [];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-connect-"));
  await mkdir(join(root, ".magic"), { mode: 0o700 });
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await rm(root, { recursive: true, force: true });
});

async function app(): Promise<App> {
  const made = await createApp({ root });
  await made.listen();
  cleanups.push(() => made.close());
  return made;
}

async function upstream(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const { origin, close } = await listen(createServer(handler));
  cleanups.push(close);
  return origin;
}

const runtime = (url: string, changes: Partial<RuntimeFile> = {}): RuntimeFile => ({
  pid: process.pid,
  pid_started: processStarted(process.pid),
  started_at: new Date().toISOString(),
  host: "127.0.0.1",
  port: Number(new URL(url).port),
  url,
  protocol: PROTOCOL,
  version: "0.1.0",
  root,
  local_token: "mt_local_x",
  gateway_token: "gt_x",
  api_key: "sk_test_x",
  admin_key: "sk_admin_x",
  ...changes,
});
const place = (url: string, changes: Partial<RuntimeFile> = {}) =>
  writeRuntimeFile(join(root, ".magic"), runtime(url, changes));

test("MAGIC_URL and MAGIC_API_KEY drive another daemon, and --live chooses the environment", async () => {
  const seen: unknown[] = [];
  const url = await upstream((request, response) => {
    seen.push([request.url, request.headers.authorization, request.headers["magic-environment"]]);
    response.setHeader("x-request-id", "req_1").end('{"ok":true}');
  });
  const env = { MAGIC_URL: url, MAGIC_API_KEY: "sk_live_abc" };
  const client = await connect({ root, env, live: true });
  expect(await client.request("GET", "/v1/x", { query: { a: 1, b: undefined } })).toEqual({ ok: true });
  expect(seen).toEqual([["/v1/x?a=1", "Bearer sk_live_abc", "live"]]);
  const notes: string[] = [];
  const note = (text: string) => notes.push(text);
  for (const key of ["sk_test_abc", "sk_live_abc"])
    await connect({ root, env: { ...env, MAGIC_API_KEY: key }, live: true, note });
  // As `logs --follow` does each time that it has lost the connection.
  await connect({ root, env: { ...env, MAGIC_API_KEY: "sk_test_abc" }, live: true, start: false, note });
  expect(notes).toEqual(["MAGIC_API_KEY is a sandbox key: this is the sandbox, not live."]);
});

test("where nothing answers at MAGIC_URL, that is what is to be corrected", async () => {
  const client = await connect({ root, env: { MAGIC_URL: "http://127.0.0.1:1" } });
  const next = expect.stringContaining("Correct --url or MAGIC_URL");
  await expect(client.request("GET", "/v1/x")).rejects.toMatchObject({ code: "daemon_unavailable", extra: { next } });
});

test("a key is not sent over plain HTTP to another machine", async () => {
  const env = { MAGIC_URL: "http://magic.example.com", MAGIC_API_KEY: "sk_live_abc" };
  await expect(connect({ root, env })).rejects.toMatchObject({ code: "tls_required" });
  await expect(connect({ root, url: "nonsense", env: {} })).rejects.toMatchObject({ code: "usage" });
});

test("refusals keep the daemon's code, problems and request id; silence is daemon_unavailable", async () => {
  const made = await app();
  const client = createApiClient({ url: made.url ?? "", token: made.credentials.api_key, environment: "sandbox" });
  await expect(client.request("GET", "/v1/logs", { query: { limit: 0, nope: 1 } })).rejects.toMatchObject({
    code: "validation_failed",
    problems: [expect.objectContaining({ pointer: "/nope" }), expect.objectContaining({ pointer: "/limit" })],
    extra: { request_id: expect.stringMatching(/^req_/) },
  });
  await expect(client.request("GET", "/v1/daemon")).rejects.toMatchObject({ code: "insufficient_scope" });
  const stranger = createApiClient({ url: made.url ?? "", token: "sk_test_x", environment: "sandbox" });
  await expect(stranger.request("GET", "/v1/syncs")).rejects.toMatchObject({
    code: "invalid_key",
    extra: { next: expect.stringContaining("MAGIC_API_KEY") },
  });
  const nobody = createApiClient({ url: "http://127.0.0.1:9", token: undefined, environment: "sandbox" });
  await expect(nobody.request("GET", "/health")).rejects.toMatchObject({ code: "daemon_unavailable" });
});

test("a daemon that takes requests and answers nothing is given up; one that is only slow is waited for", async () => {
  const wedged = await upstream(() => undefined);
  const options = { token: undefined, environment: "sandbox", suspectAfterMs: 500 } as const;
  await expect(createApiClient({ url: wedged, ...options }).request("GET", "/v1/x")).rejects.toMatchObject({
    code: "daemon_unavailable",
    message: expect.stringContaining("not even for its health"),
  });
  const slow = await upstream((request, response) => {
    const body = JSON.stringify({ url: request.url });
    setTimeout(() => response.setHeader("x-request-id", "req_1").end(body), request.url === "/health" ? 0 : 1_600);
  });
  expect(await createApiClient({ url: slow, ...options }).request("GET", "/v1/x")).toEqual({ url: "/v1/x" });
});

test("what is not a magic daemon is told so, and a key that cannot be one is not sent", async () => {
  const page = await upstream((_request, response) => {
    response.setHeader("content-type", "application/json").end('{"status":"ok"}');
  });
  const options = { url: page, environment: "sandbox" } as const;
  const client = createApiClient({ ...options, token: "sk_test_x" });
  const told = { code: "daemon_unavailable", message: expect.stringContaining("not a magic daemon") };
  await expect(client.request("DELETE", "/v1/x")).rejects.toMatchObject(told);
  const proxy = await upstream((_request, response) => response.writeHead(431).end());
  await expect(createApiClient({ ...options, url: proxy, token: undefined }).request("GET", "/v1/x"))
    .rejects //
    .toMatchObject({ ...told, extra: { next: expect.stringContaining("X-Request-Id") } });
  const log = followLogs({ client: async () => client, signal: AbortSignal.timeout(5_000) });
  await expect(log.next()).rejects.toMatchObject(told);
  for (const token of ["a\nb", "ключ", "x".repeat(20_000)])
    expect(() => createApiClient({ ...options, token })).toThrow(expect.objectContaining({ code: "invalid_key" }));
});

test.each(['{"hello":"world"}', "[]", "null"])(
  "another program's answer %s with a request id is no page",
  async (body) => {
    const url = await upstream((_request, response) => response.setHeader("x-request-id", "req_1").end(body));
    const client = createApiClient({ url, token: undefined, environment: "sandbox" });
    const told = { code: "daemon_unavailable", message: expect.stringContaining("not a magic daemon") };
    await expect(requestPage(client, "/v1/keys")).rejects.toMatchObject(told);
    await expect(listAudit(client, {}, 10)).rejects.toMatchObject(told);
  },
);

test("a daemon of another protocol is named, not driven", async () => {
  place("http://127.0.0.1:9", { protocol: PROTOCOL + 1 });
  await expect(connect({ root, env: {} })).rejects.toMatchObject({ code: "protocol_mismatch" });
  expect((await inspectDaemon(root)).state).toBe("incompatible");
});

test("absent, running, stale, foreign and wedged are told apart", async () => {
  expect((await inspectDaemon(root)).state).toBe("absent");
  await writeFile(join(root, ".magic", "daemon.json"), "null", { mode: 0o600 });
  expect((await inspectDaemon(root)).state).toBe("absent");
  const made = await app();
  place(made.url ?? "", made.credentials);
  expect(await inspectDaemon(root)).toMatchObject({ state: "running", info: { pid: process.pid } });
  // The same pid with another start time: the number was used again.
  place(made.url ?? "", { ...made.credentials, pid_started: "1" });
  expect((await inspectDaemon(root)).state).toBe("stale");
  place(await upstream((_request, response) => response.end("hello")));
  expect((await inspectDaemon(root)).state).toBe("foreign");
  place("http://127.0.0.1:9");
  expect((await inspectDaemon(root)).state).toBe("wedged");
  await rm(join(root, ".magic", "daemon.json"));
  await writeFile(join(root, ".magic", "daemon.json"), JSON.stringify(runtime("http://127.0.0.1:9")), { mode: 0o644 });
  expect(await inspectDaemon(root)).toMatchObject({ state: "foreign", detail: expect.stringContaining("mode 644") });
});

test("a daemon that was killed and is not gone yet is no wedged one", async () => {
  const dying = spawn("sleep", ["0.3"]);
  place("http://127.0.0.1:9", { pid: dying.pid ?? 0, pid_started: processStarted(dying.pid ?? 0) });
  expect((await inspectDaemon(root)).state).toBe("stale");
});

test.each(["mkdir", "mkfifo"])("a runtime file that is none is neither read nor waited for: %s", async (make) => {
  const path = join(root, ".magic", "daemon.json");
  execFileSync(make, [path]);
  await expect(connect({ root, env: {} })).rejects.toMatchObject({
    code: "state_unusable",
    message: `${path} cannot be read: it is not a file.`,
    extra: { next: "Move it out of the way." },
  });
  expect((await inspectDaemon(root)).state).toBe("foreign");
});

test("a copy of a project does not drive the original's daemon; a project that was moved, or is named by a link, drives its own", async () => {
  place("http://127.0.0.1:9");
  const [copy, link, moved] = ["copy", "link", "moved"].map((name) => `${root}-${name}`) as [string, string, string];
  cleanups.push(() => Promise.all([copy, link, moved].map((path) => rm(path, { recursive: true, force: true }))));
  await cp(root, copy, { recursive: true });
  await symlink(root, link);
  expect((await inspectDaemon(copy)).state).toBe("absent");
  expect((await inspectDaemon(link)).state).toBe("wedged");
  await rename(root, moved);
  expect((await inspectDaemon(moved)).state).toBe("wedged");
});

test("a crash is told once; a daemon that crashes again and again is not started by every command", async () => {
  const note = async () => JSON.parse(await readFile(join(root, ".magic", "daemon.crash.json"), "utf8")) as CrashNote;
  for (let n = 0; n < 12; n++) noteCrash(join(root, ".magic"), new Error(`crash ${n} with sk_test_abcdefghijklmnop`));
  expect((await note()).crashes).toHaveLength(8);
  expect(JSON.stringify(await note())).not.toContain("abcdefghijklmnop");
  await expect(connect({ root, env: { MAGIC_HOME: root } })).rejects.toMatchObject({
    code: "daemon_unavailable",
    message: expect.stringMatching(/crashed 8 times, last with: crash 11.*not started again for \d+ s/),
    retryAfterS: expect.any(Number),
  });
});
