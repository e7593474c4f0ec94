// One call of the API: retried where that is safe, every POST under an Idempotency-Key so that it is.
import { setTimeout as sleep } from "node:timers/promises";
import { list } from "#contract/json-object.ts";
import { backoff, jittered } from "#shared/backoff.ts";

export interface ClientOptions {
  /** The daemon's origin: `base_url` of `magic daemon start --json`, without /v1. */
  readonly baseUrl: string;
  /** `sk_test_...` for the sandbox, `sk_live_...` for live. */
  readonly apiKey: string | undefined;
  /** How often a call is tried again after the first time. Default 3. */
  readonly maxRetries?: number;
  /** Milliseconds for one attempt. Default 30 s. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the API refused, or why it could not be reached (`status` 0, `code` "connection_failed"). */
export class MagicApiError extends Error {
  readonly status: number;
  /** A code of the error catalogue, such as `limit_reached`. */
  readonly code: string;
  readonly requestId: string | null;
  readonly retryable: boolean;
  /** One entry for every wrong field of the request. */
  readonly errors: readonly { readonly pointer: string; readonly code: string; readonly detail: string }[];

  constructor(status: number, problem: Readonly<Record<string, unknown>>, options?: ErrorOptions) {
    super(String(problem["detail"] ?? problem["title"] ?? `the API answered ${status}`), options);
    this.name = "MagicApiError";
    this.status = status;
    this.code = String(problem["code"] ?? "unknown");
    this.requestId = typeof problem["request_id"] === "string" ? problem["request_id"] : null;
    this.retryable = problem["retryable"] === true;
    this.errors = list(problem["errors"]);
  }
}

export type Call = <T>(method: string, path: string, options?: CallOptions) => Promise<T>;

/** Calls with the options' origin and key. What it gives throws MagicApiError; it throws a TypeError where there is no key. */
export function createTransport({
  baseUrl,
  apiKey,
  maxRetries = 3,
  timeoutMs = 30_000,
  fetch: fetcher = fetch,
}: ClientOptions): Call {
  if (!apiKey) throw new TypeError("createClient: apiKey is missing");
  return async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const url = new URL(path, baseUrl);
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    const body = method === "POST" || options.body !== undefined ? JSON.stringify(options.body ?? {}) : undefined;
    const headers: Record<string, string> = { authorization: `Bearer ${apiKey}`, accept: "application/json" };
    if (body !== undefined) headers["content-type"] = "application/json";
    // The same key for every attempt: the API answers a repeated one with the first outcome.
    if (method === "POST") headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID();
    const { signal } = options;
    for (let attempt = 0; ; attempt++) {
      const outcome = await send(url, { method, headers, ...(body === undefined ? {} : { body }) }, signal);
      if (outcome.error === undefined) return outcome.document as T;
      // The attempt before it may have removed it, its answer lost.
      if (method === "DELETE" && attempt > 0 && outcome.error.status === 404) return undefined as T;
      if (!outcome.again || attempt >= maxRetries) throw outcome.error;
      const pause = outcome.retryAfterMs ?? jittered(backoff(attempt, 250, 8000));
      await waited(pause, signal);
    }
  };

  async function send(url: URL, init: RequestInit, signal: AbortSignal | undefined): Promise<Outcome> {
    const timeout = AbortSignal.timeout(timeoutMs);
    let answer: Response;
    let text: string;
    try {
      answer = await fetcher(url, {
        ...init,
        redirect: "error",
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      text = await answer.text();
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      const detail = `${url.origin} cannot be reached`;
      return {
        again: true,
        error: new MagicApiError(0, { code: "connection_failed", detail, retryable: true }, { cause }),
      };
    }
    const document = parse(text);
    if (answer.ok && (text === "" || document !== undefined)) return { document };
    if (answer.ok) {
      const detail = `${url.origin} answered something that is not of this API`;
      return { error: new MagicApiError(answer.status, { detail }) };
    }
    const problem = typeof document === "object" && document !== null ? document : { detail: text.slice(0, 200) };
    const error = new MagicApiError(answer.status, problem as Record<string, unknown>);
    const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN);
    // A conflict is only worth waiting for while the same key is still being worked on.
    const again = [429, 502, 503, 504].includes(answer.status) || error.code === "idempotency_in_progress";
    return { again, error, ...(Number.isFinite(seconds) ? { retryAfterMs: Math.min(60, seconds) * 1000 } : {}) };
  }
}

interface Outcome {
  readonly document?: unknown;
  readonly error?: MagicApiError;
  readonly again?: boolean;
  readonly retryAfterMs?: number;
}

/** Throws the signal's reason as soon as it aborts. */
export async function waited(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
}

function parse(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
