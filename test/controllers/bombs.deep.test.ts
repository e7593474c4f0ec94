// Bombs against a contract's limits.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { openBench } from "./harness.ts";

const bombs: Record<string, string> = {
  heap: "const a = []; for (;;) a.push({ x: new Array(100).fill(Math.random()) });",
  buffers: "const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1));",
  "shared buffers":
    "const a = []; for (;;) { const s = new SharedArrayBuffer(8 << 20); new Uint8Array(s).fill(1); a.push(s); }",
  wasm: "const a = []; for (;;) { const m = new WebAssembly.Memory({ initial: 160, maximum: 65536 }); new Uint8Array(m.buffer).fill(1); a.push(m); }",
  "wasm that grows": "const m = new WebAssembly.Memory({ initial: 1, maximum: 65536 }); for (;;) m.grow(160);",
  "a database in memory":
    "const db = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(':memory:'); db.exec('create table t (b)'); for (;;) db.exec('insert into t values (zeroblob(4000000))');",
  "buffers that grow":
    "const a = []; for (;;) { const b = new ArrayBuffer(1, { maxByteLength: 8 << 20 }); b.resize(8 << 20); a.push(b); }",
  clones: "const a = []; const b = new Uint8Array(8 << 20); for (;;) a.push(structuredClone(b));",
  messages: "const { port1 } = new MessageChannel(); const b = new Uint8Array(8 << 20); for (;;) port1.postMessage(b);",
  "derived keys":
    "process.getBuiltinModule('node:crypto').scryptSync('a', 'b', 64, { N: 2 ** 20, r: 8, p: 1, maxmem: 2 ** 31 });",
  "compressed data":
    "const { zstdCompressSync, constants: c } = process.getBuiltinModule('node:zlib'); zstdCompressSync(Buffer.alloc(16 << 20), { params: { [c.ZSTD_c_windowLog]: 27, [c.ZSTD_c_compressionLevel]: 19 } });",
  "decoded texts":
    "const a = []; const d = new TextDecoder('utf-16le'); const b = new Uint8Array(16 << 20); for (;;) a.push(d.decode(b));",
  strings: "const a = []; for (;;) a.push(Buffer.alloc(4 << 20, 'a').toString('latin1'));",
};

test.each(Object.entries(bombs))("a bomb of %s stays within the contract's memory and is named", async (name, bomb) => {
  const bench = await openBench({ zygotes: 1 });
  await bench.deploy("bomb", `export default async (request) => { if (request.input.go) { ${bomb} } return {}; };`, {
    limits: { memory_mb: 64, timeout_ms: 6_000 },
  });
  let peak = 0;
  const pid = () =>
    execFileSync("pgrep", ["-P", String(process.pid)], { encoding: "utf8" })
      .trim()
      .split("\n");
  const pids = pid();
  const watch = setInterval(() => {
    for (const one of pids) peak = Math.max(peak, residentMb(one));
  }, 10);
  expect(await bench.outcome("bomb", { go: true }), name).toBe("memory_exceeded");
  clearInterval(watch);
  expect(peak).toBeLessThan(64 + 160);
  expect(await bench.outcome("bomb")).toBe("ok");
  await bench.close();
});

test("a decompression bomb behind http:egress is cut off at its cap, in the daemon's memory too", async () => {
  const body = gzipSync(Buffer.alloc(400 << 20));
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(body);
  }).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address() as AddressInfo;
  const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port}`] });
  const bench = await openBench({ zygotes: 1, ports: { egress } });
  await bench.deploy(
    "reader",
    `export default async () => { let n = 0; for await (const piece of (await fetch("http://127.0.0.1:${port}/")).body) n += piece.length; return n; };`,
    { capabilities: ["http:egress"], scopes: { http: [{ host: "127.0.0.1", port }] } },
  );
  const before = process.memoryUsage().rss;
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss - before);
  }, 5);
  expect(await bench.outcome("reader")).toBe("limit_exceeded");
  clearInterval(watch);
  expect(peak / 2 ** 20).toBeLessThan(64);
  server.close();
  await egress.close();
});

test("a flood of broker calls is held back, and its own calls all come to an end", async () => {
  let reached = 0;
  const get = async (): Promise<string> => {
    reached++;
    return "1";
  };
  const bench = await openBench({ zygotes: 1, ports: { kv: { get, set: async () => {}, delete: async () => {} } } });
  await bench.deploy(
    "asker",
    "export default async ({ kv }) => { let n = 0; for (const end = Date.now() + 1500; Date.now() < end; n += 200) await Promise.all(Array.from({ length: 200 }, () => kv.get('k'))); return n; };",
    { capabilities: ["kv:read"] },
  );
  const asked = (await Promise.all(Array.from({ length: 8 }, () => bench.invoke("asker")))) as number[];
  expect(reached).toBe(asked.reduce((sum, one) => sum + one));
  // 4 a millisecond, and what was under way when the time was over; an idle daemon would serve five times as many.
  expect(reached).toBeLessThan(1_500 * 4 + 8 * 200 + 2_000);
});

test("request bodies that nobody takes are bounded over all calls of a cell; those of calls that ended count no more", async () => {
  const server = createServer(() => {}).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address() as AddressInfo;
  // Takes the head and nothing of the body.
  server.on("connection", (socket) => socket.pause());
  const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port}`] });
  const bench = await openBench({ zygotes: 1, ports: { egress } });
  await bench.deploy(
    "sender",
    `const body = () => new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(65536)); } });
     export default async ({ input }) => {
       for (let i = 0; i < (input.denied ?? 0); i++)
         await fetch("http://127.0.0.1:${port}/", { method: "DELETE", body: "x".repeat(262144) }).catch(() => {});
       if (input.stalled) await Promise.all(Array.from({ length: input.stalled }, () => fetch("http://127.0.0.1:${port}/", { method: "POST", body: body() })));
       return "ok";
     };`,
    {
      capabilities: ["http:egress"],
      scopes: { http: [{ host: "127.0.0.1", port, methods: ["POST"] }] },
      limits: { memory_mb: 512, timeout_ms: 20_000 },
    },
  );
  expect(await bench.invoke("sender", { denied: 400 })).toBe("ok");
  const stalled = await Promise.all(Array.from({ length: 6 }, () => bench.outcome("sender", { stalled: 120 })));
  // How much the kernel takes of each decides whether the cap or the deadline comes first.
  for (const outcome of stalled) expect(["limit_exceeded", "timeout", "overloaded"]).toContain(outcome);
  expect(await bench.invoke("sender", {})).toBe("ok");
  server.closeAllConnections();
  server.close();
  await egress.close();
});

function residentMb(pid: string): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
