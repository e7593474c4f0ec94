// A hostile server behind http:egress, spoken to from a real cell: every trick ends in an answer or a clear error, and the next call works.
import { createServer, type Server, type Socket } from "node:net";
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { openBench, settle } from "./harness.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const sockets = new Set<Socket>();
const answers: Record<string, (socket: Socket, request: string) => void> = {
  ok: (s) => s.write(`${OK}content-length: 2\r\n\r\nok`),
  echo: (s, request) => s.write(`${OK}content-length: ${Buffer.byteLength(request)}\r\n\r\n${request}`),
  "endless-headers": (s) => s.write(OK) && forEver(s, "x-a: bbbbbbbbbbbbb\r\n".repeat(200)),
  "huge-header": (s) => s.write(`${OK}x-big: ${"a".repeat(1 << 20)}\r\n\r\n`),
  "many-headers": (s) => s.write(`${OK}${"x-a: b\r\n".repeat(400)}content-length: 2\r\n\r\nok`),
  short: (s) => s.end(`${OK}content-length: 10\r\n\r\nabc`),
  "two-lengths": (s) => s.write(`${OK}content-length: 2\r\ncontent-length: 3\r\n\r\nokk`),
  "negative-length": (s) => s.write(`${OK}content-length: -1\r\n\r\nok`),
  "length-and-chunks": (s) =>
    s.write(`${OK}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`),
  smuggled: (s) => s.write(`${OK}content-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison`),
  "truncated-chunk": (s) => s.end(`${OK}transfer-encoding: chunked\r\n\r\n5\r\nab`),
  "no-last-chunk": (s) => s.end(`${OK}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n`),
  "bad-chunk": (s) => s.write(`${OK}transfer-encoding: chunked\r\n\r\nZZ\r\nab\r\n`),
  reset: (s) => s.resetAndDestroy(),
  close: (s) => s.end(),
  "half-close": (s) => s.end(`${OK}\r\nuntil the end`),
  "another-protocol": (s) => s.write("SSH-2.0-OpenSSH_9.6\r\n"),
  "no-status": (s) => s.write("HTTP/1.1 000 x\r\ncontent-length: 0\r\n\r\n"),
  hints: (s) =>
    s.write(`${"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(50)}${OK}content-length: 2\r\n\r\nok`),
  upgrade: (s) => s.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nraw"),
  split: (s) => s.write(`${OK}x-a: b\nset-cookie: c=d\r\ncontent-length: 2\r\n\r\nok`),
  control: (s) => s.write(`${OK}x-a: a\x01b\r\ncontent-length: 2\r\n\r\nok`),
  prototype: (s) => s.write(`${OK}__proto__: a\r\nconstructor: b\r\ncontent-length: 2\r\n\r\nok`),
  "strange-status": (s) => s.write("HTTP/1.1 999 No\r\ncontent-length: 2\r\n\r\nok"),
  "strange-phrase": (s) => s.write("HTTP/1.1 200 \u65e5\x07\r\ncontent-length: 2\r\n\r\nok"),
  "cut-gzip": (s) => encoded(s, "gzip", gzipSync("a".repeat(9_000)).subarray(0, -6)),
  "no-gzip": (s) => encoded(s, "gzip", Buffer.from("plain")),
  "empty-gzip": (s) => encoded(s, "gzip", Buffer.alloc(0)),
  "gzip-br": (s) => encoded(s, "gzip, br", brotliCompressSync(gzipSync("twice"))),
  zstd: (s) => encoded(s, "zstd", zstdCompressSync("zstd")),
  "bare-deflate": (s) => encoded(s, "deflate", deflateRawSync("bare")),
  loop: (s) => redirect(s, 302, "/loop"),
  "no-url": (s) => redirect(s, 302, "http://[::bad/"),
  "user-name": (s) => redirect(s, 302, `http://u:p@127.0.0.1:${portOf(other)}/ok`),
  "302": (s) => redirect(s, 302, "/echo"),
  "307": (s) => redirect(s, 307, "/echo"),
  away: (s) => redirect(s, 307, `http://127.0.0.1:${portOf(other)}/echo`),
  // These never end: the deadline does.
  silence: () => {},
  "slow-headers": (s) => s.write(OK) && forEver(s, "x-a: b\r\n", 20),
  "slow-body": (s) => s.write(`${OK}content-length: 100000\r\n\r\n`) && forEver(s, "a", 20),
  "endless-body": (s) => s.write(`${OK}transfer-encoding: chunked\r\n\r\n`) && forEver(s, "1\r\na\r\n", 1),
  "1xx-flood": (s) => forEver(s, "HTTP/1.1 102 Processing\r\n\r\n".repeat(9), 1),
  "endless-extension": (s) => s.write(`${OK}transfer-encoding: chunked\r\n\r\n1;`) && forEver(s, "e".repeat(999), 1),
};

function encoded(socket: Socket, encoding: string, bytes: Buffer): void {
  socket.write(`${OK}content-encoding: ${encoding}\r\ncontent-length: ${bytes.length}\r\n\r\n`);
  socket.write(bytes);
}

function redirect(socket: Socket, status: number, location: string): void {
  socket.write(`HTTP/1.1 ${status} Elsewhere\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`);
}

function forEver(socket: Socket, piece: string, everyMs = 0): void {
  if (socket.destroyed) return;
  const again = (): void => forEver(socket, piece, everyMs);
  if (socket.write(piece)) setTimeout(again, everyMs);
  else socket.once("drain", again);
}

function serve(): Server {
  return createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    socket.on("end", () => socket.end());
    let held = "";
    socket.on("data", (bytes) => {
      held += bytes.toString("latin1");
      const end = held.indexOf("\r\n\r\n") + 4;
      const length = Number(/content-length: (\d+)/.exec(held)?.[1] ?? 0);
      if (end < 4 || held.length < end + length) return;
      const request = held;
      held = "";
      answers[/^\S+ \/([\w-]+)/.exec(request)?.[1] ?? ""]?.(socket, request);
    });
  }).listen(0, "127.0.0.1");
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

const [server, other] = [serve(), serve()];
await Promise.all([server, other].map((one) => new Promise((done) => one.once("listening", done))));
const egress = createEgress({ allowPrivate: () => [server, other].map((one) => `127.0.0.1:${portOf(one)}`) });
const bench = await openBench({ ports: { egress } });
const contract = {
  capabilities: ["http:egress" as const],
  scopes: { http: [server, other].map((one) => ({ host: "127.0.0.1", port: portOf(one) })) },
};
const handler = `export default async ({ input }) => {
  try {
    const answer = await fetch(input.url, input.init);
    const text = await answer.text();
    return { status: answer.status, ok: answer.ok, phrase: answer.statusText, url: answer.url, text, headers: [...answer.headers.keys()] };
  } catch (error) { return { code: error.code, message: error.message }; }
};`;
await bench.deploy("caller", handler, contract);
await bench.deploy("hasty", handler, { ...contract, limits: { timeout_ms: 1_000 } });

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  for (const one of [server, other]) one.close();
  await egress.close();
});

const urlOf = (path: string): string => `http://127.0.0.1:${portOf(server)}/${path}`;

async function get(path: string, init: object = {}): Promise<Record<string, unknown>> {
  return (await bench.invoke("caller", { url: urlOf(path), init })) as Record<string, unknown>;
}

test.each([
  ["endless-headers", "upstream_error", "more headers than"],
  ["huge-header", "upstream_error", "more headers than"],
  ["short", "upstream_error", "before its answer was complete"],
  ["two-lengths", "upstream_error", "another length"],
  ["negative-length", "upstream_error", "does not speak HTTP"],
  ["length-and-chunks", "upstream_error", "another length"],
  ["truncated-chunk", "upstream_error", "before its answer was complete"],
  ["no-last-chunk", "upstream_error", "before its answer was complete"],
  ["bad-chunk", "upstream_error", "does not speak HTTP"],
  ["reset", "upstream_error", "broke the connection off"],
  ["close", "upstream_error", "before its answer was complete"],
  ["another-protocol", "upstream_error", "does not speak HTTP"],
  ["no-status", "upstream_error", "does not speak HTTP"],
  ["upgrade", "upstream_error", "before its answer was complete"],
  ["split", "upstream_error", "does not speak HTTP"],
  ["control", "upstream_error", "does not speak HTTP"],
  ["cut-gzip", "upstream_error", "cannot be decoded"],
  ["no-gzip", "upstream_error", "cannot be decoded"],
  ["loop", "upstream_error", "more than 10 redirects"],
  ["no-url", "upstream_error", "not a URL"],
  ["user-name", "egress_blocked", "user name"],
])("%s is %s, and the next call works", async (path, code, message) => {
  const answer = await get(path);
  expect(answer).toEqual({ code, message: expect.stringContaining(message) });
  expect(await get("ok")).toMatchObject({ status: 200, text: "ok" });
});

test.each([
  ["many-headers", { text: "ok" }],
  ["smuggled", { text: "ok" }],
  ["half-close", { text: "until the end" }],
  ["hints", { status: 200, text: "ok" }],
  ["prototype", { headers: ["__proto__", "constructor", "content-length"] }],
  ["strange-status", { status: 999, ok: false, text: "ok" }],
  ["strange-phrase", { status: 200, phrase: "", text: "ok" }],
  ["empty-gzip", { text: "" }],
  ["gzip-br", { text: "twice", headers: [] }],
  ["zstd", { text: "zstd" }],
  ["bare-deflate", { text: "bare" }],
  ["ok#part", { text: "ok", url: urlOf("ok") }],
])("%s is answered, and the next call works", async (path, answer) => {
  expect(await get(path)).toMatchObject(answer);
  expect(await get("ok")).toMatchObject({ status: 200, text: "ok" });
});

test("a body goes with its length and again after a redirect; another origin sees no credentials", async () => {
  const headers = { authorization: "Bearer secret", cookie: "c=1", "proxy-authorization": "p", "x-kept": "1" };
  const init = { method: "POST", body: "payload", headers };
  const sent = async (path: string): Promise<string> => String((await get(path, init))["text"]);
  expect(await sent("echo")).toMatch(
    /^POST \/echo [\s\S]*authorization: Bearer secret[\s\S]*content-length: 7\r\n\r\npayload$/,
  );
  expect(await sent("307")).toMatch(/^POST \/echo [\s\S]*authorization: Bearer secret[\s\S]*payload$/);
  const after302 = await sent("302");
  expect(after302).toMatch(/^GET \/echo /);
  expect(after302).not.toMatch(/payload|content-/);
  const away = await sent("away");
  expect(away).toMatch(/^POST \/echo [\s\S]*x-kept: 1[\s\S]*payload$/);
  expect(away).not.toMatch(/secret|c=1|authorization/);
  const big = await get("echo", { method: "POST", body: "b".repeat(1_500_000) });
  expect(big["text"]).toContain("content-length: 1500000\r\n");
});

test("what never ends is over at the deadline, and no connection is left to it", async () => {
  const paths = ["silence", "slow-headers", "slow-body", "endless-body", "1xx-flood", "endless-extension"];
  const outcomes = await Promise.all(paths.map((path) => bench.outcome("hasty", { url: urlOf(path) })));
  expect(outcomes).toEqual(paths.map(() => "timeout"));
  // Only what is kept alive for the next calls, which are never those.
  expect(await settle(() => sockets.size <= 3)).toBe(true);
  expect(await bench.outcome("hasty", { url: urlOf("ok") })).toBe("ok");
});

test("an answer whose signal is aborted breaks off with the signal's reason; a body of what are no bytes is not sent as none", async () => {
  const aborted = `export default async ({ input }) => {
    const stream = new ReadableStream({ start(one) { one.enqueue("text"); one.close(); } });
    const signal = input.late ? AbortSignal.abort(new RangeError("late")) : AbortSignal.timeout(100);
    const init = input.text ? { method: "POST", body: stream, duplex: "half" } : { signal };
    return fetch(input.url, init).then((answer) => answer.text()).catch(({ name, code, message }) => ({ name, code, message }));
  };`;
  await bench.deploy("aborted", aborted, contract);
  expect(await bench.invoke("aborted", { url: urlOf("slow-body") })).toMatchObject({ name: "TimeoutError" });
  // One that was aborted before is not sent at all.
  let asked = false;
  answers["late"] = () => {
    asked = true;
  };
  expect(await bench.invoke("aborted", { url: urlOf("late"), late: true })).toMatchObject({ name: "RangeError" });
  const text = await bench.invoke("aborted", { url: urlOf("echo"), text: true });
  expect(asked).toBe(false);
  expect(text).toMatchObject({ code: "invalid_request", message: expect.stringContaining("Uint8Array") });
});
