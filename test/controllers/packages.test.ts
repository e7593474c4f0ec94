// What npm packages lean on besides their own code: Node's HTTP client, and what they ask for while they load. The same code runs here in Node
// and in a cell, and must come to the same.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import http, { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { contractOf, openBench, put } from "./harness.ts";

const server = createServer((request, response) => {
  const path = (request.url ?? "").split("?")[0];
  const hash = createHash("sha1");
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    hash.update(piece);
  });
  if (path === "/silence") return;
  if (path === "/drip") {
    const more = setInterval(() => response.write("drop"), 5);
    response.on("close", () => clearInterval(more));
    return;
  }
  if (path === "/cut") {
    response.writeHead(200, { "content-length": 100 });
    response.write("part", () => response.destroy());
    return;
  }
  if (path === "/early") {
    response.writeHead(413, { connection: "close" }).end("too much");
    return;
  }
  request.on("end", () => {
    const { method, url, headers } = request;
    if (path === "/none") response.writeHead(204, { "x-a": "1" }).end();
    else if (path === "/elsewhere") response.writeHead(302, "Away", { location: "/echo" }).end();
    else if (path === "/cookies")
      response.writeHead(200, { "set-cookie": ["a=1", "b=2"], "x-two": ["1", "2"], "content-length": 2 }).end("ok");
    else if (path === "/large") response.end(Buffer.alloc(3_000_000, "abc"));
    else {
      const told = ["authorization", "content-length", "content-type", "transfer-encoding", "x-list", "x-one"];
      const kept = Object.fromEntries(told.map((name) => [name, headers[name]]));
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ method, url, kept, bytes, hash: hash.digest("hex") }));
    }
  });
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const { port } = server.address() as { port: number };
const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port}`] });
const bench = await openBench({ ports: { egress } });
const contract = {
  capabilities: ["http:egress" as const],
  scopes: { http: [{ host: "127.0.0.1", port, scheme: "http" as const }] },
};

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await egress.close();
});

const client = `
const origin = "http://127.0.0.1:${port}";
const read = async (response) => {
  let text = "";
  response.setEncoding("latin1");
  for await (const piece of response) text += piece;
  return text.length > 10_000 ? text.length : text;
};
/** The answer to a request, or what became of it. */
const answer = (request, run = (one) => one.end()) =>
  new Promise((resolve) => {
    const seen = [];
    for (const event of ["timeout", "finish"]) request.on(event, () => seen.push(event));
    request.on("error", ({ message, code }) => resolve({ message, code, seen }));
    request.on("response", async (response) => {
      const { statusCode, statusMessage, headers, httpVersion } = response;
      const { location, "set-cookie": cookies, "x-two": two, "content-length": length } = headers;
      const kept = { location, cookies, two, length };
      const text = await read(response).catch((error) => "broken off");
      resolve({ statusCode, statusMessage, httpVersion, kept, text, complete: response.complete, seen });
    });
    run(request);
  });
const modes = {
  "an address": () => answer(http.request(origin + "/echo?a=1&b=%20")),
  "a URL with options": () => answer(http.get(new URL(origin + "/echo"), { headers: { "X-List": ["1", "2"] } })),
  "options": () => answer(http.request({ hostname: "127.0.0.1", port: ${port}, path: "/echo", auth: "user:pa ss" })),
  "a name and a password in the address": () => answer(http.request("http://user:p%40ss@127.0.0.1:${port}/echo")),
  "headers as a list": () => answer(http.request(origin + "/echo", { headers: ["Host", "a", "X-One", "a/b", "X-List", "1"] })),
  "a head": () => answer(http.request(origin + "/cookies", { method: "head" })),
  "no content": () => answer(http.request(origin + "/none")),
  "a redirect": () => answer(http.request(origin + "/elsewhere")),
  "headers that come twice": () => answer(http.request(origin + "/cookies")),
  "a large answer": () => answer(http.request(origin + "/large")),
  "a body at once": () => answer(http.request(origin + "/echo", { method: "POST", headers: { "content-length": 5 } }), (one) => one.end("hello")),
  "a body in pieces": () =>
    answer(http.request(origin + "/echo", { method: "PUT", headers: { "content-length": 10 } }), (one) => {
      one.write("hello");
      setTimeout(() => one.end("hello"), 5);
    }),
  "a body that has all its bytes, but no end": () =>
    answer(http.request(origin + "/echo", { method: "PUT", headers: { "content-length": 10 } }), (one) => {
      one.write("hello");
      setTimeout(() => one.write("hello"), 5);
    }),
  "a large body that has all its bytes, but no end": () =>
    answer(http.request(origin + "/echo", { method: "PUT", headers: { "content-length": 200_000 } }), (one) => {
      one.write(Buffer.alloc(100_000, "x"));
      one.write(Buffer.alloc(100_000, "x"));
    }),
  "a large body": () =>
    answer(http.request(origin + "/echo", { method: "POST" }), async (one) => {
      const { Readable } = require("node:stream");
      Readable.from(Array.from({ length: 40 }, (_, n) => Buffer.alloc(33_333, n))).pipe(one);
    }),
  "a large body of a known length": () =>
    answer(http.request(origin + "/echo", { method: "POST", headers: { "content-length": 2_000_000 } }), (one) => one.end(Buffer.alloc(2_000_000, "x"))),
  "a body that waits to be asked for": () =>
    answer(http.request(origin + "/echo", { method: "PUT", headers: { expect: "100-continue", "content-length": 2 } }), (one) => {
      one.on("continue", () => one.end("ok"));
      one.flushHeaders();
    }),
  "a destroyed request": () => answer(http.request(origin + "/silence"), (one) => { one.end(); setTimeout(() => one.destroy(), 20); }),
  "a destroyed request with a reason": () => answer(http.request(origin + "/silence"), (one) => { one.end(); setTimeout(() => one.destroy(new Error("mine")), 20); }),
  "a time-out": () => answer(http.request(origin + "/silence", { timeout: 30 }), (one) => { one.end(); one.on("timeout", () => one.destroy(new Error("late"))); }),
  "a signal": () => answer(http.request(origin + "/silence", { signal: AbortSignal.timeout(30) })).then(({ code }) => code),
  "an answer that breaks off": () => answer(http.request(origin + "/cut")),
  "a header after the headers": () => answer(http.request(origin + "/echo"), (one) => {
    try { one.flushHeaders(); one.setHeader("a", "b"); } catch (error) { one.destroy(error); }
  }),
  "headers asked for": () => {
    const one = http.request(origin + "/echo", { headers: { "X-A": 1 } });
    one.setHeader("X-B", ["1", "2"]);
    one.removeHeader("x-a");
    const got = [one.getHeader("x-b"), one.hasHeader("X-A"), one.method, one.path, one.host, one.protocol];
    return answer(one).then(() => got);
  },
  "a path with a space": () => { try { http.request({ path: "/a b" }); } catch ({ name, code }) { return { name, code }; } },
  "a request that is given up in the middle of its answer": async () => {
    const givenUp = (reason) => new Promise((resolve) => {
      const told = [];
      const listen = (who, emitter, names) => { for (const name of names) emitter.on(name, (error) => told.push([who, name, error?.message, error?.code])); };
      const one = http.get(origin + "/drip", (response) => {
        listen("answer", response, ["aborted", "error", "close"]);
        response.on("close", () => resolve(told));
        response.once("data", () => setTimeout(() => one.destroy(reason), 1));
      });
      listen("request", one, ["error", "close"]);
    });
    return [await givenUp(new Error("mine")), await givenUp()];
  },
  "the first bytes, then no more": () => new Promise((resolve) => {
    http.get(origin + "/large", (response) => response.once("data", (piece) => { response.destroy(); resolve(piece.length > 0); }));
  }),
};
`;
const names = [...client.matchAll(/^ {2}"([^"]+)": /gm)].map(([, name]) => name as string);
const here = new Function("http", "require", `${client}\nreturn (mode) => modes[mode]();`)(
  http,
  process.getBuiltinModule,
);
await bench.deploy(
  "client",
  `import http from "node:http";\n${client}\nexport default ({ input }) => modes[input]();`,
  contract,
);

test.each(names)("Node's HTTP client in a cell does what it does in Node: %s", async (name) => {
  const [expected, told] = [await here(name), await bench.invoke("client", name)];
  expect(told).toEqual(JSON.parse(JSON.stringify(expected)));
});

test("what packages ask for while they load is answered, and reaches nothing", async () => {
  const handler = `import { createHook } from "node:async_hooks";
    import { createRequire } from "node:module";
    import fs from "node:fs";
    import https from "node:https";
    import net from "node:net";
    import os from "node:os";
    import { PassThrough } from "node:stream";
    import tls from "node:tls";
    import tty from "node:tty";
    import { markAsUncloneable } from "node:worker_threads";
    const load = createRequire(import.meta.url);
    const agent = new https.Agent({ keepAlive: true });
    markAsUncloneable({});
    const hook = createHook({ init() {} }).enable();
    const wrapping = new tls.TLSSocket(new PassThrough())._handle._parentWrap.constructor;
    class Extended extends fs.ReadStream {}
    const refused = (work) => { try { work(); return "open"; } catch (error) { return error.message; } };
    export default async () => {
      fs.writeSync(1, "to the log");
      return {
        load: typeof load("node:crypto").randomUUID,
        refused: [() => load("fs").readFileSync("/etc/passwd"), () => load("lodash"), () => new WebSocket("ws://localhost"), () => new Extended("/x"),
          () => process.umask(0), () => fs.writeSync(3, "x"), () => tls.connect(443)].map(refused),
        later: await fs.promises.readFile("/x").catch(({ code }) => code),
        told: [tty.isatty(1), net.isIP("::1"), fs.existsSync("/"), os.homedir(), process.umask(), typeof __dirname, import.meta.filename, agent.defaultPort,
          hook.disable() === hook, typeof wrapping, process.argv0, process.getuid?.(), os.cpus().length],
      };
    };`;
  await bench.deploy("loads", handler);
  expect(await bench.invoke("loads")).toEqual({
    load: "function",
    refused: [
      expect.stringContaining("node:fs.readFileSync"),
      expect.stringContaining("Cannot find module 'lodash'"),
      expect.stringContaining("WebSocket is not available"),
      expect.stringContaining("node:fs.ReadStream"),
      expect.stringContaining("process.umask"),
      expect.stringContaining("node:fs.write"),
      expect.stringContaining("node:tls.connect"),
    ],
    later: "ERR_ACCESS_DENIED",
    told: [false, 6, false, "/", 0o022, "string", "/controller/handler.js", 443, true, "function", "node", null, 1],
  });
  expect(bench.logs.some((line) => line["event"] === "to the log")).toBe(true);
});

test("modules may await while they load, and are loaded once they have", async () => {
  const folder = bench.write(
    "awaits",
    "import { createHash } from 'node:crypto'; import { ready, path } from './state.ts';\nconst hash = await new Promise((done) => setTimeout(() => done(createHash('sha1').update('x').digest('hex')), 5));\nexport default async (request) => {\n  if (request.input.fail) throw new Error('here');\n  return [ready, path, hash, (await import('./state.ts')).ready, (await import('node:os')).EOL];\n};",
  );
  put(
    join(folder, "state.ts"),
    "import { sep } from 'path'; export const path = sep; export const ready = await Promise.resolve(7);",
  );
  const artifact = await bench.runtime.build(folder);
  expect((await bench.runtime.build(folder)).digest).toBe(artifact.digest);
  await bench.runtime.deploy(artifact);
  const hash = createHash("sha1").update("x").digest("hex");
  expect(await bench.invoke("awaits")).toEqual([7, "/", hash, 7, "\n"]);
  await bench.failure(bench.invoke("awaits", { fail: true }));
  expect(JSON.stringify(bench.logs)).toContain("controllers/awaits/handler.ts:4:");
  const never = bench.deploy("rejects", "await Promise.reject(new Error('no connection')); export default () => 1;");
  expect((await bench.failure(never)).message).toContain("rejects@1.0.0 does not load: no connection");
  put(join(folder, "middle.ts"), "export { ready } from './state.ts';");
  put(join(folder, "handler.ts"), "const { ready } = require('./middle.ts'); export default () => ready;");
  const required = await bench.failure(bench.runtime.build(folder));
  expect(JSON.stringify(required.extra) + required.message).toContain("Import the module instead of require()");
});

test("a handler that begins as a script does (#!) is one, and its lines are known", async () => {
  await bench.deploy("script", `#!/usr/bin/env node\nexport default () => { throw new Error("here"); };`);
  bench.logs.length = 0;
  expect((await bench.failure(bench.invoke("script"))).message).toContain("here");
  expect(JSON.stringify(bench.logs)).toContain("controllers/script/handler.ts:2:");
});

test("a package is as sloppy, and as curious, beside a module that awaits", async () => {
  const package_ = "(function () { this.sloppy = 1; }).call(undefined); module.exports = globalThis.sloppy;";
  for (const [name, line] of [
    ["sloppy", ""],
    ["late", "await 0;"],
  ] as const) {
    const folder = bench.write(
      name,
      `import one from './package.cjs'; ${line} export default () => [one, import.meta.main ?? null, typeof import.meta];`,
    );
    put(join(folder, "package.cjs"), package_);
    await bench.runtime.deploy(await bench.runtime.build(folder));
    expect(await bench.invoke(name)).toEqual([1, null, "object"]);
  }
  const folder = bench.write("late", "import './nowhere.js'; await 0; export default () => 1;");
  const refused = await bench.failure(bench.runtime.build(folder));
  expect(refused.extra["errors"] ?? refused.extra["problems"]).toHaveLength(1);
});

test("a request by Node's client is granted as a fetch is, and what only a connection could do is refused by name", async () => {
  const handler = `import http from "node:http";
    const failure = (options) => new Promise((resolve) => http.get(options, () => resolve("open")).on("error", resolve)).then(({ code, message }) => code + ": " + message);
    export default ({ input }) => Promise.all(input.map(failure));`;
  await bench.deploy("asks", handler, contract);
  const to = { host: "127.0.0.1", port, path: "/echo" };
  const asked = [
    { ...to, port: port + 1 },
    { ...to, socketPath: "/run/docker.sock" },
    { ...to, rejectUnauthorized: false },
    { ...to, headers: { upgrade: "websocket" } },
    { ...to, path: "@169.254.169.254/" },
    { ...to, headers: { "x-name": "\u010aHost: other" } },
  ];
  expect(await bench.invoke("asks", asked)).toEqual([
    expect.stringMatching(/^capability_denied: .*scopes: { http: /),
    expect.stringMatching(/^capability_denied: .*socketPath/),
    expect.stringMatching(/^capability_denied: .*certificates/),
    expect.stringMatching(/^capability_denied: .*WebSocket/),
    expect.stringMatching(/^(capability_denied|egress_blocked|invalid_request): /),
    "invalid_request: a header is not valid",
  ]);
});

test("an error beside the handler's promise fails the call at once, with what led to it", async () => {
  const handler = `import { EventEmitter } from "node:events";
    export default ({ input }) => {
      if (input === "rejection") {
        Promise.reject(new Error("nobody's"));
        return new Promise((resolve) => setTimeout(resolve, 20, "answered"));
      }
      setTimeout(() => new EventEmitter().emit("error", new TypeError("fetch failed", { cause: new Error("the cause") })));
      return new Promise(() => {});
    };`;
  await bench.deploy("beside", handler);
  bench.logs.length = 0;
  const error = await bench.failure(bench.invoke("beside", "event"));
  expect([error.code, error.message]).toEqual(["handler_error", "the handler threw TypeError: fetch failed"]);
  const line = bench.logs.findLast((one) => one["event"] === "controller.invoked") as { error: { stack: string } };
  expect(line.error.stack).toMatch(/fetch failed\n[\s\S]*handler\.ts:7:[\s\S]*\[cause\]: Error: the cause\n/);
  expect(await bench.invoke("beside", "rejection")).toBe("answered");
  expect(bench.logs.find((one) => String(one["event"]).startsWith("unhandled rejection"))).toHaveProperty("request_id");
});

test("an answer's signal holds after a collection, a clone says where it came from, an upload that is given up is canceled, and data: is fetched", async () => {
  const handler = `export default async ({ input: origin }) => {
    const abort = new AbortController();
    const answer = await fetch(origin + "/drip", { signal: abort.signal });
    const reader = answer.body.getReader();
    await reader.read();
    // A collection at least, which the buffers outside of the heap hurry.
    const until = Date.now() + 300;
    while (Date.now() < until) { new ArrayBuffer(16 << 20); await new Promise((resolve) => setTimeout(resolve)); }
    abort.abort();
    const read = (async () => { for (let n = 0; n < 1_000; n++) await reader.read(); })().catch(({ name }) => name);
    const moved = await fetch(origin + "/elsewhere");
    const { url, redirected } = moved.clone();
    const up = new AbortController();
    const canceled = new Promise((cancel) => {
      const body = new ReadableStream({ start: (one) => one.enqueue(new Uint8Array(10)), cancel });
      fetch(origin + "/silence", { method: "POST", body, duplex: "half", signal: up.signal }).catch(() => {});
      setTimeout(() => up.abort(), 20);
    });
    return { read: await read, url, redirected, canceled: (await canceled).name, data: await (await fetch("data:,hello")).text() };
  };`;
  await bench.deploy("web", handler, { ...contract, limits: { timeout_ms: 5_000 } });
  const origin = `http://127.0.0.1:${port}`;
  expect(await bench.invoke("web", origin)).toEqual({
    ...{ read: "AbortError", url: `${origin}/echo`, redirected: true, canceled: "AbortError", data: "hello" },
  });
});

test("a package whose source map is broken is bundled without it, and the handler's own lines are still known", async () => {
  const { root } = bench;
  const kind = (name: string, link: string) => {
    put(join(root, `node_modules/${name}/index.js`), `module.exports = "${name}";\n//# sourceMappingURL=${link}\n`);
    return `import ${name} from "${name}";`;
  };
  const cut = Buffer.from('{"version": 3, "sour').toString("base64");
  const imports = [kind("cutoff", "index.js.map"), kind("inlined", `data:application/json;base64,${cut}`)].join(" ");
  put(join(root, "node_modules/cutoff/index.js.map"), '{"version":3,"sources":');
  const handler = `${imports}\nexport default () => { if (cutoff + inlined === "cutoffinlined") throw new Error("built"); };`;
  await bench.deploy("mapless", handler);
  bench.logs.length = 0;
  expect((await bench.failure(bench.invoke("mapless"))).message).toContain("built");
  expect(JSON.stringify(bench.logs)).toContain("controllers/mapless/handler.ts:2:");
});

test("what a package's source map names as its sources is not read into the artifact", async () => {
  const secret = join(bench.root, "elsewhere.txt");
  put(secret, "not the package's");
  const link = Buffer.from(JSON.stringify({ version: 3, sources: [secret], mappings: "AAAA" })).toString("base64");
  const mapped = `module.exports = 1;\n//# sourceMappingURL=data:application/json;base64,${link}\n`;
  put(join(bench.root, "node_modules/curious/index.js"), mapped);
  const artifact = await bench.runtime.build(
    bench.write("bearer", `import one from "curious"; export default () => one;`),
  );
  expect(JSON.parse(artifact.map).sources).toContain("../../elsewhere.txt");
  expect(JSON.stringify(artifact)).not.toContain("not the package's");
});

test("what is imported as data is the controller's, the project's or a package's, and no other file of the machine", async () => {
  const { root } = bench;
  const elsewhere = mkdtempSync(join(tmpdir(), "magic-elsewhere-"));
  onTestFinished(() => rmSync(elsewhere, { recursive: true }));
  const text = (path: string) => `import data from "${path}" with { type: "text" }; export default () => data;`;
  const refused = async (handler: string) => (await bench.failure(bench.deploy("reader", handler))).message;

  put(join(root, "controllers/reader/own.md"), "own");
  put(join(root, "prompts/shared.md"), "shared");
  put(join(root, "tables/a/b.json"), "[5]");
  put(
    join(root, "lib/tables.ts"),
    "export const table = (a: string, b: string) => require('../tables/' + a + '/' + b + '.json');",
  );
  put(join(root, "node_modules/kind/index.js"), `module.exports = require("kinds/list.json");`);
  put(join(root, "node_modules/kinds/list.json"), "[1]");
  put(join(root, "node_modules/nosy/index.js"), `import data from "../../prompts/shared.md" with { type: "text" };`);
  put(join(elsewhere, "linked/package.json"), "{}");
  put(join(elsewhere, "linked/index.ts"), `import data from "./data.json"; export default data;`);
  put(join(elsewhere, "linked/data.json"), "[2]");
  put(join(elsewhere, "secret.json"), "[3]");
  put(join(root, "magic.yaml"), "version: 1");
  put(join(root, ".magic/token"), "t");
  put(join(root, ".magic/state.json"), "[4]");
  symlinkSync(join(elsewhere, "linked"), join(root, "node_modules/linked"));
  symlinkSync(join(elsewhere, "secret.json"), join(root, "controllers/reader/link.json"));

  await bench.deploy(
    "carrier",
    `import own from "../reader/own.md" with { type: "text" }; import shared from "../../prompts/shared.md" with { type: "bytes" };
    import kind from "kind"; import linked from "linked"; import { table } from "../../lib/tables.ts";
    export default () => [own, shared.length, kind, linked, table("a", "b")];`,
  );
  expect(await bench.invoke("carrier")).toEqual(["own", 6, [1], [2], [5]]);

  for (const path of [
    join(elsewhere, "secret.json"),
    join(elsewhere, "secret.json?#.js"),
    "./link.json",
    "../../magic.yaml",
    "../../.magic/token",
  ])
    expect(await refused(text(path))).toContain("a bundle takes no data from");
  expect(await refused(`export default ({ input }) => require("../../.magic/" + input + ".json");`)).toContain(
    "handler.ts:1:1 a bundle",
  );
  expect(await refused(`import data from "./link.json"; export default () => data;`)).toContain(
    "handler.ts:1:18 a bundle",
  );
  expect(await refused(`import "nosy"; export default () => 1;`)).toContain("node_modules/nosy/index.js:1:18 a bundle");
  expect(await refused(text("/dev/zero"))).toContain("/dev/zero is not a regular file");

  put(join(root, "controllers/pipe/contract.yaml"), JSON.stringify(contractOf("pipe")));
  execFileSync("mkfifo", [join(root, "controllers/pipe/handler.ts")]);
  const waited = await bench.failure(bench.runtime.build(join(root, "controllers/pipe")));
  expect(waited.message).toContain("handler.ts:1:1 handler.ts is not a regular file");
});
