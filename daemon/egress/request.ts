// One exchange over the guarded dispatcher: bounded in time and bytes, redirects left alone or followed hop by hop, each through
// the guard anew.
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { Dispatcher } from "undici";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { becomesGet, isRedirect, readLocation, sameServer } from "./redirect.ts";

export interface EgressRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | null;
  readonly signal?: AbortSignal | undefined;
  /** For the whole exchange, redirects included. */
  readonly timeoutMs?: number;
  /** The largest body accepted, also once decoded. */
  readonly maxBytes?: number;
  /** How many redirects to follow; 0 hands a 3xx to the caller. */
  readonly redirects?: number;
  /** Only status and headers count: whatever comes of the body, beyond the limits too, the answer stands; its body is empty. */
  readonly ignoreBody?: boolean;
}

export interface EgressResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Where the answer came from, after redirects. */
  readonly url: string;
}

const defaults = { timeoutMs: 30_000, maxBytes: 16 * 1024 * 1024, redirects: 0, ignoreBody: false };

export async function sendRequest(
  dispatcher: Dispatcher,
  target: string | URL,
  options: EgressRequest = {},
): Promise<EgressResponse> {
  const { timeoutMs, redirects, ...limits } = { ...defaults, ...options };
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  let url = checkedUrl(target);
  let request = { method: options.method ?? "GET", headers: { ...options.headers }, body: options.body ?? null };
  try {
    for (let hop = 0; ; hop++) {
      const answer = await exchange(dispatcher, url, request, signal, limits);
      const location = answer.headers["location"];
      if (!isRedirect(answer.status) || location === undefined || redirects === 0) return answer;
      if (hop === redirects)
        throw new MagicError("upstream_error", `${url.origin} redirects more than ${redirects} times`);
      const next = checkedUrl(URL.parse(readLocation(location), url) ?? location);
      request = afterRedirect(request, answer.status, url, next);
      url = next;
    }
  } catch (error) {
    throw explained(error, url, timeout, options.signal, timeoutMs);
  }
}

function checkedUrl(target: string | URL): URL {
  const url = typeof target === "string" ? URL.parse(target) : target;
  if (url === null) throw new MagicError("egress_blocked", "the address is not a URL");
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new MagicError("egress_blocked", `${url.protocol} addresses are not reachable: http and https only`);
  if (url.username !== "" || url.password !== "")
    throw new MagicError("egress_blocked", "the address holds a user name: send credentials in a header");
  return url;
}

interface Outgoing {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array | null;
}

async function exchange(
  dispatcher: Dispatcher,
  url: URL,
  { method, headers, body }: Outgoing,
  signal: AbortSignal,
  { maxBytes, ignoreBody }: { readonly maxBytes: number; readonly ignoreBody: boolean },
): Promise<EgressResponse> {
  const answer = await dispatcher.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: method as Dispatcher.HttpMethod,
    headers: { "accept-encoding": "identity", ...headers },
    body,
    signal,
  });
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  const head = { status: answer.statusCode, headers: flat, url: url.href };
  if (ignoreBody) {
    // Read away, for the connection to serve again; one that is too long or too slow is cut off with its connection.
    await answer.body.dump({ limit: maxBytes, signal }).catch(() => undefined);
    return { ...head, body: Buffer.alloc(0) };
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      answer.body.destroy();
      throw new MagicError("upstream_error", `${url.host} answered with more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return { ...head, body: await decode(Buffer.concat(chunks), flat["content-encoding"], maxBytes) };
}

// Some servers compress although identity was asked for. The cap holds for what comes out.
async function decode(body: Buffer, encoding: string | undefined, maxOutputLength: number): Promise<Buffer> {
  const name = encoding?.trim().toLowerCase();
  if (body.length === 0 || name === undefined || name === "" || name === "identity") return body;
  const decoder = { gzip: gunzip, "x-gzip": gunzip, deflate: inflate, br: brotliDecompress }[name];
  if (decoder === undefined) throw new MagicError("upstream_error", `the answer's encoding ${name} is not known`);
  try {
    return await promisify<Buffer, { maxOutputLength: number }, Buffer>(decoder)(body, { maxOutputLength });
  } catch (error) {
    throw new MagicError("upstream_error", "the compressed answer cannot be decoded within its limit", {
      cause: error,
    });
  }
}

// https://fetch.spec.whatwg.org/#http-redirect-fetch: what a new origin must not see is left behind.
function afterRedirect(request: Outgoing, status: number, from: URL, to: URL): Outgoing {
  const headers = { ...request.headers };
  const without = (names: readonly string[]): void => {
    for (const name of Object.keys(headers)) if (names.includes(name.toLowerCase())) delete headers[name];
  };
  if (!sameServer(from, to)) without(["authorization", "cookie", "proxy-authorization", "host"]);
  if (!becomesGet(status, request.method)) return { ...request, headers };
  without(["content-type", "content-length", "content-encoding"]);
  return { method: "GET", headers, body: null };
}

function explained(
  error: unknown,
  url: URL,
  timeout: AbortSignal,
  caller: AbortSignal | undefined,
  timeoutMs: number,
): Error {
  if (isMagicError(error)) return error as MagicError;
  if (caller?.aborted) return new MagicError("client_closed", "the caller left", { cause: error });
  const name = (error as { code?: string }).code ?? "";
  if (timeout.aborted || name.endsWith("_TIMEOUT") || name === "ETIMEDOUT")
    return new MagicError("upstream_timeout", `${url.host} did not answer within ${timeoutMs} ms`, { cause: error });
  return new MagicError("upstream_error", `${url.host} cannot be reached: ${name || (error as Error).message}`, {
    cause: error,
  });
}
