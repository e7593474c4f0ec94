// The addresses of requests: bases, paths below them, and whole URLs that came with the data.
import { MagicError } from "#contract/errors.ts";

// A whole one: of `https://{{ stream_partition.shop }}.example.com` nothing is left that could be compared.
export const hasHost = (text: string): boolean => /^[^.-]+(?:\.[^.]+)*$/.test(URL.parse(text)?.hostname ?? "");

export const isAtSame = (a: string, b: string): boolean =>
  URL.canParse(a) && URL.parse(a)?.origin === URL.parse(b)?.origin;

export const isWhole = (path: unknown): boolean => typeof path === "string" && /^\s*https?:\/\//i.test(path);

/**
 * The URL, or null: it is none. The standard reads `https:///rest` as one of the host `rest`, and `.acme.test` as a name: what an empty setting
 * leaves of `https://{{ config.domain }}/rest` would go to who is not meant.
 */
export function parseAddress(text: string): URL | null {
  const url = URL.parse(text);
  const named = !url?.protocol.startsWith("http") || /^\s*https?:\/\/(?:[^/\\?#@]*@)?[^/\\?#.]/i.test(text);
  return named ? url : null;
}

// Servers behind a proxy take their own scheme for http: what was begun over TLS goes on over it.
export function atServerOf(named: string, target: string): string {
  const [from, to] = [URL.parse(named), URL.parse(target)];
  const plain = from?.protocol === "https:" && to?.protocol === "http:" && from.host === to.host;
  return plain ? target.replace(/^http:/i, "https:") : target;
}

// No path may have these (RFC 3986, section 3.3), ids do (`auth0|5`): the standard's reader leaves them, and takes a backslash for a slash.
const UNFIT = /[\\|[\]]/g;
const fit = (segments: string): string => segments.replace(UNFIT, encodeURIComponent);
// Before the first slash an encoded backslash would be part of the host, or of a user at another one.
const fitUrl = (url: string): string =>
  url.replace(/^(https?:\/\/[^/?#\\]*\/)([^?#]*)/i, (_all, server: string, path: string) => server + fit(path));

/** The base and a path below it; a whole URL as path stands for itself. */
export function joinUrl(base: string, path: string): string {
  if (/^https?:\/\//i.test(path)) {
    if (!parseAddress(path)) throw noUrl(path, "path, what the server says of the next page");
    return fitUrl(path);
  }
  if (!path) return fitUrl(base);
  if (!parseAddress(base)) throw noUrl(base, "url_base");
  if (!/^https?:/i.test(base))
    throw new MagicError("egress_blocked", `${base.slice(0, 20)}... is not read: only http and https URLs are`);
  const whole = fitUrl(base.endsWith("/") ? base : `${base}/`);
  // `?a=b` and `/rooted` follow RFC 3986; a colon in the first segment must not look like a scheme.
  const below = path.startsWith("?") || path.startsWith("/") ? path : `./${path}`;
  const relative = below.replace(/^[^?#]*/, fit);
  if (!URL.canParse(relative, whole)) throw noUrl(path, "path, what the server says of the next page");
  const url = new URL(relative, whole);
  // As the reference joins them: `groups//{{ id }}` has no empty segment.
  url.pathname = url.pathname.replace(/\/{2,}/g, "/");
  return url.href;
}

export function urlOf(text: string): URL {
  const url = parseAddress(text);
  if (!url) throw noUrl(text, "url_base");
  return url;
}

const noUrl = (text: string, where: string): MagicError =>
  new MagicError("validation_failed", `'${text.slice(0, 200)}' is not a URL: check ${where} and the configuration`);
