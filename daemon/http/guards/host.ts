// No web page may drive the daemon: a request must name it by an address of its own (against DNS rebinding) and must not come
// from a page of another origin. Also here: exactly one Host header and one credential, since two are how proxies and servers are set at odds.
import type { IncomingMessage } from "node:http";
import { hostname } from "node:os";
import { MagicError } from "#contract/errors.ts";
import { isLoopback } from "#shared/loopback.ts";

export interface HostGuardOptions {
  /** The address that the daemon listens on, and names by which it may be called besides; `*.example.com` is one label more. */
  readonly host: string;
  readonly names?: readonly string[] | undefined;
  /** Another one, which may change. */
  readonly publicHost?: (() => string | undefined) | undefined;
}

/** Throws for a request that must not pass. */
export type HostGuard = (request: IncomingMessage) => void;

export function createHostGuard(options: HostGuardOptions): HostGuard {
  const allowed = new Set([
    "localhost",
    options.host.toLowerCase(),
    ...(options.names ?? []).map((name) => name.toLowerCase()),
  ]);
  if (!isLoopback(options.host)) allowed.add(hostname().toLowerCase());
  for (const wildcard of ["0.0.0.0", "::"]) allowed.delete(wildcard);
  const isOwn = (name: string): boolean =>
    allowed.has(name) ||
    allowed.has(`*${name.slice(Math.max(0, name.indexOf(".")))}`) ||
    name === options.publicHost?.();
  return (request) => {
    checkHost(request, isOwn);
    checkOrigin(request);
  };
}

function checkHost(request: IncomingMessage, isOwn: (name: string) => boolean): void {
  refuseDoubled(request.rawHeaders);
  const target = request.url ?? "/";
  checkName(request.headers.host ?? "", request, isOwn);
  // A target in absolute form overrides Host (RFC 9112, section 3.2.2): both must be this daemon's.
  if (!target.startsWith("/") && target !== "*") checkName(URL.parse(target)?.host ?? "", request, isOwn);
}

// Node takes the first of several; a proxy before it may have judged by another one.
function refuseDoubled(raw: readonly string[]): void {
  let hosts = 0;
  let credentials = 0;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    if (name.length === 4 && (name === "Host" || name.toLowerCase() === "host")) hosts++;
    else if (name.length === 13 && name.toLowerCase() === "authorization") credentials++;
  }
  if (hosts > 1) throw new MagicError("invalid_request", "The request has more than one Host header.");
  if (credentials > 1) throw new MagicError("invalid_request", "The request has more than one Authorization header.");
}

function checkName(host: string, request: IncomingMessage, isOwn: (name: string) => boolean): void {
  const name = hostOf(host);
  if (name === undefined) throw new MagicError("invalid_request", "The Host header is missing or malformed.");
  // The port is not compared: a forwarded port is another one, and a page cannot choose the name that it was loaded from.
  if (isLoopback(name) || name === addressOf(request) || isOwn(name)) return;
  throw new MagicError("forbidden_origin", `The Host ${JSON.stringify(name.slice(0, 200))} is not this daemon's.`);
}

function checkOrigin(request: IncomingMessage): void {
  const origin = request.headers.origin;
  if (origin === undefined) return;
  const own = `//${request.headers.host?.toLowerCase()}`;
  const scheme = origin.indexOf("//");
  if (/^https?:$/.test(origin.slice(0, scheme)) && origin.slice(scheme).toLowerCase() === own) return;
  throw new MagicError("forbidden_origin", `The Origin ${JSON.stringify(origin.slice(0, 200))} is not this daemon's.`);
}

/** Nearly all requests name the daemon as the one before them did. */
let lastHost: { readonly header: string; readonly name: string | undefined } = { header: "", name: undefined };

// "[::1]:4141" -> "::1", "LOCALHOST:80" -> "localhost"; undefined for what is no host[:port].
function hostOf(header: string): string | undefined {
  if (header === lastHost.header) return lastHost.name;
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(header);
  const name = (match?.[1] ?? match?.[2])?.toLowerCase();
  lastHost = { header, name };
  return name;
}

function addressOf(request: IncomingMessage): string | undefined {
  const address = request.socket.localAddress?.toLowerCase();
  return address?.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
