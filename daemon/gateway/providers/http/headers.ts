// Headers that magic.yaml adds to a provider's requests.
import type { UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import type { Target } from "../adapter.ts";

/** The wire's own win. */
export function withHeaders(request: UpstreamRequest, { headers }: Target): UpstreamRequest {
  return headers ? { ...request, headers: { ...headers, ...request.headers } } : request;
}
