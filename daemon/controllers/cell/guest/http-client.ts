// `http.request` and `https.request` of a cell, for the packages that know no `fetch`: the same broker call behind Node's classes. What only a
// connection of one's own could do is refused by name.
import { Readable, Writable } from "node:stream";
import { CONNECTION_OPTIONS } from "#contract/runtime-limits.ts";
import { toError } from "./errors.ts";
import { exchange, type FetchAnswer } from "./fetch.ts";
import { currentInvocation } from "./invocation.ts";
import type { IncomingStream } from "./streams.ts";

type Members = Record<string, unknown>;
type OnResponse = (response: IncomingMessage) => void;
interface Options extends Members {
  readonly headers?: Members | readonly string[];
  readonly signal?: AbortSignal;
}

/** Bytes kept before the request goes out without its end: a body that ends within them goes with its length. */
const COLLECTED = 64 * 1024;

/** What packages set on a connection, without one. */
class NoSocket extends Writable {
  readonly connecting = false;
  readonly authorized = true;
  readonly encrypted: boolean;
  constructor(encrypted: boolean) {
    super();
    this.encrypted = encrypted;
  }
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setTimeout(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

class IncomingMessage extends Readable {
  readonly httpVersion = "1.1";
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly trailers = {};
  readonly rawTrailers: string[] = [];
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly headers: Record<string, string | string[]> = {};
  readonly rawHeaders: string[] = [];
  readonly req: ClientRequest;
  readonly socket: unknown;
  complete = false;
  #stream: IncomingStream | null;

  constructor(request: ClientRequest, answer: FetchAnswer, stream: IncomingStream | null) {
    super({ highWaterMark: COLLECTED });
    this.statusCode = answer.status;
    this.statusMessage = answer.statusText;
    this.req = request;
    this.socket = request.socket;
    this.#stream = stream;
    for (const [name, value] of answer.headers) {
      this.rawHeaders.push(name, value);
      const before = this.headers[name];
      if (name === "set-cookie") this.headers[name] = [...((before as string[]) ?? []), value];
      else this.headers[name] = before === undefined ? value : `${before}, ${value}`;
    }
  }

  get connection(): unknown {
    return this.socket;
  }
  get aborted(): boolean {
    return this.destroyed && !this.complete;
  }

  setTimeout(ms: number, listener?: () => void): this {
    this.req.setTimeout(ms, listener);
    return this;
  }

  override _read(): void {
    (this.#stream?.read() ?? Promise.resolve(null)).then(
      (bytes) => {
        this.req.stir();
        if (bytes === null) this.complete = true;
        this.push(bytes);
      },
      (error: Error) => {
        // What was given up breaks off here too: the request tells of it in its own time.
        if (!this.req.destroyed) this.destroy(error);
      },
    );
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.complete) {
      this.#stream?.cancel();
      this.emit("aborted");
    }
    this.req.destroy();
    // Node's own tells an error to those alone who listen for one.
    process.nextTick(() => done(this.listenerCount("error") === 0 ? null : error));
  }
}

class ClientRequest extends Writable {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly protocol: string;
  readonly reusedSocket = false;
  readonly socket: NoSocket;
  res: IncomingMessage | null = null;
  aborted = false;
  headersSent = false;
  #url: string;
  #headers = new Map<string, { readonly name: string; readonly value: unknown }>();
  #abort = new AbortController();
  #invocation = currentInvocation();
  #kept: Uint8Array[] = [];
  #written = 0;
  #bodyOver = false;
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #onPull: (() => void) | null = null;
  #timeoutMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(secure: boolean, options: Options, onResponse: OnResponse | undefined) {
    // It ends with its answer, not with its body.
    super({ autoDestroy: false });
    const text = (key: string): string | undefined => (options[key] ? String(options[key]) : undefined);
    this.protocol = text("protocol") ?? (secure ? "https:" : "http:");
    this.method = (text("method") ?? "GET").toUpperCase();
    this.path = text("path") ?? "/";
    this.host = text("hostname") ?? text("host") ?? "localhost";
    this.socket = new NoSocket(secure);
    if (/[^\x21-\xff]/.test(this.path))
      throw Object.assign(new TypeError("Request path contains unescaped characters"), {
        code: "ERR_UNESCAPED_CHARACTERS",
      });
    const host = this.host.includes(":") && !this.host.startsWith("[") ? `[${this.host}]` : this.host;
    const port = text("port") ?? text("defaultPort");
    this.#url = `${this.protocol}//${host}${port === undefined ? "" : `:${port}`}${this.path}`;
    const { headers } = options;
    if (Array.isArray(headers))
      for (let at = 0; at < headers.length; at += 2) this.appendHeader(headers[at], headers[at + 1]);
    else for (const [name, value] of Object.entries(headers ?? {})) this.setHeader(name, value);
    const auth = text("auth");
    if (auth !== undefined && !this.hasHeader("authorization"))
      this.setHeader("Authorization", `Basic ${Buffer.from(auth).toString("base64")}`);
    if (onResponse) this.once("response", onResponse);
    if (typeof options["timeout"] === "number") this.setTimeout(options["timeout"]);
    const { signal } = options;
    const leave = (): void => void this.destroy(aborted(signal?.reason));
    if (signal?.aborted) process.nextTick(leave);
    else signal?.addEventListener("abort", leave, { once: true });
    const refused = refusedOf(options, this);
    process.nextTick(() => {
      if (refused !== null) this.destroy(denied(refused));
      else if (!this.destroyed) {
        this.emit("socket", this.socket);
        // The daemon takes the body at once, whatever the server would have said.
        if (/^100-continue$/i.test(String(this.getHeader("expect")))) this.emit("continue");
      }
    });
  }

  get connection(): unknown {
    return this.socket;
  }
  get finished(): boolean {
    return this.writableEnded;
  }

  setHeader(name: string, value: unknown): this {
    if (this.headersSent)
      throw Object.assign(new Error("Cannot set headers after they are sent to the client"), {
        code: "ERR_HTTP_HEADERS_SENT",
      });
    if (value === undefined)
      throw Object.assign(new TypeError(`Invalid value "undefined" for header "${name}"`), {
        code: "ERR_HTTP_INVALID_HEADER_VALUE",
      });
    this.#headers.set(name.toLowerCase(), { name, value });
    return this;
  }
  appendHeader(name: string, value: unknown): this {
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [before, value].flat());
  }
  setHeaders(headers: Iterable<readonly [string, unknown]>): this {
    for (const [name, value] of headers) this.setHeader(name, value);
    return this;
  }
  getHeader(name: string): unknown {
    return this.#headers.get(name.toLowerCase())?.value;
  }
  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }
  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }
  getHeaders(): Members {
    return Object.fromEntries([...this.#headers].map(([key, { value }]) => [key, value]));
  }
  getHeaderNames(): string[] {
    return [...this.#headers.keys()];
  }
  getRawHeaderNames(): string[] {
    return [...this.#headers.values()].map(({ name }) => name);
  }

  setTimeout(ms: number, listener?: () => void): this {
    if (listener) this.once("timeout", listener);
    this.#timeoutMs = ms;
    this.stir();
    return this;
  }
  setNoDelay(): void {}
  setSocketKeepAlive(): void {}
  flushHeaders(): void {
    this.#stream();
  }
  abort(): void {
    this.aborted = true;
    this.destroy();
  }

  /** Something was heard: the time-out begins anew. */
  stir(): void {
    this.settle();
    if (this.#timeoutMs > 0 && !this.destroyed)
      this.#timer = setTimeout(() => this.emit("timeout"), this.#timeoutMs).unref();
  }
  settle(): void {
    clearTimeout(this.#timer);
  }

  override _write(chunk: string | Uint8Array, encoding: BufferEncoding, done: (error?: Error) => void): void {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
    if (this.#bodyOver) return void done(new Error("the body is longer than its content-length"));
    this.#written += bytes.length;
    const whole = this.#written === this.#declaredLength();
    if (this.#body) this.#body.enqueue(bytes);
    else this.#kept.push(bytes);
    // A server answers a body that has all its bytes, and packages (form-data by `pipeline`) leave it at that.
    if (whole) this.#endBody();
    else if (this.#body) return void this.#pulled(done);
    else if (this.#written > COLLECTED) this.#stream();
    done();
  }

  override _final(done: () => void): void {
    this.#endBody();
    done();
  }

  /** All of the body is here: what was kept goes out with its length. */
  #endBody(): void {
    if (this.#bodyOver) return;
    this.#bodyOver = true;
    if (this.#body) this.#body.close();
    else {
      const kept = this.#kept as Uint8Array<ArrayBuffer>[];
      void this.#send(this.#written > 0 ? new Blob(kept).stream() : null, this.#written);
    }
  }

  #declaredLength(): number {
    return Number(this.getHeader("content-length") ?? Number.NaN);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const early = this.res === null ? hungUp() : null;
    const why = error ?? early;
    this.#abort.abort(why ?? undefined);
    // As in Node the request's error comes first: clients like got take what they hear first for the reason.
    const { res } = this;
    if (res && !res.complete) this.prependOnceListener("close", () => res.destroy(brokenOff()));
    this.settle();
    done(why);
  }

  /** The body goes out as it comes. */
  #stream(): void {
    if (this.headersSent) return;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
        for (const bytes of this.#kept.splice(0)) controller.enqueue(bytes);
      },
      pull: () => this.#onPull?.(),
    });
    const declared = this.#declaredLength();
    void this.#send(body, Number.isSafeInteger(declared) ? declared : undefined);
  }

  #pulled(done: () => void): void {
    if ((this.#body?.desiredSize ?? 1) > 0) done();
    else
      this.#onPull = () => {
        this.#onPull = null;
        done();
      };
  }

  async #send(body: ReadableStream<Uint8Array> | null, length: number | undefined): Promise<void> {
    this.headersSent = true;
    const headers = [...this.#headers.values()].flatMap(({ name, value }) =>
      [value].flat().map((one) => [name, String(one)] as const),
    );
    const invocation = this.#invocation;
    try {
      if (!invocation) throw denied("a request works during an invocation only, not while the module loads");
      const { value, stream } = await exchange(invocation, {
        ...{ url: this.#url, method: this.method, headers, redirect: "manual", body },
        ...{ whole: length !== undefined, length, signal: this.#abort.signal },
      });
      this.res = new IncomingMessage(this, value, stream);
      this.stir();
      if (!this.emit("response", this.res)) this.res.resume();
    } catch (error) {
      this.destroy(error as Error);
    }
  }
}

/** What the options ask for that no brokered request has; null where there is nothing of the kind. */
function refusedOf(options: Options, request: ClientRequest): string | null {
  const own = CONNECTION_OPTIONS.find((name) => options[name] !== undefined && options[name] !== null);
  if (own !== undefined) return `the option ${own} is not available in a controller: its requests are the daemon's`;
  if (options["rejectUnauthorized"] === false) return "certificates are always checked: rejectUnauthorized is true";
  return request.hasHeader("upgrade") ? "connections that are upgraded (WebSocket) are not available" : null;
}

function denied(message: string): Error {
  return toError({ name: "HandlerError", message, code: "capability_denied" });
}

function aborted(cause: unknown): Error {
  return Object.assign(new Error("The operation was aborted", { cause }), { name: "AbortError", code: "ABORT_ERR" });
}

function brokenOff(): Error {
  return Object.assign(new Error("aborted"), { code: "ECONNRESET" });
}

function hungUp(): Error {
  return Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
}

/** `request`, `get` and the classes of `node:http` or `node:https`. */
export function httpClient(secure: boolean): Members {
  const request = (input: unknown, second?: unknown, third?: unknown): ClientRequest => {
    const from = typeof input === "string" ? new URL(input) : input;
    const options = (from instanceof URL ? { ...ofUrl(from), ...(isOptions(second) ? second : {}) } : from) as Options;
    const listener = [second, third].find((one) => typeof one === "function");
    return new ClientRequest(secure, options ?? {}, listener as OnResponse | undefined);
  };
  const get = (...args: [unknown, unknown?, unknown?]): ClientRequest => {
    const made = request(...args);
    made.end();
    return made;
  };
  return { request, get, ClientRequest, IncomingMessage };
}

function isOptions(value: unknown): value is Options {
  return typeof value === "object" && value !== null;
}

function ofUrl(url: URL): Members {
  return {
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname + url.search,
    ...(url.port !== "" && { port: url.port }),
    ...((url.username || url.password) && {
      auth: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`,
    }),
  };
}
