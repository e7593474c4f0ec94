// What a handler can do to the machine that it shares: bodies of `async (request) => { ... }`. containment.deep.test.ts runs them, and
// bench/controllers/neighbours.ts measures them.
import type { ControllerContract } from "#contract/controller.ts";

export interface Attack {
  readonly handler: string;
  readonly contract?: Partial<ControllerContract>;
}

export const attacks: Readonly<Record<string, Attack>> = {
  "a loop": { handler: "for (;;);" },
  "a regular expression": { handler: "/^(a+)+$/.test('a'.repeat(40) + 'b');" },
  "Atomics.wait": { handler: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);" },
  "a loop of microtasks": { handler: "const spin = () => Promise.resolve().then(spin); await spin();" },
  "a loop of immediates": { handler: "const spin = () => setImmediate(spin); spin(); await new Promise(() => {});" },
  "a loop after the answer": { handler: "setImmediate(() => { for (;;); }); return {};" },
  "a bomb of heap": { handler: "const a = []; for (;;) a.push({ x: new Array(100).fill(Math.random()) });" },
  "a bomb of buffers": { handler: "const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1));" },
  "a bomb of shared buffers": {
    handler:
      "const a = []; for (;;) { const s = new SharedArrayBuffer(8 << 20); new Uint8Array(s).fill(1); a.push(s); }",
  },
  "a bomb of wasm memories": {
    handler:
      "const a = []; for (;;) { const m = new WebAssembly.Memory({ initial: 160, maximum: 65536 }); new Uint8Array(m.buffer).fill(1); a.push(m); }",
  },
  "a bomb of strings": {
    handler: "const a = []; for (let n = 0; ; n++) a.push(Buffer.alloc(4 << 20, 'a').toString('latin1') + n);",
  },
  "a flood of forks": {
    handler:
      "for (;;) { try { const { spawn } = await import('node:child_process'); for (let i = 0; i < 100; i++) spawn('/bin/true'); } catch {} try { const { Worker } = process.getBuiltinModule('worker_threads'); for (let i = 0; i < 100; i++) new Worker('0', { eval: true }); } catch {} await new Promise(setImmediate); }",
  },
  "a flood of descriptors": {
    handler:
      "const { Socket } = await import('node:net').catch(() => ({})); const fs = await import('node:fs').catch(() => ({})); const held = []; for (;;) { for (let i = 0; i < 100; i++) { try { held.push(fs.openSync('/dev/null')); } catch {} try { held.push(new Socket().connect(1).on('error', () => {})); } catch {} try { new MessageChannel(); } catch {} } if (held.length > 1e4) held.length = 0; await new Promise(setImmediate); }",
  },
  "a flood of log lines": {
    handler: "for (;;) { for (let i = 0; i < 500; i++) request.log.info('x'.repeat(1000)); await null; }",
  },
  "a flood of the console": { handler: "for (;;) { console.log('y'.repeat(100000)); await null; }" },
  "a flood of rejections": {
    handler:
      "for (;;) { for (let i = 0; i < 200; i++) Promise.reject(new Error('z')); await new Promise(setImmediate); }",
  },
  "a flood of broker calls": {
    handler:
      "for (;;) { for (let i = 0; i < 100; i++) request.kv.get('k').catch(() => {}); await new Promise(setImmediate); }",
  },
  "a flood of granted broker calls": {
    handler:
      "for (;;) { for (let i = 0; i < 100; i++) request.kv.get('k').catch(() => {}); await new Promise(setImmediate); }",
    contract: { capabilities: ["kv:read"] },
  },
  "a flood of timers": {
    handler: "for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1); await new Promise(() => {});",
  },
  "an output of 8 MB": { handler: "return 'o'.repeat((8 << 20) - 10);" },
  "an output of many small parts": {
    handler: "return Array.from({ length: 400_000 }, (_, n) => ({ n, t: 'x' }));",
  },
  "an output too large": { handler: "return 'o'.repeat(40 << 20);" },
  "a promise that never settles": { handler: "await new Promise(() => {});" },
};
