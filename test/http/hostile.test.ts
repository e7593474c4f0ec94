import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type App, createApp } from "#daemon/app.ts";

// Generous, for machines that do other things too.
vi.setConfig({ testTimeout: 60_000 });

let root: string;
let app: App;
let url: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-hostile-"));
  app = await createApp({ root, env: { MAGIC_HOME: root } });
  const Tree = Type.Cyclic(
    { Node: Type.Record(Type.String(), Type.Union([Type.Ref("Node"), Type.Integer()])) },
    "Node",
  );
  const config = { scope: "syncs:write", surface: "core" } as const;
  const body = Type.Object({ value: Type.Any(), tree: Type.Optional(Tree) });
  app.fastify.post("/v1/echo", { config, schema: { body } }, async (request) => ({ got: request.body }));
  url = await app.listen();
});

afterAll(async () => {
  await app.close();
  await rm(root, { recursive: true, force: true });
});

const head = (lines: string, body = "") => `${lines}\r\nConnection: close\r\n\r\n${body}`;
const authorized = () =>
  `POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.credentials.local_token}\r\nContent-Type: application/json`;
const withBody = (body: string) => head(`${authorized()}\r\nContent-Length: ${Buffer.byteLength(body)}`, body);

// Each: what is sent, and the statuses that are right for it; 0 is a connection closed without a word.
const cases: Record<string, [() => string | Buffer, readonly number[]]> = {
  "a NUL in the path": [() => head("GET /hea\0lth HTTP/1.1\r\nHost: localhost"), [400]],
  "a NUL in a header": [() => head("GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: a\0b"), [400]],
  "a bare line feed in the head": [() => "GET /health HTTP/1.1\nHost: localhost\n\n", [400]],
  "a space before the colon": [() => head("GET /health HTTP/1.1\r\nHost : localhost"), [400]],
  "a folded header": [() => head("GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: a\r\n b"), [400, 200]],
  "CL.TE": [() => head(`${authorized()}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked`, "0\r\n\r\nG"), [400]],
  "TE.CL": [
    () => head(`${authorized()}\r\nTransfer-Encoding: chunked\r\nContent-Length: 3`, "8\r\nSMUGGLED\r\n0\r\n\r\n"),
    [400],
  ],
  "two Transfer-Encodings": [
    () => head(`${authorized()}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity`, "0\r\n\r\n"),
    [400],
  ],
  "an unknown Transfer-Encoding": [() => head(`${authorized()}\r\nTransfer-Encoding: xchunked`, "0\r\n\r\n"), [400]],
  "a chunk size beyond reason": [
    () => head(`${authorized()}\r\nTransfer-Encoding: chunked`, "fffffffffffffffff\r\n"),
    [400],
  ],
  "an upgrade at an address that is none": [
    () =>
      "GET // HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    [404],
  ],
  "an expectation that nobody knows": [() => head("GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: tea"), [200]],
  "a negative Content-Length": [() => head(`${authorized()}\r\nContent-Length: -1`), [400]],
  "a Content-Length in two parts": [() => head(`${authorized()}\r\nContent-Length: 1, 2`, "{}"), [400]],
  "a head of a megabyte": [
    () => head(`GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ${"a".repeat(1_000_000)}`),
    [431],
  ],
  "ten thousand headers": [
    () => head(`GET /health HTTP/1.1\r\nHost: localhost${"\r\nX-A: b".repeat(10_000)}`),
    [431, 200, 400],
  ],
  "a __proto__ header": [
    () => head("GET /health HTTP/1.1\r\nHost: localhost\r\n__proto__: x\r\nconstructor: y"),
    [200],
  ],
  "a __proto__ query": [() => head("GET /v1/logs?__proto__[x]=1&constructor=2 HTTP/1.1\r\nHost: localhost"), [401]],
  "a __proto__ body": [() => withBody('{"value":{"__proto__":{"polluted":true}}}'), [400]],
  "a constructor.prototype body": [() => withBody('{"value":{"constructor":{"prototype":{"polluted":true}}}}'), [400]],
  "a body that nests 200,000 deep": [() => withBody(`{"value":${"[".repeat(200_000)}${"]".repeat(200_000)}}`), [400]],
  "a recursive schema met 50,000 deep": [
    () => withBody(`{"value":1,"tree":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`),
    [400],
  ],
  "a body cut off": [() => head(`${authorized()}\r\nContent-Length: 50`, '{"value":'), [0, 400, 408]],
  "a body that is not UTF-8": [
    () =>
      Buffer.concat([
        Buffer.from(head(`${authorized()}\r\nContent-Length: 13`, '{"value":"')),
        Buffer.from([0xff, 0xfe, 0x22]),
      ]),
    [0, 400, 408, 200],
  ],
  "a percent escape that is none": [() => head("GET /v1/%zz HTTP/1.1\r\nHost: localhost"), [400]],
  "an overlong path": [() => head(`GET /${"a".repeat(12_000)} HTTP/1.1\r\nHost: localhost`), [404]],
  "an absolute target of another host": [
    () => head("GET http://evil.example/health HTTP/1.1\r\nHost: localhost"),
    [403],
  ],
  "an absolute target of its own": [() => head(`GET ${url}/health HTTP/1.1\r\nHost: localhost`), [200]],
  CONNECT: [() => head("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443"), [405]],
  "an unknown method": [() => head("BREW /health HTTP/1.1\r\nHost: localhost"), [400]],
  TRACE: [() => head("TRACE /health HTTP/1.1\r\nHost: localhost"), [405, 404]],
  "an offer of h2c": [
    () =>
      "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n",
    [200],
  ],
  "a TLS hello": [() => Buffer.from("16030100a5010000a10303", "hex"), [0, 400]],
  "HTTP/2's preface": [() => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [0, 400, 505]],
  "HTTP/0.9": [() => "GET /health\r\n\r\n", [0, 400]],
};

test.each(Object.keys(cases))("%s is answered or cut, and the daemon serves on", async (name) => {
  const [bytes, right] = cases[name] ?? [() => "", []];
  // Half a request is waited for by the daemon, not by this test.
  const answer = await raw(bytes(), right.includes(0) ? 700 : 20_000);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
  expect(right).toContain(status);
  // Nothing that came after the head was taken for a request of its own.
  expect(answer.match(/^HTTP\/1\.1 /gm)?.length ?? 0).toBeLessThanOrEqual(1);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  const canary = await fetch(`${url}/health`);
  expect([canary.status, ((await canary.json()) as { status: string }).status]).toEqual([200, "ok"]);
});

function raw(bytes: string | Buffer, patience: number): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes));
    socket.setEncoding("latin1");
    socket.setTimeout(patience, () => socket.destroy());
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(answer));
  });
}
