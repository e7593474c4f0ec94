// Takes from the realm what no handler needs: ways to the handle of the channel, to raw descriptors, to flags of the engine, to other code.
// This is a convenience and a second fence; the boundary is the kernel's filter.
import * as asyncHooks from "node:async_hooks";
import * as os from "node:os";
import * as v8 from "node:v8";
import { requireBuiltin } from "./builtins.ts";
import { toError } from "./errors.ts";
import { globalFetch } from "./request.ts";

/** Functions of `process` that end it, signal, load, or look into the runtime. */
const TAKEN = [
  ...["abort", "binding", "_linkedBinding", "chdir", "debugPort", "dlopen", "execve", "initgroups", "kill", "_kill"],
  ...["loadEnvFile", "openStdin", "reallyExit", "setegid", "seteuid", "setgid", "setgroups", "setuid"],
  ...["_debugProcess", "_debugEnd", "_startProfilerIdleNotifier", "_stopProfilerIdleNotifier", "_getActiveHandles"],
  ...["_getActiveRequests", "_rawDebug", "setUncaughtExceptionCaptureCallback"],
  ...["addUncaughtExceptionCaptureCallback", "setSourceMapsEnabled", "_eval", "_preload_modules", "report"],
  ...["mainModule", "permission", "stdin"],
  // As on Windows: packages ask whether they are there, and the filter would make them throw.
  ...["getuid", "geteuid", "getgid", "getegid", "getgroups"],
] as const;

const UNAVAILABLE_V8 = ["setFlagsFromString", "writeHeapSnapshot", "getHeapSnapshot", "setHeapSnapshotNearHeapLimit"];
const UNAVAILABLE_GLOBALS = ["localStorage", "sessionStorage", "Storage"];
/** Packages look whether they are there before anything is connected. */
const REFUSED_GLOBALS = ["WebSocket", "EventSource"];

export function hardenRealm(): void {
  fix(globalThis, "fetch", globalFetch, true);
  hardenV8();
  hardenProcess();
  hardenAsyncHooks();
  hardenBytes();
  for (const name of UNAVAILABLE_GLOBALS) delete (globalThis as Record<string, unknown>)[name];
  for (const name of REFUSED_GLOBALS) fix(globalThis, name, refusedClass(name), true);
}

/** What every cell needs, whatever the layers: answers to what the filter refuses to read. */
export function fitRealm(): void {
  const usage = (): Record<string, number> => {
    const heap = v8.getHeapStatistics();
    return {
      rss: heap.total_physical_size + heap.external_memory,
      heapTotal: heap.total_heap_size,
      heapUsed: heap.used_heap_size,
      external: heap.external_memory,
      arrayBuffers: 0,
    };
  };
  fix(process, "memoryUsage", Object.assign(usage, { rss: () => usage()["rss"] }));
  fix(process, "cwd", () => "/");
  const machine = (os as unknown as { default: Record<string, unknown> }).default;
  fix(machine, "homedir", () => "/");
  fix(machine, "networkInterfaces", () => ({}));
  fix(machine, "getPriority", () => 0);
  // Packages do as much at once as there are processors, and none would be nothing.
  fix(machine, "cpus", () => [{ model: "unknown", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }]);
  fix(machine, "userInfo", () => ({ username: "controller", uid: -1, gid: -1, homedir: "/", shell: null }));
}

// Flags change the engine under the running code (--allow-natives-syntax, --no-harden...): nobody sets them after this line.
function hardenV8(): void {
  const real = v8 as unknown as { default: Record<string, unknown> };
  for (const name of UNAVAILABLE_V8) fix(real.default, name, unavailable(`v8.${name}`));
}

function hardenProcess(): void {
  for (const name of TAKEN) fix(process, name, undefined);
  const exit = (): never => {
    throw toError({
      name: "Error",
      message: "process.exit is not available in a controller: return or throw",
      code: "handler_error",
    });
  };
  fix(process, "exit", exit);
  const setUmask = unavailable("process.umask");
  fix(process, "umask", (mask?: unknown) => (mask === undefined ? 0o022 : setUmask()));
  fix(process, "getBuiltinModule", (name: unknown) => requireBuiltin(String(name), true));
  fix(process, "argv", ["node", "controller"]);
  fix(process, "execArgv", []);
  fix(process, "execPath", "/node");
  fix(process, "env", {});
}

// The resource of the running callback would be the channel's handle.
function hardenAsyncHooks(): void {
  const real = (asyncHooks as unknown as { default: Record<string, unknown> }).default;
  fix(real, "executionAsyncResource", () => ({}));
  fix(real, "createHook", () => {
    // As in Node both answer the hook itself: packages keep what `createHook(...).enable()` gives, and disable that.
    const hook = { enable: () => hook, disable: () => hook };
    return hook;
  });
}

// The channel's memory holds every caller's frames, and asking an array of bytes for its length calls whatever getter it finds. The real ones
// stand on the nearest prototype too, where nobody can put another before them.
function hardenBytes(): void {
  const arrays = Object.getPrototypeOf(Uint8Array.prototype) as object;
  for (const name of ["buffer", "byteLength", "byteOffset", "length"]) {
    const real = { ...Object.getOwnPropertyDescriptor(arrays, name), configurable: false };
    for (const target of [arrays, Uint8Array.prototype, Buffer.prototype]) Object.defineProperty(target, name, real);
  }
  for (const target of [ArrayBuffer.prototype, SharedArrayBuffer.prototype])
    Object.defineProperty(target, "byteLength", { configurable: false });
}

function unavailable(what: string): () => never {
  return () => {
    throw Object.assign(new Error(`${what} is not available in a controller`), { code: "ERR_ACCESS_DENIED" });
  };
}

function refusedClass(name: string): unknown {
  const refused = unavailable(name);
  return class {
    constructor() {
      refused();
    }
  };
}

function fix(target: object, name: string, value: unknown, writable = false): void {
  try {
    Object.defineProperty(target, name, { value, writable, configurable: writable, enumerable: true });
  } catch {
    // A property that cannot be redefined: what it leads to is refused by the layers below.
  }
}
