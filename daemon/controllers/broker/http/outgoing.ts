// What is sent: address, method and headers as the handler gave them, checked; and what becomes of them at a redirect.
import { MagicError } from "#contract/errors.ts";
import { becomesGet, readLocation, sameServer } from "#contract/redirect.ts";
import { listOf } from "../arguments.ts";
import type { OutgoingBody } from "./body.ts";

export interface Outgoing {
  readonly url: URL;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: OutgoingBody | null;
}

/** Headers about the connection: undici's, not the handler's. */
export const HOP = /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect)$/;
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** https://www.rfc-editor.org/rfc/rfc9110#section-5.5 */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (!url) throw new MagicError("invalid_request", "the address is not a URL");
  return plain(url);
}

function plain(url: URL): URL {
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new MagicError("egress_blocked", `${url.protocol} addresses are not reachable: http and https only`);
  if (url.username !== "" || url.password !== "")
    throw new MagicError("egress_blocked", "the address holds a user name: send credentials in a header");
  url.hash = "";
  return url;
}

export function methodOf(method: string): string {
  const upper = method.toUpperCase();
  if (!TOKEN.test(upper) || upper === "CONNECT" || upper === "TRACE")
    throw new MagicError("invalid_request", `the method ${method} cannot be sent`);
  return upper;
}

export function headersOf(args: Record<string, unknown>): (readonly [string, string])[] {
  const headers: (readonly [string, string])[] = [];
  for (const entry of listOf(args, "headers", 200)) {
    const [name, value] = Array.isArray(entry) ? entry : [];
    if (typeof name !== "string" || typeof value !== "string" || !TOKEN.test(name) || !VALUE.test(value))
      throw new MagicError("invalid_request", "a header is not valid");
    if (!HOP.test(name.toLowerCase())) headers.push([name, value]);
  }
  return headers;
}

/** https://fetch.spec.whatwg.org/#http-redirect-fetch: a new origin does not see credentials, a GET carries no body. */
export function followed(request: Outgoing, status: number, location: string): Outgoing {
  const parsed = URL.parse(readLocation(location), request.url.href);
  if (!parsed) throw new MagicError("upstream_error", `${request.url.host} redirects to what is not a URL`);
  const url = plain(parsed);
  let { headers } = request;
  if (!sameServer(request.url, url))
    headers = headers.filter(([name]) => !/^(authorization|cookie|proxy-authorization)$/i.test(name));
  if (becomesGet(status, request.method))
    return { url, method: "GET", headers: headers.filter(([name]) => !/^content-/i.test(name)), body: null };
  if (request.body && !request.body.replayable)
    throw new MagicError("upstream_error", "a streamed body cannot be sent again after a redirect");
  return { ...request, url, headers };
}
