// http:egress: a request of the cell, sent by the daemon through the egress guard. Host, port, scheme and method must be declared, at every
// hop of a redirect anew; bodies stream both ways within byte caps.
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Dispatcher } from "undici";
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { BrokerAnswer } from "../cell/streams.ts";
import { listOf, textOf } from "./arguments.ts";
import type { HttpGrant } from "./grants.ts";
import { type Operation, refuse, type Session } from "./session.ts";

const MAX_REDIRECTS = 10;
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const MAX_INVOCATION_BYTES = 256 * 1024 * 1024;
/** Headers about the connection: undici's, not the handler's. */
const HOP = /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect)$/;
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

interface Outgoing {
  readonly url: URL;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: AsyncIterable<Uint8Array> | null;
}

export const httpFetch: Operation = async (session, args, body, signal) => {
  session.grants.need("http:egress");
  const { egress } = session.ports;
  if (!egress) throw new MagicError("upstream_error", "this daemon has no egress");
  const whole = AbortSignal.any([signal, session.caller.signal]);
  const redirect = args["redirect"];
  let request: Outgoing = {
    url: parseUrl(textOf(args, "url", 16 * 1024)),
    method: methodOf(textOf(args, "method", 20)),
    headers: headersOf(args),
    body,
  };
  for (let hop = 0; ; hop++) {
    checkGrant(session, request.url, request.method);
    session.usage.http_requests++;
    const response = await send(egress.dispatcher, request, session, whole);
    const location = headerOf(response, "location");
    if (!isRedirect(response.statusCode) || location === undefined || redirect === "manual")
      return answerOf(session, request.url, response, hop > 0, whole);
    response.body.destroy();
    if (redirect === "error") throw new MagicError("upstream_error", `${request.url.host} redirects`);
    if (hop === MAX_REDIRECTS) throw new MagicError("upstream_error", `more than ${MAX_REDIRECTS} redirects`);
    request = followed(request, response.statusCode, location);
  }
};

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (!url) throw new MagicError("invalid_request", "the address is not a URL");
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new MagicError("egress_blocked", `${url.protocol} addresses are not reachable: http and https only`);
  if (url.username !== "" || url.password !== "")
    throw new MagicError("egress_blocked", "the address holds a user name: send credentials in a header");
  return url;
}

function methodOf(method: string): string {
  const upper = method.toUpperCase();
  if (!TOKEN.test(upper) || upper === "CONNECT" || upper === "TRACE")
    throw new MagicError("invalid_request", `the method ${method} cannot be sent`);
  return upper;
}

function headersOf(args: Record<string, unknown>): (readonly [string, string])[] {
  const headers: (readonly [string, string])[] = [];
  for (const entry of listOf(args, "headers", 200)) {
    const [name, value] = Array.isArray(entry) ? entry : [];
    if (typeof name !== "string" || typeof value !== "string" || !TOKEN.test(name) || /[\r\n\0]/.test(value))
      throw new MagicError("invalid_request", "a header is not valid");
    if (!HOP.test(name.toLowerCase())) headers.push([name, value]);
  }
  return headers;
}

function checkGrant(session: Session, url: URL, method: string): void {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  const scheme = url.protocol.slice(0, -1);
  const host = plainHost(url.hostname);
  const hosts = session.grants.http.filter((grant) => plainHost(grant.host) === host);
  const places = hosts.filter((grant) => reaches(grant, scheme, port));
  if (places.some((grant) => !grant.methods || grant.methods.some((one) => one === method))) return;
  const line = `scopes: { http: [{ host: ${host}, port: ${port}${scheme === "http" ? ", scheme: http" : ""}, methods: [${method}] }] }`;
  throw refuse(session, line, `it may not send ${method} to ${scheme}://${host}:${port}`);
}

/** A grant without a scheme is https; with a port alone it is that port, whichever of the two is spoken there. */
function reaches(grant: HttpGrant, scheme: string, port: number): boolean {
  if (grant.scheme !== undefined && grant.scheme !== scheme) return false;
  if (grant.port !== undefined) return grant.port === port;
  return grant.scheme === "http" ? port === 80 : scheme === "https" && port === 443;
}

/** As URLs write it: lower case, IPv4 in four parts, no trailing dot, no brackets. */
function plainHost(host: string): string {
  const bracketed = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const normal = URL.parse(`http://${bracketed}`)?.hostname ?? host.toLowerCase();
  return normal.replace(/\.$/, "");
}

async function send(
  dispatcher: Dispatcher,
  { url, method, headers, body }: Outgoing,
  session: Session,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  try {
    const response = await dispatcher.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: method as Dispatcher.HttpMethod,
      headers: flatHeaders(headers, session),
      body: body ? (metered(session, body) as never) : null,
      signal,
    });
    // A body that is given up emits an error that nobody reads; unheard, it would end the daemon.
    response.body.on("error", () => {});
    return response;
  } catch (error) {
    throw explained(error, url);
  }
}

function flatHeaders(headers: readonly (readonly [string, string])[], session: Session): string[] {
  const flat = headers.flat();
  if (!headers.some(([name]) => name.toLowerCase() === "accept-encoding")) flat.push("accept-encoding", "identity");
  flat.push("traceparent", session.caller.span.traceparent);
  return flat;
}

/** The bytes, counted against the invocation's share. */
async function* metered(session: Session, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes) {
    session.usage.http_bytes += piece.length;
    if (session.usage.http_bytes > MAX_INVOCATION_BYTES)
      throw new MagicError("limit_exceeded", `more than ${MAX_INVOCATION_BYTES} bytes of http in one invocation`);
    yield piece;
  }
}

function answerOf(
  session: Session,
  url: URL,
  response: Dispatcher.ResponseData,
  redirected: boolean,
  signal: AbortSignal,
): BrokerAnswer {
  const headers: [string, string][] = [];
  const encoding = headerOf(response, "content-encoding")?.trim().toLowerCase();
  const decoder = decoderFor(encoding);
  decoder?.on("error", () => {});
  for (const [name, value] of Object.entries(response.headers)) {
    if (HOP.test(name) || (decoder && name === "content-encoding")) continue;
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) headers.push([name, one]);
  }
  const source = decoder ? response.body.on("error", (error) => decoder.destroy(error)).pipe(decoder) : response.body;
  signal.addEventListener("abort", () => response.body.destroy(), { once: true });
  return {
    value: { status: response.statusCode, statusText: response.statusText ?? "", headers, url: url.href, redirected },
    stream: capped(session, url, source as AsyncIterable<Uint8Array>),
  };
}

async function* capped(session: Session, url: URL, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const piece of metered(session, source)) {
      size += piece.length;
      if (size > MAX_RESPONSE_BYTES)
        throw new MagicError("limit_exceeded", `${url.host} answered with more than ${MAX_RESPONSE_BYTES} bytes`);
      for (let at = 0; at < piece.length; at += 64 * 1024) yield piece.subarray(at, at + 64 * 1024);
    }
  } catch (error) {
    throw explained(error, url);
  }
}

function decoderFor(encoding: string | undefined) {
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "br") return createBrotliDecompress();
  return encoding === "deflate" ? createInflate() : null;
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/** https://fetch.spec.whatwg.org/#http-redirect-fetch: a new origin does not see credentials, a GET carries no body. */
function followed(request: Outgoing, status: number, location: string): Outgoing {
  const url = parseUrl(location, request.url);
  let { headers } = request;
  if (url.origin !== request.url.origin)
    headers = headers.filter(([name]) => !/^(authorization|cookie|proxy-authorization)$/i.test(name));
  const toGet = status === 303 ? request.method !== "HEAD" : status < 303 && request.method === "POST";
  if (!toGet) {
    if (request.body) throw new MagicError("upstream_error", "a streamed body cannot be sent again after a redirect");
    return { ...request, url, headers };
  }
  return { url, method: "GET", headers: headers.filter(([name]) => !/^content-/i.test(name)), body: null };
}

function explained(error: unknown, url: URL): Error {
  if (isMagicError(error)) return error;
  const cause = (error as { cause?: unknown }).cause;
  if (isMagicError(cause)) return cause;
  const { code = "", message, name } = error as { code?: string; message: string; name: string };
  if (name === "AbortError") return new MagicError("client_closed", "the request was canceled");
  if (code.endsWith("_TIMEOUT") || code === "ETIMEDOUT")
    return new MagicError("upstream_timeout", `${url.host} did not answer in time`, { cause: error });
  return new MagicError("upstream_error", `${url.host} cannot be reached: ${code || message}`, { cause: error });
}
