// Which of Node's modules a controller may load. The kernel and the permission model refuse the rest anyway; here they are refused by
// name, with what to use instead. A refused module can still be imported, because npm packages import more than they use: each of its
// functions throws when it is called.
import { harmless } from "./harmless.ts";
import { getBuiltin } from "./realm-builtins.ts";

/** Pure computation, no way to the outside. */
const allowedBuiltins: ReadonlySet<string> = new Set([
  ...["assert", "assert/strict", "async_hooks", "buffer", "console", "constants", "crypto", "diagnostics_channel"],
  ...["events", "os", "path", "path/posix", "path/win32", "perf_hooks", "process", "punycode", "querystring"],
  ...["stream", "stream/consumers", "stream/promises", "stream/web", "string_decoder", "sys", "timers"],
  ...["timers/promises", "url", "util", "util/types", "zlib", "sqlite", "readline"],
]);

const INSTEAD: Record<string, string> = {
  fs: "a cell has no files; bundle the data or use request.kv",
  "fs/promises": "a cell has no files; bundle the data or use request.kv",
  http: "use request.fetch (capability http:egress)",
  https: "use request.fetch (capability http:egress)",
  http2: "use request.fetch (capability http:egress)",
  net: "use request.fetch or request.db",
  tls: "use request.fetch or request.db",
  dns: "use request.fetch (capability http:egress)",
  child_process: "a cell starts no processes",
  worker_threads: "a cell starts no threads",
  vm: "a cell loads no code but its bundle",
  module: "a cell loads no code but its bundle",
};

/** `require` of the bundle: builtins only, everything else is inside the bundle. */
export function requireBuiltin(specifier: string, policy: boolean): unknown {
  const name = specifier.startsWith("node:") ? specifier.slice(5) : specifier;
  const loaded = getBuiltin(name);
  if (loaded === undefined) throw notFound(specifier);
  if (!policy || allowedBuiltins.has(name)) return loaded;
  return refusing(name, loaded);
}

function notFound(specifier: string): Error {
  return Object.assign(
    new Error(`Cannot find module '${specifier}': a cell has its bundle and Node's built-in modules`),
    {
      code: "MODULE_NOT_FOUND",
    },
  );
}

const stubs = new Map<string, unknown>();

/** The module's shape with every function replaced; data (constants, lists) stays. */
function refusing(name: string, real: unknown): unknown {
  const known = stubs.get(name);
  if (known) return known;
  const members = real as Record<string, unknown>;
  const stub = { ...refuseMembers(name, members, 0), ...harmless[name]?.(members, (one) => requireBuiltin(one, true)) };
  stubs.set(name, stub);
  return stub;
}

function refuseMembers(path: string, real: object, depth: number): Record<string, unknown> {
  const stub: Record<string, unknown> = {};
  for (const key of Object.getOwnPropertyNames(real)) {
    const descriptor = Object.getOwnPropertyDescriptor(real, key);
    if (!descriptor || !("value" in descriptor)) {
      // A getter may load what is refused. Those with a class's name give one, which packages extend.
      if (depth === 0 && key === "promises") stub[key] = promisesStub(path);
      else stub[key] = /^[A-Z]\w*[a-z]/.test(key) ? refuse(`${path}.${key}`) : undefined;
      continue;
    }
    const { value } = descriptor;
    if (typeof value === "function") stub[key] = refuse(`${path}.${key}`);
    else if (typeof value !== "object" || value === null || Array.isArray(value)) stub[key] = value;
    else stub[key] = depth < 1 ? refuseMembers(`${path}.${key}`, value, depth + 1) : {};
  }
  return stub;
}

function promisesStub(path: string): Record<string, unknown> {
  const real = getBuiltin(`${path}/promises`);
  return real ? refuseMembers(`${path}.promises`, real as object, 1) : {};
}

function refuse(path: string): () => unknown {
  const module = path.split(".")[0] ?? path;
  const denial = (): Error =>
    Object.assign(new Error(`node:${path} is not available in a controller: ${INSTEAD[module] ?? "it is refused"}`), {
      code: "ERR_ACCESS_DENIED",
      [Symbol.for("magic.handler.error")]: false,
    });
  // Whoever asks for a promise handles its rejection, as that of a file which is not there.
  const promised = /^(fs|dns)[/.]promises\./.test(path);
  return function denied() {
    if (promised) return Promise.reject(denial());
    throw denial();
  };
}
