// One request as the manifest says: where it goes, what it carries, and what of it templates may see.
import { type Context, type Slice, sliceVariables, text, type Variables } from "../context.ts";
import { HeaderDict } from "../jinja/python.ts";
import { type Component, manifestError, optionalText } from "../manifest/component.ts";
import { atServerOf, hasHost, isAtSame, isWhole, joinUrl, urlOf } from "./address.ts";
import { questionOf } from "./answers.ts";
import type { Authenticator, Destination } from "./authenticator.ts";
import { forStranger, type HttpRequest } from "./client.ts";
import { emptyParts, formBody, merge, type RequestParts, withParams } from "./options.ts";
import { ownParts } from "./request-parts.ts";
import { mayKnow, tellStranger } from "./stranger.ts";

export interface Exchange {
  readonly slice: Slice;
  /** More for templates: next_page_token, creation_response... */
  readonly variables?: Variables;
  /** From paginator, partition and cursor. */
  readonly parts?: RequestParts;
  /** A path or whole URL that takes the place of the requester's own. */
  readonly path?: string | undefined;
  /** The address that began the job which this request is about: where the job itself names one, that is only data. */
  readonly begun?: string;
}

/** A request as templates see it, without what the authenticator put in. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderDict;
  readonly body: string | null;
}

/** A wait that nobody would sit through: the run fails and says why. */
export const MAX_WAIT_MS = 3_600_000;

export const methodOf = (component: Component): string =>
  (optionalText(component, "http_method") ?? "GET").toUpperCase();

export interface Built {
  readonly request: HttpRequest;
  readonly token: string | undefined;
  readonly to: Destination;
  /** What the authenticator put in: a vendor may show it in its answers. */
  readonly secrets: readonly string[];
  readonly shown: () => SentRequest;
  /** What is asked and on whose behalf, without credentials: they may change while the answer does not. */
  readonly question: () => string;
}

export async function buildRequest(
  context: Context,
  component: Component,
  authenticator: Authenticator,
  exchange: Exchange,
): Promise<Built> {
  const variables = { ...sliceVariables(exchange.slice), next_page_token: null, ...exchange.variables };
  const own = ownParts(context, component, variables, exchange.slice.extra["query_properties"]);
  const asked = merge(own.parts, exchange.parts ?? emptyParts());
  const urlBase = (variables: Variables): string =>
    text(context, component, component["url_base"] ?? component["url"] ?? "", variables).trim();
  const base = urlBase(variables);
  const pathWith = (variables: Variables): string =>
    text(context, component, component["path"], variables).trim().replace(/^\/+/, "");
  const path = pathWith(variables);
  const whole = isWhole(component["path"]);
  const place = whole ? joinUrl(base, path) : base;
  const written = whole ? pathWith(noData) : urlBase(noData);
  const named = isAtSame(place, written) ? place : (exchange.begun ?? (hasHost(written) ? written : place));
  const target = atServerOf(named, joinUrl(base, exchange.path ?? path));
  const auth = emptyParts();
  const to = { method: methodOf(component), url: urlOf(target) };
  const token = await authenticator.apply(auth, to);
  const parts = merge(asked, auth);
  const url = withParams(target, parts.params);
  const question = (): string => questionOf(target, asked, own.raw, own.list, component["authenticator"]);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(parts.headers)) headers[name.toLowerCase()] = headerValue(value);
  const inJson = own.list !== undefined || Object.keys(parts.json).length > 0;
  const inForm = Object.keys(parts.form).length > 0;
  let body = own.raw === "" && (inJson || inForm) ? undefined : own.raw;
  // One would be left out, and with it a filter or a page's token.
  if ([body !== undefined, inJson, inForm].filter(Boolean).length > 1)
    throw manifestError("a request has JSON and another body; only one can be sent");
  if (body === undefined && inJson) {
    body = JSON.stringify(own.list ?? parts.json);
    headers["content-type"] ??= "application/json";
  } else if (body === undefined && inForm) {
    body = formBody(parts.form);
    headers["content-type"] ??= "application/x-www-form-urlencoded";
  }
  const request = { method: to.method, url, headers, ...(body === undefined ? {} : { body }), ...patience(component) };
  const shown = (): SentRequest => ({
    ...{ method: request.method, url: withParams(target, asked.params), body: body ?? null },
    headers: new HeaderDict(Object.entries(asked.headers).map(([name, value]) => [name.toLowerCase(), value])),
  });
  const built = { token, to, question, shown, secrets: secretsOf(auth) };
  if (await mayKnow(context, named, target)) return { ...built, request };
  tellStranger(context, target);
  const address = exchange.begun === undefined ? target : withParams(target, exchange.parts?.params ?? {});
  return { ...built, request: forStranger({ ...request, url: address }, new URL(named)) };
}

// Reports that a vendor makes while it is asked for them take as long as the manifest knows.
function patience(component: Component): Pick<HttpRequest, "timeoutMs"> {
  const seconds = Number(component["read_timeout_in_seconds"] ?? 0);
  return seconds > 0 ? { timeoutMs: Math.min(seconds * 1000, MAX_WAIT_MS) } : {};
}

// "Bearer abc" is told as "abc" as well.
function secretsOf(auth: RequestParts): string[] {
  const values = Object.values(auth)
    .flatMap((part) => Object.values(part))
    .filter((value) => typeof value === "string");
  return values.flatMap((value) => [value, value.replace(/^\w+ /, "")]);
}

/** What requests may be made of besides the manifest and the configuration. */
const noData: Variables = { stream_slice: {}, next_page_token: null, download_target: "" };

// A value must not end its header and begin another.
const headerValue = (value: string): string => value.replace(/[\r\n\0]+/g, " ").trim();
