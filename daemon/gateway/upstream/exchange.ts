// One HTTP request to a provider over an undici dispatcher (never fetch: it costs several times the CPU): one time limit for the headers
// and for every silence after them, abort within a turn of the loop, answers decoded and capped. Knows nothing of formats.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { isMagicError } from "#contract/errors.ts";
import { type Failure, type FailureKind, failure } from "#daemon/gateway/providers/failure.ts";
import type { AbortNotice } from "#shared/abort.ts";
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
  let controller: Dispatcher.DispatchController | null = null;
  let decoder: BodyDecoder | null = null;
  let over = false;
  let paused = false;
  let received = 0;
  let linger: NodeJS.Timeout | null = null;
  let timer: NodeJS.Timeout | null = setTimeout(late, options.timeoutMs);

  function late(): void {
    settle(failure("timeout", `The provider was silent for ${options.timeoutMs} ms.`));
  }

  function settle(problem: Failure | null): void {
    if (over) return;
    stop();
    if (problem) {
      controller?.abort(new Error(problem.kind));
      reader.fail(problem);
      return;
    }
    // What a reader throws is the answer's fault: the attempt fails, the daemon does not.
    try {
      reader.end();
    } catch (error) {
      reader.fail(failureOf(error));
    }
  }

  function stop(): void {
    over = true;
    if (timer) clearTimeout(timer);
    timer = null;
    options.signal.removeEventListener("abort", aborted);
    decoder?.close();
  }

  function told(tell: () => void): void {
    if (over) return;
    try {
      tell();
    } catch (error) {
      settle(failureOf(error));
    }
  }

  function aborted(): void {
    settle(failure("aborted", "The client left."));
  }

  function take(chunk: Buffer): void {
    received += chunk.length;
    if (received > options.maxBytes) {
      settle(failure("protocol", `The provider's answer is larger than ${options.maxBytes} bytes.`));
    } else told(() => reader.data(chunk));
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started;
      if (over) started.abort(new Error("over"));
      else reader.sent?.();
    },
    onResponseStart(_controller, status, headers) {
      if (over || status < 200) return;
      timer?.refresh();
      decoder = bodyDecoder(headers["content-encoding"], take, settle);
      told(() => reader.head(status, headers));
    },
    onResponseData(_controller, chunk) {
      if (over) return;
      if (!paused) timer?.refresh();
      if (decoder) decoder.write(chunk);
      else take(chunk);
    },
    onResponseEnd() {
      if (linger) clearTimeout(linger);
      if (over) return;
      if (decoder) decoder.end(() => settle(null));
      else settle(null);
    },
    onResponseError(_controller, error) {
      settle(failureOf(error));
    },
  };

  options.signal.addEventListener("abort", aborted, { once: true });
  if (options.signal.aborted) aborted();
  else {
    try {
      const { origin, path, method, headers, body } = request;
      dispatcher.dispatch({ origin, path, method, headers, body, headersTimeout: 0, bodyTimeout: 0 }, handler);
    } catch (error) {
      settle(failureOf(error));
    }
  }

  return {
    pause() {
      if (over || paused) return;
      paused = true;
      controller?.pause();
      if (timer) clearTimeout(timer);
    },
    resume() {
      if (over || !paused) return;
      paused = false;
      timer = setTimeout(late, options.timeoutMs);
      controller?.resume();
    },
    finish() {
      if (over) return;
      stop();
      if (paused) controller?.resume();
      linger = setTimeout(() => controller?.abort(new Error("finished")), LINGER_MS);
      linger.unref();
    },
  };
}

const kinds: Readonly<Record<string, FailureKind>> = {
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  ETIMEDOUT: "timeout",
  UND_ERR_HEADERS_OVERFLOW: "protocol",
};

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
  const what = kind === "timeout" ? "did not accept the connection in time" : "broke the connection off";
  return failure(kind, `The provider ${what} (${said}).`);
}
