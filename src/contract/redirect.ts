// What a redirect means (RFC 9110, section 15.4; https://fetch.spec.whatwg.org/#http-redirect-fetch), for everything that follows one.

/** The statuses that name another place and that a client follows. */
export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/** Whether the next request is a GET without a body, and without the headers that speak of one. */
export function becomesGet(status: number, method: string): boolean {
  return status === 303 ? method !== "HEAD" : status < 303 && method === "POST";
}

/** Where to, as a browser reads it: its letters beyond ASCII are UTF-8, and headers come as one character a byte. */
export function readLocation(header: string): string {
  return /[\x80-\xff]/.test(header) ? Buffer.from(header, "latin1").toString() : header;
}

/** Whether what was meant for one server may go to the other: the same origin, or the same host over TLS. */
export function sameServer(from: URL, to: URL): boolean {
  return to.origin === from.origin || to.origin === from.origin.replace(/^http:/, "https:");
}
