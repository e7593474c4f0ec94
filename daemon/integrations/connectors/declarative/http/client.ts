// One HTTP exchange for declarative connectors: over the egress dispatcher, with time-outs, a body cap, and the rewrite that tests use.
import type { Dispatcher } from "undici";
import { MagicError } from "#contract/errors.ts";
import { becomesGet, isRedirect, readLocation, sameServer } from "#contract/redirect.ts";
import { parseAddress } from "./address.ts";
import { contentDecoded } from "./content-encoding.ts";
import { exchange } from "./exchange.ts";

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** For the whole answer, in place of the client's own. */
  readonly timeoutMs?: number;
}

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly url: string;
}

export interface HttpClient {
  /** Whether the second URL is at the server of the first: what was made for one may then go to the other. */
  sameServer(from: URL, to: URL): boolean;
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>;
}

export interface HttpClientOptions {
  readonly dispatcher: Dispatcher;
  /** The whole answer, time-out and size. */
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly rewrite?: (url: URL) => { readonly origin: string; readonly host: string } | undefined;
}

const MAX_REDIRECTS = 10;

/** Throws upstream_timeout, upstream_error, egress_blocked (from the dispatcher), or what the signal aborts with. */
export function createHttpClient({
  dispatcher,
  timeoutMs: ownTimeoutMs = 120_000,
  maxBytes = 256 * 1024 * 1024,
  rewrite,
}: HttpClientOptions): HttpClient {
  const once = async (request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> => {
    const url = parseUrl(request.url);
    const timeoutMs = request.timeoutMs ?? ownTimeoutMs;
    const target = rewrite?.(url);
    const headers: Record<string, string> = { "user-agent": "magic/0.1", accept: "*/*", ...request.headers };
    if (target) headers["host"] = target.host;
    const outgoing = {
      origin: target?.origin ?? url.origin,
      path: url.pathname + url.search,
      method: request.method as Dispatcher.HttpMethod,
      headers,
      body: request.body ?? null,
    };
    try {
      const answer = await exchange(dispatcher, outgoing, signal, {
        timeoutMs,
        maxBytes,
        timedOut: () =>
          new MagicError(
            "upstream_timeout",
            `${request.method} ${place(url)} did not answer within ${timeoutMs / 1000} s`,
          ),
        tooLarge: () =>
          new MagicError("upstream_error", `the answer of ${place(url)} is larger than ${maxBytes} bytes`),
      });
      const received = flatten(answer.headers);
      const body = opened(answer.body, received["content-encoding"], url, maxBytes);
      return { status: answer.status, headers: received, body, url: url.href };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof MagicError) throw error;
      const cause = error as Error & { code?: string; cause?: Error };
      if (cause.cause instanceof MagicError) throw cause.cause;
      // Such as a key with a character that no header may have: nothing was sent, and another try would not be either.
      if (cause.code === "UND_ERR_INVALID_ARG")
        throw new MagicError(
          "validation_failed",
          `${request.method} ${place(url)} cannot be sent: ${cause.message}; check the manifest and the configuration`,
        );
      throw new MagicError(
        "upstream_error",
        `${request.method} ${place(url)}: ${cause.code ?? ""} ${cause.message}`.replace(/\s+/g, " "),
        { cause: error },
      );
    }
  };
  return {
    // A vendor that stands in for another one names its next page by the address that it has itself.
    sameServer: (from, to) => sameServer(from, to) || rewrite?.(from)?.origin === to.origin,
    async send(request, signal) {
      let current = request;
      for (let hop = 0; ; hop++) {
        const response = await once(current, signal);
        const location = response.headers["location"];
        if (!isRedirect(response.status) || !location) return response;
        if (hop >= MAX_REDIRECTS)
          throw new MagicError(
            "upstream_error",
            `${place(parseUrl(request.url))} redirects more than ${MAX_REDIRECTS} times`,
          );
        current = redirected(current, response.status, readLocation(location));
      }
    },
  };
}

// A compressed answer must not unfold without bound.
function opened(body: Buffer, encoding: string | undefined, url: URL, maxBytes: number): Buffer {
  try {
    return contentDecoded(body, encoding, maxBytes);
  } catch (error) {
    throw new MagicError(
      "upstream_error",
      `the ${encoding} answer of ${place(url)} cannot be read: ${(error as Error).message}`,
    );
  }
}

function redirected(request: HttpRequest, status: number, location: string): HttpRequest {
  const from = parseUrl(request.url);
  if (!URL.canParse(location, from))
    throw new MagicError("upstream_error", `${place(from)} redirects to '${location.slice(0, 200)}', which is no URL`);
  const to = new URL(location, from);
  const next = becomesGet(status, request.method) ? asGet(request) : request;
  return sameServer(from, to) ? { ...next, url: to.href } : forStranger({ ...next, url: to.href }, from);
}

function asGet({ body: _, headers, ...rest }: HttpRequest): HttpRequest {
  const kept = Object.entries(headers).filter(([name]) => !/^content-/i.test(name));
  return { ...rest, method: "GET", headers: Object.fromEntries(kept) };
}

/**
 * The request as a server may see it that it was not made for: without what may be a credential, which any header of a manifest's may be.
 *
 * @throws MagicError `upstream_error` where it has a body: any part of it may be one as well.
 */
export function forStranger(request: HttpRequest, from: URL): HttpRequest {
  if (request.body !== undefined)
    throw new MagicError(
      "upstream_error",
      `${place(from)} leads to ${new URL(request.url).origin}: what is sent to one server is not sent to another one`,
    );
  const headers = Object.entries(request.headers).filter(([name]) => /^(accept|user-agent)/i.test(name));
  return { ...request, headers: Object.fromEntries(headers) };
}

function parseUrl(text: string): URL {
  const url = parseAddress(text);
  if (!url)
    throw new MagicError(
      "validation_failed",
      `'${text.slice(0, 200)}' is not a URL: check url_base, path and the configuration`,
    );
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new MagicError("egress_blocked", `${url.protocol} URLs are not read: only http and https`);
  return url;
}

// Query strings hold keys: an error names the place without them.
const place = (url: URL): string => url.origin + url.pathname;

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : value;
  return flat;
}
