// Requests to a daemon, for commands: JSON in and out, and every refusal as a MagicError with the daemon's code and request id.
import { MagicError } from "#contract/errors.ts";
import { type Environment, headers as names } from "#contract/protocol.ts";
import { isLoopback } from "#shared/loopback.ts";
import { exchange, type Head, type Sent } from "./exchange.ts";
import { refusal, tryParse } from "./refusal.ts";

export interface ApiRequest {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

export interface ApiClient {
  /** The daemon's origin. */
  readonly url: string;
  readonly token: string | undefined;
  readonly environment: Environment;
  /** The answer's document (undefined for 204). Throws the daemon's refusal, or `daemon_unavailable`. */
  request<T = unknown>(method: Method, path: string, options?: ApiRequest): Promise<T>;
  /** The answer itself, once its status is a success: for streams and for headers. */
  send(method: Method, path: string, options?: ApiRequest): Promise<Response>;
}

export interface ApiClientOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly environment: Environment;
  /** --url or MAGIC_URL said it: no `magic daemon start` of this root makes it answer. */
  readonly named?: boolean;
  readonly fetch?: typeof fetch;
  /** Milliseconds without an answer after which the daemon's health is asked for; a daemon that does not give it is wedged. */
  readonly suspectAfterMs?: number;
}

/** @throws MagicError `tls_required` when a credential would cross the network in the clear. */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const { token, environment, fetch: fetcher = fetch, suspectAfterMs = 5_000 } = options;
  const origin = originOf(options.url);
  const unanswered = (error: unknown, signal: AbortSignal | undefined): unknown =>
    unreachable(
      error,
      origin.origin,
      signal,
      options.named ? { next: `${correctUrl}, or start the daemon there.` } : {},
    );
  if (token !== undefined && origin.protocol === "http:" && !isLoopback(origin.hostname))
    throw new MagicError("tls_required", `The key is not sent to ${origin.origin}: it is neither https nor loopback.`);
  if (token !== undefined && !/^[\x20-\x7e]{1,8000}$/.test(token))
    throw new MagicError(
      "invalid_key",
      "The key is not one of magic's: it is too long or has other characters than ASCII.",
    );

  const calling = async <T extends Head>(
    method: Method,
    path: string,
    request: ApiRequest,
    call: (url: URL, sent: Sent) => Promise<T>,
  ): Promise<T> => {
    const target = new URL(path, origin);
    for (const [name, value] of Object.entries(request.query ?? {}))
      if (value !== undefined) target.searchParams.set(name, String(value));
    const watch = watchForWedged(origin, suspectAfterMs, fetcher);
    const answer = await call(target, {
      method,
      headers: {
        accept: "application/json",
        [names.environment]: environment,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(request.body !== undefined && { "content-type": "application/json" }),
        ...request.headers,
      },
      body: request.body === undefined ? undefined : JSON.stringify(request.body),
      signal: request.signal ? AbortSignal.any([request.signal, watch.signal]) : watch.signal,
    })
      .catch((error: unknown) => {
        if (watch.signal.aborted) throw watch.signal.reason;
        throw unanswered(error, request.signal);
      })
      .finally(watch.end);
    if (isForeign(answer)) throw foreign(origin.origin);
    return answer;
  };

  const send = async (method: Method, path: string, request: ApiRequest = {}): Promise<Response> => {
    const answer = await calling(method, path, request, (url, { body = null, ...sent }) =>
      fetcher(url, { ...sent, body, redirect: "error" }),
    );
    if (answer.ok) return answer;
    throw refusal(answer, await answer.text().catch(() => ""));
  };

  // An answer that is read whole anyway, from this machine's daemon: without fetch.
  const brief = async (method: Method, path: string, request: ApiRequest = {}): Promise<string> => {
    const answer = await calling(method, path, request, exchange);
    if (answer.ok) return answer.body;
    throw refusal(answer, answer.body);
  };
  const lasting = async (method: Method, path: string, request?: ApiRequest): Promise<string> =>
    (await send(method, path, request)).text().catch((error: unknown) => {
      throw unanswered(error, request?.signal);
    });
  const document = origin.protocol === "http:" && options.fetch === undefined ? brief : lasting;

  return {
    url: origin.origin,
    token,
    environment,
    send,
    async request<T>(method: Method, path: string, request?: ApiRequest) {
      const text = await document(method, path, request);
      return (text === "" ? undefined : parse(text)) as T;
    },
  };
}

/** What a proxy may say of itself: it is told by its status. */
const proxys = [401, 403, 413, 429, 502, 503, 504];

/** Every answer of a daemon carries the request's id. */
export function isForeign({ status, headers }: Head): boolean {
  return !headers.has(names.requestId) && !proxys.includes(status);
}

const correctUrl = "Correct --url or MAGIC_URL (`magic config get url --show-origin` says where it comes from)";

/** A web page, say, another program's API, or a proxy that says something else or keeps the id to itself. */
export function foreign(origin: string): MagicError {
  const detail = `What answers at ${origin} is not a magic daemon.`;
  const next = `${correctUrl}, or the proxy there: it has to pass X-Request-Id on.`;
  return new MagicError("daemon_unavailable", detail, { extra: { reason: "foreign", next } });
}

/** A page of a list. Throws `daemon_unavailable` for an answer that is none: another program's API may know request ids, too. */
export async function requestPage<P extends { readonly data: readonly unknown[] }>(
  client: ApiClient,
  path: string,
  options?: ApiRequest,
): Promise<P> {
  const page = await client.request<P | null | undefined>("GET", path, options);
  if (!Array.isArray(page?.data)) throw foreign(client.url);
  return page;
}

// A long answer is no reason to give up, a daemon that does nothing at all is: so its health is asked for now and then.
function watchForWedged(origin: URL, afterMs: number, fetcher: typeof fetch): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout;
  let ended = false;
  const look = async () => {
    const asked = fetcher(new URL("/health", origin), { signal: AbortSignal.timeout(afterMs) });
    const alive = await asked.then(
      (answer) => answer.body?.cancel().then(() => true),
      () => false,
    );
    if (ended) return;
    if (alive) timer = setTimeout(look, 2 * afterMs).unref();
    else controller.abort(wedged(origin.origin));
  };
  timer = setTimeout(look, afterMs).unref();
  const end = () => {
    ended = true;
    clearTimeout(timer);
  };
  return { signal: controller.signal, end };
}

/** A daemon that takes connections and does nothing. */
export function wedged(origin: string): MagicError {
  return new MagicError("daemon_unavailable", `The daemon at ${origin} does not answer, not even for its health.`, {
    extra: { reason: "wedged", next: "Try again; where that does not help, `magic daemon restart` ends it." },
  });
}

function originOf(url: string): URL {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new MagicError(
      "usage",
      `${JSON.stringify(url)} is not the URL of a daemon, such as https://magic.example.com.`,
    );
  return parsed;
}

function unreachable(
  error: unknown,
  origin: string,
  signal: AbortSignal | undefined,
  extra: { next?: string },
): unknown {
  if (signal?.aborted) return signal.reason instanceof MagicError ? signal.reason : new MagicError("interrupted");
  const { code, cause } = error as { code?: string; cause?: { code?: string; message?: string } };
  const why = cause?.code ?? cause?.message ?? code ?? (error instanceof Error ? error.message : String(error));
  return new MagicError("daemon_unavailable", `There is no answer from ${origin} (${why}).`, { cause: error, extra });
}

function parse(text: string): unknown {
  const document = tryParse(text);
  if (document === undefined) throw new MagicError("daemon_unavailable", "The daemon's answer is not valid JSON.");
  return document;
}
