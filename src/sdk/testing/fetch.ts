// request.fetch: hosts and methods as the contract has them, at every hop of a redirect; the answers are the test's.
import { becomesGet, isRedirect, readLocation, sameServer } from "#contract/redirect.ts";
import { MAX_REDIRECTS } from "#contract/runtime-limits.ts";
import { HandlerError } from "#sdk/errors.ts";
import type { TestContract } from "./contract.ts";

export type FetchFake = (request: Request) => Response | Promise<Response>;

/** Before a test's is put in its place. */
const { fetch: own } = globalThis;

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
      if (!isRedirect(response.status) || location === null || redirect === "manual")
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
  const url = URL.parse(readLocation(location), request.url);
  if (!url) throw new HandlerError("upstream_error", `${new URL(request.url).host} redirects to what is not a URL`);
  checked(url.href);
  const headers = new Headers(request.headers);
  if (!sameServer(new URL(request.url), url))
    for (const name of ["authorization", "cookie", "proxy-authorization"]) headers.delete(name);
  const toGet = becomesGet(status, request.method);
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
