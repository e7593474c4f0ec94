// Node's HTTP client in a handler under test, for packages that know no `fetch`: its own code, with the fake `fetch` at the other end of the
// connection. Hosts and methods are granted as they are there; what only a connection could do is refused as it is in a cell.
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import { type Duplex, duplexPair, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CONNECTION_OPTIONS } from "#contract/runtime-limits.ts";
import { HandlerError } from "#sdk/errors.ts";

type Fetch = typeof globalThis.fetch;
type Options = https.RequestOptions;
type Ask = (...args: unknown[]) => http.ClientRequest;

const OF_THE_WIRE = ["connection", "host", "keep-alive", "transfer-encoding", "content-length", "expect"];

/** @param inside the `fetch` of the handler that runs; undefined outside of one, where requests stay Node's. */
export function coverHttp(inside: () => Fetch | undefined): void {
  for (const client of [http, https] as unknown as { request: Ask; get: Ask }[]) {
    const own = client.request;
    client.request = (...args) => {
      const fetch = inside();
      if (!fetch) return own(...args);
      const { options, listener } = read(args);
      const url = addressOf(options, client === (https as unknown));
      const made = own(
        { ...options, agent: undefined, createConnection: () => connect(fetch, url, options) },
        listener,
      );
      // A body of GET or DELETE would have no end, and be taken for another request.
      made.useChunkedEncodingByDefault = true;
      return made;
    };
    client.get = (...args) => {
      const made = client.request(...args);
      made.end();
      return made;
    };
  }
  syncBuiltinESMExports();
}

function read(args: unknown[]): { options: Options; listener: unknown } {
  const [first, second] = args;
  const from = typeof first === "string" ? new URL(first) : first;
  const more = typeof second === "object" && second !== null ? second : {};
  const options = from instanceof URL ? { ...httpOptions(from), ...more } : (from as Options);
  return { options, listener: args.slice(1).find((one) => typeof one === "function") };
}

function httpOptions({ protocol, hostname, pathname, search, port, username, password }: URL): Options {
  return {
    ...{ protocol, hostname: hostname.replace(/^\[|\]$/g, ""), path: pathname + search },
    ...(port !== "" && { port }),
    ...((username || password) && { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }),
  };
}

function addressOf(options: Options, secure: boolean): string {
  const host = options.hostname ?? options.host ?? "localhost";
  const port = options.port ?? options.defaultPort;
  const origin = `${options.protocol ?? (secure ? "https:" : "http:")}//${/^[^[].*:/.test(host) ? `[${host}]` : host}`;
  return `${origin}${port ? `:${port}` : ""}${options.path ?? "/"}`;
}

/** The handler's end of a connection of which the other end is a server that asks the fake. */
function connect(fetch: Fetch, url: string, options: Options): Duplex {
  const [near, far] = duplexPair();
  let timer: NodeJS.Timeout | undefined;
  const same = (): Duplex => near;
  const setTimer = (ms: number): Duplex => {
    clearTimeout(timer);
    if (ms > 0) timer = setTimeout(() => near.emit("timeout"), ms).unref();
    return near;
  };
  near.on("close", () => clearTimeout(timer));
  Object.assign(near, { setTimeout: setTimer, setKeepAlive: same, setNoDelay: same, ref: same, unref: same });
  setTimer(options.timeout ?? 0);
  const refused = CONNECTION_OPTIONS.find((name) => options[name] !== undefined && options[name] !== null);
  if (refused !== undefined || options.rejectUnauthorized === false) {
    const what = `the option ${refused ?? "rejectUnauthorized"} is not available in a controller`;
    process.nextTick(() => near.destroy(new HandlerError("capability_denied", what)));
    return near;
  }
  const server = http.createServer((incoming, outgoing) => {
    answer(fetch, url, incoming, outgoing).catch((error: Error) => near.destroy(error));
  });
  server.emit("connection", far);
  return near;
}

async function answer(
  fetch: Fetch,
  url: string,
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
): Promise<void> {
  const { method = "GET", headersDistinct } = incoming;
  const sent = Object.entries(headersDistinct).filter(([name]) => !OF_THE_WIRE.includes(name));
  const response = await fetch(url, {
    method,
    headers: sent.flatMap(([name, values]) => (values ?? []).map((value): [string, string] => [name, value])),
    ...(method !== "GET" && method !== "HEAD" && { body: Readable.toWeb(incoming) as never, duplex: "half" }),
    redirect: "manual",
  });
  outgoing.sendDate = false;
  for (const [name, value] of response.headers) outgoing.appendHeader(name, value);
  outgoing.writeHead(response.status, response.statusText || http.STATUS_CODES[response.status]);
  if (response.body) await pipeline(Readable.fromWeb(response.body as never), outgoing);
  else outgoing.end();
}
