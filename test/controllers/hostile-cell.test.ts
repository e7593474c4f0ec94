// What a hostile handler can do to its own controller's concurrent callers, to other controllers, and to the daemon.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { controllerPorts } from "#daemon/controller-ports.ts";
import { type Cell, type CellCall, holdCell, startCell } from "#daemon/controllers/cell/cell.ts";
import { HEADER, SECRET, up } from "#daemon/controllers/cell/frames.ts";
import { allLayers, type Layers } from "#daemon/controllers/cell/lockdown/boot.ts";
import { within } from "../patience.ts";
import { settle } from "./harness.ts";

const broker = { call: async () => ({ value: { secret: "broker-canary" } }) };

async function load(code: string, layers: Layers = allLayers, memoryMb = 128): Promise<Cell> {
  const cell = await startCell(layers);
  await cell.load(
    { controller: "x", version: "1.0.0", filename: "x.magic.js", memoryBytes: memoryMb * 2 ** 20 },
    code,
    () => {},
  );
  return cell;
}

function call(cell: Cell, input: unknown): Promise<unknown> {
  const message = { input, id: "req_1", deadline: Date.now() + 2_000, environment: "sandbox" };
  return new Promise((resolve) => {
    cell.invoke({
      message,
      broker: () => broker,
      onLog() {},
      onEnd: (outcome) => resolve(outcome.ok ? (JSON.parse(String(outcome.output)) as unknown) : outcome.error.message),
      onGone: (gone) => resolve(gone.message),
    });
  });
}

/** A handler that attacks for one caller and works for the others; `stolen` is what it saw of them. */
const thief = (attack: string): string => `
  const stolen = [];
  const see = (value) => { try { const text = typeof value === "string" ? value : Buffer.isBuffer(value) || value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : JSON.stringify(value); if (text && text.includes("victim-canary")) stolen.push(text.slice(0, 100)); } catch {} };
  exports.default = async (request) => {
    if (request.input.victim) { await new Promise((r) => setTimeout(r, 20)); return { echo: request.input.victim }; }
    if (request.input.report) return stolen;
    ${attack}
    await new Promise((r) => setTimeout(r, 150));
    return stolen;
  };`;

const attacks: Record<string, string> = {
  "patching JSON.parse":
    "const p = JSON.parse; JSON.parse = function (t) { see(t); return p.apply(this, arguments); };",
  "patching JSON.stringify":
    "const s = JSON.stringify; JSON.stringify = function (v) { see(s(v)); return s.apply(this, arguments); };",
  "patching Buffer methods":
    "for (const n of ['toString', 'utf8Slice', 'subarray', 'slice', 'write', 'utf8Write', 'copy']) { const m = Buffer.prototype[n]; Buffer.prototype[n] = function () { see(Buffer.from(this)); const r = m.apply(this, arguments); see(r); return r; }; }",
  "patching typed arrays":
    "const T = Object.getPrototypeOf(Uint8Array.prototype); for (const n of ['set', 'subarray', 'slice']) { const m = T[n]; T[n] = function (a) { see(a); see(this); return m.apply(this, arguments); }; }",
  "getters over typed arrays":
    "const T = Object.getPrototypeOf(Uint8Array.prototype); const saved = Object.getOwnPropertyDescriptors(T); for (const O of [T, Uint8Array.prototype, Buffer.prototype]) for (const n of ['length', 'buffer', 'byteOffset', 'byteLength']) { const { get } = saved[n]; let busy = false; try { Object.defineProperty(O, n, { configurable: true, get() { const value = Reflect.apply(get, this, []); if (!busy) { busy = true; try { see(Buffer.from(new Uint8Array(Reflect.apply(saved.buffer.get, this, [])))); } finally { busy = false; } } return value; } }); } catch {} }",
  "patching Buffer.from and the allocators":
    "for (const n of ['from', 'alloc', 'allocUnsafe', 'allocUnsafeSlow', 'concat', 'byteLength']) { const m = Buffer[n]; Buffer[n] = function (a) { see(a); const r = m.apply(this, arguments); setTimeout(() => see(r), 1); return r; }; }",
  "patching event emitters and streams":
    "const E = require('events'); const e = E.prototype.emit; E.prototype.emit = function (n, d) { see(d); return e.apply(this, arguments); }; const { Readable, Writable, Duplex } = require('stream'); for (const C of [Readable, Writable, Duplex]) for (const n of ['push', 'write', 'read', 'on', '_write']) { const m = C.prototype[n]; if (m) C.prototype[n] = function (a) { see(a); return m.apply(this, arguments); }; }",
  "patching Map and Array":
    "for (const C of [Map, Array, Set, WeakMap]) for (const n of Object.getOwnPropertyNames(C.prototype)) { const m = C.prototype[n]; if (typeof m === 'function' && n !== 'constructor') C.prototype[n] = function (...a) { for (const x of a) if (typeof x === 'string' || x instanceof Uint8Array) see(x); return m.apply(this, a); }; }",
  "patching Function.prototype":
    "for (const n of ['call', 'apply', 'bind']) { const m = Function.prototype[n]; Function.prototype[n] = function () { for (let i = 0; i < arguments.length; i++) see(arguments[i]); return Reflect.apply(m, this, arguments); }; }",
  "patching Reflect and Object":
    "for (const O of [Reflect, Object]) for (const n of Object.getOwnPropertyNames(O)) { const m = O[n]; if (typeof m === 'function' && n !== 'prototype') try { O[n] = function (...a) { for (let i = 0; i < a.length; i++) if (typeof a[i] === 'string') see(a[i]); return m.apply(O, a); }; } catch {} }",
  "setters on Object.prototype":
    "for (const n of ['input', 'message', 'value', 'secret', 'output', 'text', 'resolve', 'calls']) Object.defineProperty(Object.prototype, n, { configurable: true, set(v) { see(v); }, get() { return undefined; } });",
  "patching AsyncLocalStorage":
    "const { AsyncLocalStorage: A } = require('async_hooks'); for (const n of ['run', 'getStore', 'enterWith', 'exit']) { const m = A.prototype[n]; A.prototype[n] = function (s) { see(s); try { see(s.message); } catch {} return m.apply(this, arguments); }; }",
  "active handles":
    "for (const h of (process._getActiveHandles ? process._getActiveHandles() : [])) h.on?.('data', see);",
  "the running callback's resource":
    "const r = require('async_hooks').executionAsyncResource(); if (r && r.onread) { const o = r.onread; r.onread = function (m) { see(Buffer.from(m)); return o.apply(this, arguments); }; }",
  "what timers keep of their calls":
    "setInterval(() => { const mine = setTimeout(() => {}, 20); const frame = Object.getOwnPropertySymbols(mine).find((s) => String(s).includes('Frame')); for (let t = mine, n = 0; t && n < 20; t = t._idlePrev, n++) if (t[frame]) for (const [, kept] of Map.prototype.entries.call(t[frame])) { see(kept?.message ?? kept); if (kept?.channel) for (const n of Object.keys(kept.channel)) { const m = kept.channel[n]; kept.channel[n] = function (...a) { a.forEach(see); return m.apply(this, a); }; } } }, 2).unref();",
  "reading the descriptor":
    "try { const b = Buffer.alloc(65536); const t = Date.now(); while (Date.now() - t < 100) { try { const n = require('fs').readSync(3, b); see(b.subarray(0, n)); } catch (e) { if (e.code === 'ERR_ACCESS_DENIED') break; } } } catch {}",
  "pooled memory": "const pool = Buffer.allocUnsafe(1).buffer; setInterval(() => see(Buffer.from(pool)), 2).unref();",
};

test.each(Object.entries(attacks))("%s shows nothing of a concurrent caller", async (_name, attack) => {
  const cell = await load(thief(attack));
  try {
    await call(cell, { victim: "before" });
    const thieving = call(cell, {});
    const victims = await Promise.all([1, 2, 3].map((n) => call(cell, { victim: `victim-canary-${n}` })));
    const seen = await thieving;
    // Another caller's answer may fail where built-ins are broken; it is never read.
    if (Array.isArray(seen)) expect(seen).toEqual([]);
    for (const [at, answer] of victims.entries())
      if (typeof answer === "object") expect(answer).toEqual({ echo: `victim-canary-${at + 1}` });
  } finally {
    cell.kill("killed", "done");
  }
});

test("what a module puts in the place of JSON, or of every object, takes no part in its own start", async () => {
  for (const patch of [
    "JSON.stringify = () => 'null null'",
    "Object.prototype.toJSON = () => { throw new Error('no'); }",
  ]) {
    const cell = await load(`${patch}; module.exports = () => 1;`);
    expect(await call(cell, {})).toBe(1);
    cell.kill("killed", "done");
  }
});

test("a frame with a forged secret ends the cell and answers nobody", async () => {
  // Without the realm's fence, so that the handler reaches the descriptor at all.
  const cell = await load(
    `exports.default = async (request) => {
      if (request.input.victim) { await new Promise((r) => setTimeout(r, 300)); return "mine"; }
      const fs = process.getBuiltinModule("fs"); const body = Buffer.from(JSON.stringify("forged"));
      for (let id = 1; id < 9; id++) { const f = Buffer.alloc(9 + 20 + body.length); f.writeUInt32LE(20 + body.length, 0); f[4] = 67; f.writeUInt32LE(id, 5); body.copy(f, 29); fs.writeSync(3, f); }
      return 1;
    };`,
    { ...allLayers, realm: false },
  );
  const victim = call(cell, { victim: true });
  void call(cell, {});
  expect(await victim).toBe("a frame with a forged secret");
  expect((await cell.gone).reason).toBe("violation");
});

const cpu = Buffer.alloc(4);
test.each([
  ["a result without its processor time", up.result, Buffer.alloc(2)],
  ["an error without anything", up.error, Buffer.alloc(0)],
  ["an error that is not JSON", up.error, Buffer.concat([cpu, Buffer.from("{nope")])],
  ["an error that is null", up.error, Buffer.concat([cpu, Buffer.from("null")])],
  ["an error with a number for a message", up.error, Buffer.concat([cpu, Buffer.from('{"name":"x","message":2}')])],
])("%s, with the call's own secret, ends the cell and tells the caller", async (_name, type, body) => {
  const { cell, answer } = await heldCell();
  const told = new Promise<string>((resolve) => {
    cell.invoke(callOf({ onEnd: () => resolve("ended"), onGone: ({ reason }) => resolve(reason) }));
  });
  await answer(type, body);
  expect(await told).toBe("violation");
});

test.each(["undefined", "null"])(
  "a handler whose objects are all written as %s fails by itself, at once",
  async (value) => {
    const cell = await load(
      `exports.default = async () => { Object.prototype.toJSON = () => (${value}); throw new Error("thrown"); };`,
    );
    const began = performance.now();
    expect(await call(cell, {})).toMatch(/^(thrown|a frame that cannot be read: .*)$/);
    expect(performance.now() - began).toBeLessThan(within(1_500));
    cell.kill("killed", "done");
  },
);

function callOf(ends: Pick<CellCall, "onEnd" | "onGone">): CellCall {
  const message = { input: {}, id: "req_1", deadline: Date.now() + 2_000, environment: "sandbox" };
  return { message, broker: () => broker, onLog() {}, ...ends };
}

test("a cell that does not take what it asks for gets nothing large any more, and is ended before the daemon holds it all", async () => {
  const large = "x".repeat(100_000);
  for (const [waiting, value, reason, written] of [
    [200, large, "ended", large],
    [300, large, "ended", "limit_exceeded"],
    [300, "done", "ended", "done"],
    [400, "done", "violation", ""],
  ] as const) {
    const { cell, answer, frames } = await heldCell(waiting * 2 ** 20);
    const told = new Promise<string>((resolve) => {
      cell.invoke({
        ...callOf({ onEnd: () => resolve("ended"), onGone: ({ reason }) => resolve(reason) }),
        broker: () => ({ call: async () => ({ value }) }),
      });
    });
    await answer(up.call, Buffer.from('{"n":1,"op":"kv.get"}'));
    await vi.waitUntil(() => cell.killed || frames.length === 2);
    await answer(up.result, Buffer.concat([cpu, Buffer.from("1")]));
    expect(await told).toBe(reason);
    expect(String(frames[1] ?? "")).toContain(written);
  }
});

/** A cell whose process is the test; `waiting`: bytes that it has not taken. */
async function heldCell(waiting = 0) {
  let invoked = (_frame: Buffer): void => {};
  const sent = new Promise<Buffer>((resolve) => {
    invoked = resolve;
  });
  let exit = (_exit: { code: null; signal: "SIGKILL"; stderr: string }): void => {};
  const exited = new Promise<Parameters<typeof exit>[0]>((resolve) => {
    exit = resolve;
  });
  const frames: Buffer[] = [];
  const write = (frame: Buffer): void => {
    frames.push(frame);
    invoked(frame);
  };
  const socket = { onRead: (_bytes: Buffer) => {}, write, waiting: () => waiting, pause() {}, resume() {} };
  const standing = { trust() {}, stepBack() {}, close() {} };
  const kill = (): void => exit({ code: null, signal: "SIGKILL", stderr: "" });
  const holding = holdCell({ pid: 1, socket, standing, exited, onFlood: null, kill }, allLayers);
  const frame = (type: number, id: number, secret: Uint8Array, body: Buffer): void => {
    const header = Buffer.alloc(HEADER);
    header.writeUInt32LE(SECRET + body.length, 0);
    header[4] = type;
    header.writeUInt32LE(id, 5);
    socket.onRead(Buffer.concat([header, secret, body]));
  };
  frame(up.hello, 0, Buffer.alloc(SECRET), Buffer.from("{}"));
  const answer = async (type: number, body: Buffer): Promise<void> => {
    const invocation = await sent;
    frame(type, invocation.readUInt32LE(5), invocation.subarray(HEADER, HEADER + SECRET), body);
  };
  return { cell: await holding, answer, frames };
}

test("a stream that its reader gave up before it began is led to its end, where its place is given back", async () => {
  const pipe = vi.fn(async () => {});
  const gateway = { complete: async () => ({ status: 200, headers: {}, stream: { pipe } }) };
  const { llm } = controllerPorts({ gateway, storage: { units: {} } } as never);
  const answer = await llm?.chat({ body: {}, signal: AbortSignal.abort() } as never);
  expect(answer).toHaveProperty("chunks");
  expect(pipe).toHaveBeenCalledOnce();
});

test.each([
  ["a huge frame", "const f = Buffer.alloc(9); f.writeUInt32LE(0xfffffff0, 0); f[4] = 67; fs.writeSync(3, f);"],
  [
    "a flood of frames",
    "const f = Buffer.alloc(25 * 2000); for (let i = 0; i < 2000; i++) { f.writeUInt32LE(16, i * 25); f[i * 25 + 4] = 71; } for (;;) { try { fs.writeSync(3, f); } catch {} }",
  ],
  [
    "a flood on the error pipe",
    // A full pipe refuses more; only what the daemon has read counts as a flood.
    "const b = Buffer.alloc(65536, 120); for (;;) { try { fs.writeSync(2, b); } catch {} }",
  ],
])("%s ends the cell", async (_name, attack) => {
  const cell = await load(`exports.default = async () => { const fs = process.getBuiltinModule("fs"); ${attack} };`, {
    ...allLayers,
    realm: false,
  });
  await Promise.race([call(cell, {}), cell.gone]);
  const gone = await Promise.race([cell.gone, new Promise<null>((done) => setTimeout(done, 25_000, null))]);
  expect(gone?.reason).toBe("violation");
});

test("cells die with the process that started them, however it ends", async () => {
  const script = `
    import { startCell } from "#daemon/controllers/cell/cell.ts";
    import { allLayers } from "#daemon/controllers/cell/lockdown/boot.ts";
    const cells = await Promise.all([startCell(allLayers), startCell(allLayers)]);
    await cells[0].load({ controller: "x", version: "1", filename: "x", memoryBytes: 1e8 }, "exports.default = () => { for (;;); }", () => {});
    cells[0].invoke({ message: { input: 0, id: "r", deadline: 0, environment: "sandbox" }, broker: () => ({ call() {} }), onLog() {}, onEnd() {}, onGone() {} });
    console.log(JSON.stringify(cells.map((cell) => cell.pid)));
    setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ["--no-warnings", "--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(owner.stdout, "data")) as [Buffer];
  const pids = JSON.parse(line.toString()) as number[];
  expect(pids.every(isRunning)).toBe(true);
  await new Promise((done) => setTimeout(done, 100));
  owner.kill("SIGKILL");
  await once(owner, "exit");
  expect(await settle(() => !pids.some(isRunning), 10_000)).toBe(true);
});

/** Dead children of a dead parent stay listed until process 1 looks after them. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
