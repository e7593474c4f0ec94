// http:egress: a request of the cell, sent by the daemon through the egress guard. Host, port, scheme and method must be declared, at every
// hop of a redirect anew; bodies stream both ways within byte caps.
import type { Dispatcher } from "undici";
import { MagicError } from "#contract/errors.ts";
import { isRedirect } from "#contract/redirect.ts";
import { MAX_REDIRECTS } from "#contract/runtime-limits.ts";
import type { Span } from "#daemon/telemetry/trace.ts";
import { textOf } from "../arguments.ts";
import type { Operation } from "../session.ts";
import { answerOf, headerOf } from "./answer.ts";
import { openOutgoing } from "./body.ts";
import { explained } from "./failure.ts";
import { followed, headersOf, methodOf, type Outgoing, parseUrl } from "./outgoing.ts";

export const httpFetch: Operation = async (session, args, body, signal, span) => {
  const method = methodOf(textOf(args, "method", 20));
  const url = parseUrl(textOf(args, "url", 16 * 1024));
  session.grants.need({ capability: "http:egress", url, method });
  const { egress } = session.ports;
  if (!egress) throw new MagicError("upstream_error", "this daemon has no egress");
  const whole = AbortSignal.any([signal, session.caller.signal]);
  const redirect = args["redirect"];
  let request: Outgoing = {
    ...{ url, method, headers: headersOf(args) },
    body: body && (await openOutgoing(session, body, { whole: args["whole"] === true, length: args["length"] })),
  };
  for (let hop = 0; ; hop++) {
    session.grants.need({ capability: "http:egress", url: request.url, method: request.method });
    session.usage.http_requests++;
    const response = await send(egress.dispatcher, request, span, whole);
    const location = headerOf(response, "location");
    if (!isRedirect(response.statusCode) || location === undefined || redirect === "manual")
      return answerOf(session, request, response, hop > 0, whole);
    response.body.destroy();
    if (redirect === "error") throw new MagicError("upstream_error", `${request.url.host} redirects`);
    if (hop === MAX_REDIRECTS) throw new MagicError("upstream_error", `more than ${MAX_REDIRECTS} redirects`);
    request = followed(request, response.statusCode, location);
  }
};

async function send(
  dispatcher: Dispatcher,
  { url, method, headers, body }: Outgoing,
  span: Span,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  try {
    const response = await dispatcher.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: method as Dispatcher.HttpMethod,
      headers: flatHeaders(headers, body?.length ?? null, span),
      body: body ? (body.take() as never) : null,
      signal,
    });
    // A body that is given up emits an error that nobody reads; unheard, it would end the daemon.
    response.body.on("error", () => {});
    return response;
  } catch (error) {
    throw explained(error, url);
  }
}

/** The handler's headers, and those that servers expect of every client where it set none. */
function flatHeaders(headers: readonly (readonly [string, string])[], length: number | null, span: Span): string[] {
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const flat = headers.flat();
  const add = (name: string, value: string): void => {
    if (!given.has(name)) flat.push(name, value);
  };
  add("accept", "*/*");
  add("accept-encoding", "identity");
  add("user-agent", "magic");
  add("traceparent", span.traceparent);
  if (length !== null) flat.push("content-length", String(length));
  return flat;
}
