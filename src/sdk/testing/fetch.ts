// request.fetch: hosts and methods as the contract has them, at every hop of a redirect; the answers are the test's.
import { MAX_REDIRECTS } from "#contract/runtime-limits.ts";
import { HandlerError } from "#sdk/errors.ts";
import type { TestContract } from "./contract.ts";

export type FetchFake = (request: Request) => Response | Promise<Response>;

/** Before a test's is put in its place. */
const { fetch: own } = globalThis;
const REDIRECTS = [301, 302, 303, 307, 308];

export function fakeFetch(contract: TestContract, fake: FetchFake | undefined): typeof globalThis.fetch {
  return async (target, init) => {
    const address = target instanceof Request ? target.url : String(target);
    if (/^(data|blob):/i.test(address)) return await own(target, init);
    let request = new Request(target, init?.body ? ({ duplex: "half", ...init } as RequestInit) : init);
    // Kept for a redirect that sends it again.
    const body = request.body ? await request.clone().arrayBuffer() : null;
    for (let hop = 0; ; hop++) {
      const { url, method, redirect } = request;
      contract.need({ capability: "http:egress", url: checked(url), method });
      if (!fake)
        throw new HandlerError("upstream_error", `${new URL(url).host} cannot be reached: no network in tests`);
      request.signal.throwIfAborted();
      const response = await fake(request);
      const location = response.headers.get("location");
      if (!REDIRECTS.includes(response.status) || location === null || redirect === "manual")
        return described(response, url, hop > 0);
      if (redirect === "error") throw new HandlerError("upstream_error", `${new URL(url).host} redirects`);
      if (hop === MAX_REDIRECTS) throw new HandlerError("upstream_error", `more than ${MAX_REDIRECTS} redirects`);
      request = followed(request, body, response.status, location);
    }
  };
}

function checked(text: string): URL {
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new HandlerError("egress_blocked", `${url.protocol} addresses are not reachable: http and https only`);
  if (url.username !== "" || url.password !== "")
    throw new HandlerError("egress_blocked", "the address holds a user name: send credentials in a header");
  return url;
}

/** https://fetch.spec.whatwg.org/#http-redirect-fetch */
function followed(request: Request, body: ArrayBuffer | null, status: number, location: string): Request {
  const url = URL.parse(location, request.url);
  if (!url) throw new HandlerError("upstream_error", `${new URL(request.url).host} redirects to what is not a URL`);
  checked(url.href);
  const headers = new Headers(request.headers);
  const { origin } = new URL(request.url);
  // The same host over TLS is the same server.
  if (url.origin !== origin && url.origin !== origin.replace(/^http:/, "https:"))
    for (const name of ["authorization", "cookie", "proxy-authorization"]) headers.delete(name);
  const toGet = status === 303 ? request.method !== "HEAD" : status < 303 && request.method === "POST";
  if (toGet) for (const name of [...headers.keys()]) if (name.startsWith("content-")) headers.delete(name);
  return new Request(url, {
    method: toGet ? "GET" : request.method,
    headers,
    body: toGet ? null : body,
    signal: request.signal,
    redirect: request.redirect,
  });
}

function described(response: Response, url: string, redirected: boolean): Response {
  Object.defineProperty(response, "url", { value: url.replace(/#.*$/, "") });
  Object.defineProperty(response, "redirected", { value: redirected });
  Object.defineProperty(response, "clone", {
    value: () => described(Response.prototype.clone.call(response), url, redirected),
  });
  return response;
}
