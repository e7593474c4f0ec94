// One HTTP request to a provider over an undici dispatcher (never fetch: it costs several times the CPU): one time limit for the headers
// and for every silence after them, abort within a turn of the loop, answers decoded and capped. Knows nothing of formats.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { isMagicError } from "#contract/errors.ts";
import { type Failure, type FailureKind, failure } from "#daemon/gateway/providers/failure.ts";
import type { AbortNotice } from "#shared/abort.ts";
import { Deadline } from "#shared/deadline.ts";
import { type BodyDecoder, bodyDecoder } from "./decode.ts";

export interface UpstreamRequest {
  /** Where the provider's key may go, and nowhere else: taken from its configuration, never from a request. */
  readonly origin: string;
  readonly method: "POST" | "GET";
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string | null;
}

/** Told what comes, in this order: head once, data many times, then end or fail once. */
export interface ExchangeReader {
  /** From now on the provider may have read the request. */
  sent?(): void;
  head(status: number, headers: IncomingHttpHeaders): void;
  data(chunk: Buffer): void;
  end(): void;
  /** Time-outs, resets, aborts, refusals of the egress guard; and `UpstreamError`s thrown by the reader itself. */
  fail(failure: Failure): void;
}

export interface Exchange {
  /** Stops reading; the time limit stands still meanwhile. */
  pause(): void;
  resume(): void;
  /** The answer is complete for the reader: nothing more is told. The socket gets a moment to end cleanly, then is closed. */
  finish(): void;
}

export interface ExchangeOptions {
  readonly signal: AbortNotice;
  readonly timeoutMs: number;
  /** What an earlier request of the same attempt has taken of the time for the headers. */
  readonly spentMs?: number;
  /** Bytes of the answer after decompression. */
  readonly maxBytes: number;
}

const LINGER_MS = 500;

/** Sends the request. Never throws; exactly one of `end` and `fail` is called, unless `finish` comes first. */
export function exchange(
  dispatcher: Dispatcher,
  request: UpstreamRequest,
  reader: ExchangeReader,
  options: ExchangeOptions,
): Exchange {
  const running = new Running(reader, options);
  running.start(dispatcher, request);
  return running;
}

// A class, as every call makes one: methods that all of them share cost nothing to make.
class Running implements Exchange, Dispatcher.DispatchHandler {
  readonly #reader: ExchangeReader;
  readonly #options: ExchangeOptions;
  #controller: Dispatcher.DispatchController | null = null;
  #decoder: BodyDecoder | null = null;
  #over = false;
  #paused = false;
  #received = 0;
  #linger: NodeJS.Timeout | null = null;
  #deadline: Deadline | null = null;
  /** Since when the provider is silent, by the monotonic clock: a limit that began anew at each piece would cost several times as much. */
  #silentSince = 0;
  readonly #aborted = () => this.#settle(failure("aborted", "The client left."));

  readonly #late = () => {
    const silent = performance.now() - this.#silentSince;
    const { timeoutMs } = this.#options;
    if (silent < timeoutMs) this.#wait(silent);
    else this.#settle(failure("timeout", `The provider was silent for ${timeoutMs} ms.`));
  };

  constructor(reader: ExchangeReader, options: ExchangeOptions) {
    this.#reader = reader;
    this.#options = options;
    this.#wait(options.spentMs ?? 0);
  }

  start(dispatcher: Dispatcher, { origin, path, method, headers, body }: UpstreamRequest): void {
    const { signal } = this.#options;
    signal.addEventListener("abort", this.#aborted, { once: true });
    if (signal.aborted) {
      this.#aborted();
      return;
    }
    try {
      dispatcher.dispatch({ origin, path, method, headers, body, headersTimeout: 0, bodyTimeout: 0 }, this);
    } catch (error) {
      this.#settle(failureOf(error));
    }
  }

  onRequestStart(started: Dispatcher.DispatchController): void {
    this.#controller = started;
    if (this.#over) started.abort(new Error("over"));
    else this.#reader.sent?.();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#over || status < 200) return;
    this.#silentSince = performance.now();
    const encoding = headers["content-encoding"];
    if (encoding !== undefined)
      this.#decoder = bodyDecoder(
        encoding,
        (chunk) => this.#take(chunk),
        (problem) => this.#settle(problem),
      );
    if (this.#over) return;
    // What a reader throws is the answer's fault: the attempt fails, the daemon does not.
    try {
      this.#reader.head(status, headers);
    } catch (error) {
      this.#settle(failureOf(error));
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    this.#silentSince = performance.now();
    if (this.#decoder) this.#decoder.write(chunk);
    else this.#take(chunk);
  }

  onResponseEnd(): void {
    if (this.#linger) clearTimeout(this.#linger);
    if (this.#over) return;
    if (this.#decoder) this.#decoder.end(() => this.#settle(null));
    else this.#settle(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle(failureOf(error));
  }

  pause(): void {
    if (this.#over || this.#paused) return;
    this.#paused = true;
    this.#controller?.pause();
    this.#deadline?.clear();
  }

  resume(): void {
    if (this.#over || !this.#paused) return;
    this.#paused = false;
    this.#wait(0);
    this.#controller?.resume();
  }

  finish(): void {
    if (this.#over) return;
    this.#stop();
    if (this.#paused) this.#controller?.resume();
    this.#linger = setTimeout(() => this.#controller?.abort(new Error("finished")), LINGER_MS);
    this.#linger.unref();
  }

  #take(chunk: Buffer): void {
    if (this.#over) return;
    this.#received += chunk.length;
    if (this.#received > this.#options.maxBytes) {
      this.#settle(failure("protocol", `The provider's answer is larger than ${this.#options.maxBytes} bytes.`));
      return;
    }
    try {
      this.#reader.data(chunk);
    } catch (error) {
      this.#settle(failureOf(error));
    }
  }

  #settle(problem: Failure | null): void {
    if (this.#over) return;
    this.#stop();
    if (problem) {
      this.#controller?.abort(new Error(problem.kind));
      this.#reader.fail(problem);
      return;
    }
    try {
      this.#reader.end();
    } catch (error) {
      this.#reader.fail(failureOf(error));
    }
  }

  /** For the rest of the time, of which the silence has taken so many milliseconds. */
  #wait(silentMs: number): void {
    this.#silentSince = performance.now() - silentMs;
    this.#deadline = new Deadline(this.#silentSince + this.#options.timeoutMs, this.#late);
  }

  #stop(): void {
    this.#over = true;
    this.#deadline?.clear();
    this.#options.signal.removeEventListener("abort", this.#aborted);
    this.#decoder?.close();
  }
}

const kinds: Readonly<Record<string, FailureKind>> = {
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  ETIMEDOUT: "timeout",
  UND_ERR_HEADERS_OVERFLOW: "protocol",
};

/** Before there was a connection: it is down, or its address is another one. */
const UNREACHED = /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOST\w+|ENET\w+)$/;

/** Errors of sockets, of undici, of the egress guard, and UpstreamErrors. Their own words stay out: they may name addresses. */
export function failureOf(error: unknown): Failure {
  const known = error as { failure?: Failure; code?: string; cause?: unknown };
  if (known.failure) return known.failure;
  if (isMagicError(error)) return failure(error.code === "egress_blocked" ? "egress" : "reset", error.message);
  if (isMagicError(known.cause)) return failureOf(known.cause);
  const code = typeof known.code === "string" ? known.code : "";
  if (code.startsWith("HPE_")) return failure("protocol", "The provider's answer is not HTTP.");
  const kind = kinds[code] ?? "reset";
  const said = code || (error instanceof Error ? error.name : "error");
  const broken = UNREACHED.test(code) ? "cannot be reached" : "broke the connection off";
  const what = kind === "timeout" ? "did not accept the connection in time" : broken;
  return failure(kind, `The provider ${what} (${said}).`);
}
