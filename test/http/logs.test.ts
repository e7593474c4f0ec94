import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, stat, truncate } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { createApiClient } from "#client/http.ts";
import { followLogs } from "#client/logs.ts";
import type { LogFrame } from "#contract/wire/logs.ts";
import { type App, createApp } from "#daemon/app.ts";
import { createLogger, type LogLine } from "#daemon/telemetry/log.ts";
import { logFiles, openLogFile } from "#daemon/telemetry/log-file.ts";
import { createLogHistory } from "#daemon/telemetry/log-history.ts";
import { createLogStream } from "#daemon/telemetry/log-stream.ts";

// Generous, for machines that do other things too.
vi.setConfig({ testTimeout: 60_000 });

const patience = { timeout: 25_000 };
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "magic-logs-"));
  cleanups.push(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function daemon(root: string, port?: number): Promise<App & { readonly url: string }> {
  const logStream = createLogStream();
  const logFile = openLogFile({ path: join(root, "daemon.log"), stream: logStream, intervalMs: 10 });
  const app = await createApp({ root, logStream, logFile, ...(port !== undefined && { port }) });
  await app.listen();
  cleanups.push(async () => {
    await app.close();
    await logFile.close();
  });
  return app as App & { readonly url: string };
}

const clientFor = (app: App, token = app.credentials.local_token) =>
  createApiClient({ url: app.url ?? "", token, environment: "sandbox" });

const numbers = (frames: readonly LogFrame[]) =>
  frames.flatMap((frame) => (frame.type === "line" && frame.line.event === "n" ? [frame.line["n"]] : []));

test("a follower that loses its daemon, and finds it restarted, gets every line once", async () => {
  const root = await folder();
  let app = await daemon(root);
  const port = Number(new URL(app.url).port);
  const stop = new AbortController();
  const frames: LogFrame[] = [];
  const following = (async () => {
    for await (const frame of followLogs({
      client: async () => clientFor(app),
      filter: { since: "1h" },
      signal: stop.signal,
    }))
      frames.push(frame);
  })();
  for (let n = 0; n < 500; n++) app.logger.info("n", { n });
  await expect.poll(() => numbers(frames).length, patience).toBe(500);
  // Lines that nobody hears: written while the socket is gone, and before the next daemon is up.
  for (let n = 500; n < 800; n++) app.logger.info("n", { n });
  const closing = app.close();
  for (let n = 800; n < 1000; n++) app.logger.info("n", { n });
  await closing;
  await cleanups.pop()?.();
  app = await daemon(root, port);
  for (let n = 1000; n < 1500; n++) app.logger.info("n", { n });
  await expect.poll(() => numbers(frames).length, patience).toBe(1500);
  stop.abort();
  await following;
  expect(numbers(frames)).toEqual(Array.from({ length: 1500 }, (_, n) => n));
});

test("lines are a sign of life: a connection with many of them on their way does not count as lost", async () => {
  let beat = () => {};
  const timer = vi.spyOn(globalThis, "setInterval").mockImplementation((run, ms) => {
    beat = run as () => void;
    return globalThis.setTimeout(() => {}, ms);
  });
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false });
  cleanups.push(async () => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stop = new AbortController();
  const lost = vi.fn();
  const client = async () => createApiClient({ url: `http://127.0.0.1:${port}`, token: "t", environment: "sandbox" });
  const frames = followLogs({ client, signal: stop.signal, onLost: lost });
  const first = frames.next();
  const [socket] = (await once(server, "connection")) as [WebSocket];
  timer.mockRestore();
  for (let n = 0; n < 3; n++) {
    socket.send(JSON.stringify({ type: "missed", lines: n }));
    expect((await (n === 0 ? first : frames.next())).value).toEqual({ type: "missed", lines: n });
    beat();
  }
  expect(lost).not.toHaveBeenCalled();
  const next = frames.next();
  beat();
  await once(socket, "close");
  stop.abort();
  await next;
}, 5_000);

test("whoever leaves while the daemon is looked for follows nothing", async () => {
  const app = await daemon(await folder());
  const stop = new AbortController();
  const client = async () => {
    stop.abort();
    return clientFor(app);
  };
  expect(await followLogs({ client, signal: stop.signal }).next()).toEqual({ done: true, value: undefined });
});

test("history beyond the ring comes from the files, across rotation, without a gap or a double", async () => {
  const root = await folder();
  const path = join(root, "daemon.log");
  const stream = createLogStream({ lines: 50, bytes: 1e6 });
  const file = openLogFile({ path, stream, maxBytes: 20_000, keep: 50, intervalMs: 1 });
  cleanups.push(() => file.close());
  const logger = createLogger({ sinks: [stream.sink] });
  for (let n = 0; n < 3000; n++) {
    logger.info("n", { n });
    if (n % 25 === 0) await file.flush();
  }
  const history = createLogHistory({ stream, file });
  const seen: number[] = [];
  for await (const line of history.since("")) {
    seen.push((JSON.parse(line.text) as { n: number }).n);
    // The log goes on, and rotates, while it is read.
    if (seen.length % 500 === 0) {
      for (let i = 0; i < 20; i++) logger.info("n", { n: 3000 });
      await file.flush();
    }
  }
  expect(seen.filter((n) => n < 3000)).toEqual(Array.from({ length: 3000 }, (_, n) => n));
  expect((await logFiles(path)).length).toBeGreaterThan(5);
});

test("half a line, as a full disk leaves it, spoils neither the next one nor who reads the log", async () => {
  const path = join(await folder(), "daemon.log");
  const opened = () => {
    const stream = createLogStream();
    const file = openLogFile({ path, stream });
    const { info } = createLogger({ sinks: [stream.sink] });
    return { file, info, history: createLogHistory({ stream, file }) };
  };
  const first = opened();
  for (const event of ["one", "two"]) first.info(event);
  await first.file.close();
  await truncate(path, (await stat(path)).size - 20);
  const second = opened();
  second.info("three");
  await second.file.close();
  const { file, history } = opened();
  cleanups.push(() => file.close());
  const events: unknown[] = [];
  for await (const { text } of history.since("")) events.push(JSON.parse(text).event);
  expect(events).toEqual(["one", "three"]);
});

test("a project that was moved away is not begun anew by its log, which says what it lost once it is back", async () => {
  const root = join(await folder(), "project");
  await mkdir(join(root, ".magic"), { recursive: true });
  const path = join(root, ".magic", "logs", "daemon.log");
  const stream = createLogStream();
  const file = openLogFile({ path, stream });
  cleanups.push(() => file.close());
  const { info } = createLogger({ sinks: [stream.sink] });
  for (const event of ["here", "away", "back"]) {
    if (event === "away") await rename(root, `${root}-moved`);
    if (event === "back") await rename(`${root}-moved`, root);
    info(event);
    await file.flush();
    expect(existsSync(root)).toBe(event !== "away");
  }
  const lines = (await readFile(path, "utf8")).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: "here" },
    { event: "log.lost", lines: 1 },
    { event: "back" },
  ]);
});

test("a log whose daemon finds the clock set back at its start goes on behind its last line", async () => {
  const path = join(await folder(), "daemon.log");
  // Ids of their own, as another process has.
  const opened = async (event: string, aheadMs: number) => {
    vi.resetModules();
    const { createLogger } = await import("#daemon/telemetry/log.ts");
    const { openLogFile } = await import("#daemon/telemetry/log-file.ts");
    const stream = createLogStream();
    const file = openLogFile({ path, stream });
    cleanups.push(() => file.close());
    const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() };
    createLogger({ sinks: [stream.sink], clock }).info(event);
    return createLogHistory({ stream, file });
  };
  const hour = 3_600_000;
  const last = (await (await opened("before", hour)).since("").next()).value as LogLine;
  const history = await opened("after", 0);
  for (const [from, events] of [["", ["before", "after"]] as const, [last.cursor, ["after"]] as const]) {
    const found: string[] = [];
    for await (const { text } of history.since(from)) found.push(JSON.parse(text).event);
    expect(found).toEqual(events);
  }
});

test("rotation keeps the log on disk bounded", async () => {
  const root = await folder();
  const path = join(root, "daemon.log");
  const stream = createLogStream();
  const file = openLogFile({ path, stream, maxBytes: 10_000, keep: 2 });
  const logger = createLogger({ sinks: [stream.sink] });
  for (let n = 0; n < 2000; n++) {
    logger.info("n", { n });
    if (n % 50 === 0) await file.flush();
  }
  await file.close();
  const sizes = await Promise.all((await logFiles(path)).map(async (name) => (await readFile(name)).length));
  expect(sizes).toHaveLength(3);
  for (const size of sizes) expect(size).toBeLessThanOrEqual(16_000);
});

test("a reader that stops reading is told how many lines it missed, and memory stays bounded", async () => {
  const app = await daemon(await folder());
  const socket = new WebSocket(`${app.url.replace("http", "ws")}/v1/logs/stream`, {
    headers: { authorization: `Bearer ${app.credentials.local_token}` },
  });
  const frames: LogFrame[] = [];
  socket.on("message", (text) => frames.push(JSON.parse(String(text)) as LogFrame));
  await expect.poll(() => frames.length, patience).toBe(1);
  socket.pause();
  const filler = "x".repeat(1_000);
  for (let n = 0; n < 60_000; n++) {
    app.logger.info("n", { n, filler });
    if (n % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  socket.resume();
  await expect.poll(() => numbers(frames).at(-1), patience).toBe(59_999);
  const missed = frames.reduce((sum, frame) => sum + (frame.type === "missed" ? frame.lines : 0), 0);
  expect(missed).toBeGreaterThan(0);
  expect(numbers(frames).length + missed).toBe(60_000);
  socket.terminate();
}, 60_000);

test("the list filters by request, level and start, and a sandbox key sees no live line", async () => {
  const app = await daemon(await folder());
  app.logger.info("mine", { request_id: "req_1", environment: "sandbox" });
  app.logger.warn("mine", { request_id: "req_1", environment: "live" });
  app.logger.info("other", { request_id: "req_2", environment: "sandbox", controller: "triage" });
  const events = async (query: Record<string, string>, token?: string) => {
    const page = await clientFor(app, token).request<{ data: { event: string; level: string }[] }>("GET", "/v1/logs", {
      query,
    });
    return page.data.map(({ event, level }) => `${event} ${level}`);
  };
  expect(await events({ request: "req_1" })).toEqual(["mine info", "mine warn"]);
  expect(await events({ request: "req_1", level: "warn" })).toEqual(["mine warn"]);
  expect(await events({ controller: "triage" })).toEqual(["other info"]);
  expect(await events({ request: "req_1" }, app.credentials.api_key)).toEqual(["mine info"]);
  expect(await events({ since: "2000-01-01T00:00:00Z", request: "req_2" })).toEqual(["other info"]);
  expect(await events({ since: new Date(Date.now() + 60_000).toISOString() })).toEqual([]);
  for (const since of ["yesterday", "-1", "2026-02-30", "2026-11-22T10:00:00"])
    await expect(events({ since })).rejects.toMatchObject({ code: "validation_failed" });
});

test("the list as ndjson is one line a line", async () => {
  const app = await daemon(await folder());
  for (let n = 0; n < 3; n++) app.logger.info("n", { n });
  const lines = async (query: string) => {
    const headers = { accept: "application/x-ndjson" };
    const text = await (await clientFor(app).send("GET", `/v1/logs${query}`, { headers })).text();
    return text
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { n: number }).n);
  };
  expect(await lines("")).toEqual([0, 1, 2]);
  expect(await lines("?limit=2")).toEqual([1, 2]);
  expect(await lines("?limit=2&since=1h")).toEqual([0, 1]);
});

test("the newest lines come from the ring; the files are read for them where it does not hold so many", async () => {
  const root = await folder();
  const logStream = createLogStream({ lines: 20, bytes: 1e6 });
  const logFile = openLogFile({ path: join(root, "daemon.log"), stream: logStream, intervalMs: 1 });
  const read = vi.spyOn(logFile, "open");
  const app = await createApp({ root, logStream, logFile });
  await app.listen();
  cleanups.push(async () => {
    await app.close();
    await logFile.close();
  });
  for (let n = 0; n < 30; n++) {
    app.logger[n % 10 === 4 ? "warn" : "info"]("n", { n });
    await logFile.flush();
  }
  const numbersOf = async (query: Record<string, string | number>) => {
    const { data, has_more } = await clientFor(app).request<{ data: { n: number }[]; has_more: boolean }>(
      "GET",
      "/v1/logs",
      { query },
    );
    expect(has_more).toBe(false);
    return data.map(({ n }) => n);
  };
  expect(await numbersOf({ limit: 3 })).toEqual([27, 28, 29]);
  expect(await numbersOf({ limit: 2, level: "warn" })).toEqual([14, 24]);
  expect(read).not.toHaveBeenCalled();
  expect(await numbersOf({ limit: 3, level: "warn" })).toEqual([4, 14, 24]);
  expect(read).toHaveBeenCalled();
});

test("the stream refuses whoever may not read it, with an HTTP answer", async () => {
  const app = await daemon(await folder());
  const local = `Bearer ${app.credentials.local_token}`;
  const refused = async (headers: Record<string, string>, path = "/v1/logs/stream") => {
    const socket = new WebSocket(`${app.url.replace("http", "ws")}${path}`, { headers });
    const answered = await new Promise((resolve) => {
      socket.on("unexpected-response", (_request, response) => resolve(response.statusCode));
      socket.on("open", () => resolve("open"));
      socket.on("error", () => undefined);
    });
    socket.terminate();
    return answered;
  };
  expect(await refused({ authorization: local })).toBe("open");
  expect(await refused({})).toBe(401);
  expect(await refused({ authorization: "Bearer nope" })).toBe(401);
  expect(await refused({ authorization: `Bearer ${app.credentials.gateway_token}` })).toBe(403);
  expect(await refused({ authorization: local, origin: "http://evil.example" })).toBe(403);
  expect(await refused({ authorization: local, host: "evil.example" })).toBe(403);
  expect(await refused({ authorization: local }, "/v1/other")).toBe(404);
  expect(await refused({ authorization: local }, "/v1/logs/stream?nope=1")).toBe(422);
  expect(await refused({ authorization: local }, "/v1/logs/stream?after=nonsense")).toBe(422);
  // One that never hangs up is not waited for.
  const stays = connect({ port: Number(new URL(app.url).port), host: "127.0.0.1", allowHalfOpen: true }).resume();
  onTestFinished(() => void stays.destroy());
  stays.write("GET /v1/logs/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  await once(stays, "end");
  app.fastify.server.closeIdleConnections();
  const open = promisify(app.fastify.server.getConnections.bind(app.fastify.server));
  await vi.waitFor(async () => expect(await open()).toBe(0));
});

test("an upgrade that is no handshake is answered and audited as one that was refused", async () => {
  const app = await daemon(await folder());
  const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
  const head = ["GET /v1/logs/stream HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"];
  head.push(
    `Authorization: Bearer ${app.credentials.local_token}`,
    "X-Request-Id: no-key",
    "Sec-WebSocket-Version: 99",
  );
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 400 .*x-request-id: no-key\r\n.*"code":"invalid_request"/s);
  expect(answer).toContain("sec-websocket-version: 13, 8");
  await vi.waitFor(async () => {
    const audited = await clientFor(app).request<{ data: object[] }>("GET", "/v1/audit?request_id=no-key");
    expect(audited.data).toMatchObject([{ action: "logs.stream", status: 400, outcome: "failed" }]);
  });
});

test("the stream ends with its credential", async () => {
  const app = await daemon(await folder());
  const operator = clientFor(app);
  const key = await operator.request<{ id: string; secret: string }>("POST", "/v1/keys", {
    body: { scopes: ["logs:read"] },
  });
  const socket = new WebSocket(`${app.url.replace("http", "ws")}/v1/logs/stream`, {
    headers: { authorization: `Bearer ${key.secret}` },
  });
  const closed = new Promise((resolve) => socket.on("close", resolve));
  await new Promise((resolve) => socket.once("message", resolve));
  await operator.request("DELETE", `/v1/keys/${key.id}`);
  expect(await closed).toBe(1008);
});

test("secrets do not reach the log", async () => {
  const app = await daemon(await folder());
  app.logger.info("oops", { url: `https://user:hunter22@example.com`, token: app.credentials.admin_key });
  const text = JSON.stringify(app.logStream.read(0, 10).lines);
  expect(text).not.toContain("hunter22");
  expect(text).not.toContain(app.credentials.admin_key);
});
