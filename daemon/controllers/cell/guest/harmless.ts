// What packages ask of refused modules when they load, though they reach nothing by it: whether a terminal is there, whether a text is an
// address, a `require` of their own, an agent that nothing will be sent by. Answered as on a machine without terminals and files.
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { httpClient } from "./http-client.ts";

type Members = Record<string, unknown>;
type Require = (specifier: string) => unknown;

/** The members of a refused module that stay, by its name; `real` is the module itself, `load` what the bundle requires by. */
export const harmless: Readonly<Record<string, (real: Members, load: Require) => Members>> = {
  tty: () => ({ isatty: () => false }),
  // got's http2-wrapper makes one over a stream of its own when it loads, for the class of what wraps that; no connection leads to one.
  tls: () => ({
    TLSSocket: class {
      readonly _handle = { _parentWrap: {} };
    },
  }),
  net: ({ isIP, isIPv4, isIPv6 }) => ({ isIP, isIPv4, isIPv6 }),
  http: ({ validateHeaderName, validateHeaderValue, maxHeaderSize }) => ({
    ...{ validateHeaderName, validateHeaderValue, maxHeaderSize },
    ...agents("http:", 80),
    ...httpClient(false),
  }),
  https: () => ({ ...agents("https:", 443), ...httpClient(true) }),
  fs: () => ({ existsSync: () => false, write, writeSync }),
  module: ({ isBuiltin }, load) => ({ isBuiltin, createRequire: () => requireBy(load) }),
  worker_threads: () => ({ markAsUncloneable: () => undefined, markAsUntransferable: () => undefined }),
};

/** It has what programs set and read; connections are the daemon's. */
function agents(protocol: string, defaultPort: number): Members {
  class Agent extends EventEmitter {
    readonly options: object;
    readonly protocol = protocol;
    readonly defaultPort = defaultPort;
    readonly sockets = {};
    readonly freeSockets = {};
    readonly requests = {};
    maxSockets = Number.POSITIVE_INFINITY;
    maxFreeSockets = 256;
    constructor(options: object = {}) {
      super();
      this.options = { ...options };
    }
    destroy(): void {}
  }
  return { Agent, globalAgent: new Agent() };
}

/** Standard output and error, by number, are the log: loggers write there. Every other file is refused. */
function writeSync(fd: unknown, data: unknown): number {
  if (fd !== 1 && fd !== 2)
    throw Object.assign(new Error("node:fs.write is not available in a controller: a cell has no files"), {
      code: "ERR_ACCESS_DENIED",
    });
  const bytes = Buffer.from(data as string);
  (fd === 1 ? process.stdout : process.stderr).write(bytes);
  return bytes.length;
}

function write(fd: unknown, data: unknown, ...rest: unknown[]): void {
  const written = writeSync(fd, data);
  const done = rest.at(-1);
  if (typeof done === "function") process.nextTick(done, null, written, data);
}

/** `resolve` knows built-in modules, and where a file beside the handler would be. */
export function requireBy(load: Require): Require {
  const resolve = (name: string): string => {
    if (name.startsWith(".")) return join("/controller", name);
    load(name);
    return name;
  };
  return Object.assign((name: string) => load(name), { resolve });
}
