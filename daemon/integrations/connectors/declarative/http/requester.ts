// One logical request: built from the manifest, sent within the budget, retried, and judged by the error handler.
import { MagicError } from "#contract/errors.ts";
import { backoff } from "#shared/backoff.ts";
import { redactText } from "#shared/redact.ts";
import { retryAfterSeconds } from "../../../retry-after.ts";
import {
  type Context,
  emptySlice,
  native,
  nested,
  type Slice,
  sliceVariables,
  text,
  type Variables,
} from "../context.ts";
import { HeaderDict } from "../jinja/python.ts";
import {
  type Component,
  isRecord,
  list,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { type Answers, questionOf } from "./answers.ts";
import { authenticatorOf } from "./auth.ts";
import type { Authenticator, Destination, Login } from "./authenticator.ts";
import { forStranger, type HttpRequest, type HttpResponse } from "./client.ts";
import { type ErrorHandler, errorHandlerOf, failure, WindowRefused } from "./errors.ts";
import { emptyParts, formBody, merge, type RequestParts, withParams } from "./options.ts";
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

/** `ignored`: the error handler says to go on as if there were nothing, whatever the answer holds. `tooMuch`: to ask for less. */
export type Outcome =
  | { readonly response: HttpResponse; readonly request: () => SentRequest }
  | { readonly ignored: string; readonly answer: HttpResponse }
  | { readonly reset: true }
  | { readonly tooMuch: string };

/** A request as templates see it, without what the authenticator put in. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderDict;
  readonly body: string | null;
}

export interface Requester {
  send(exchange: Exchange): Promise<Outcome>;
  readonly urlBase: (variables: Variables) => string;
}

/** Without a back-off of the manifest's: 1, 2, 4, 8... s, at most a minute. */
const DEFAULT_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;
/** Who says "at once" and then refuses again is asked less and less often: 50, 100, 200 ms... */
const LEAST_BACKOFF_MS = 50;
/** Rate limits are waited out longer than failures are retried. */
const RATE_LIMIT_TRIES = 20;
/** A wait that nobody would sit through: the run fails and says why. */
const MAX_WAIT_MS = 3_600_000;

/** `answers`: a GET that is among them is not sent again, unless the manifest says so. */
export function requesterOf(context: Context, component: Component, answers?: Answers): Requester {
  if (typeOf(component) !== "HttpRequester") return refuseCustom(component);
  const login: Login = (request) => {
    const requester = requesterOf(context, request);
    return async () => {
      const outcome = await requester.send({ slice: emptySlice });
      return "response" in outcome ? outcome.response : undefined;
    };
  };
  const base = { url_base: component["url_base"] ?? component["url"] };
  const authentication = optionalChild(component, "authenticator");
  const authenticator = authenticatorOf(
    context,
    authentication && typeOf(authentication) === "LegacySessionTokenAuthenticator"
      ? { ...base, ...authentication }
      : authentication,
    login,
  );
  const errors = errorHandlerOf(context, optionalChild(component, "error_handler"));
  const urlBase = (variables: Variables): string =>
    text(context, component, component["url_base"] ?? component["url"] ?? "", variables).trim();
  const repeats = component["use_cache"] === false || methodOf(component) !== "GET";
  return {
    urlBase,
    send: (exchange) => {
      const build = (): Promise<Built> => buildRequest(context, component, authenticator, urlBase, exchange);
      return attempt(context, build, authenticator, errors, repeats ? undefined : answers);
    },
  };
}

const methodOf = (component: Component): string => (optionalText(component, "http_method") ?? "GET").toUpperCase();

interface Built {
  readonly request: HttpRequest;
  readonly token: string | undefined;
  readonly to: Destination;
  /** What the authenticator put in: a vendor may show it in its answers. */
  readonly secrets: readonly string[];
  readonly shown: () => SentRequest;
  /** What is asked and on whose behalf, without credentials: they may change while the answer does not. */
  readonly question: () => string;
}

async function buildRequest(
  context: Context,
  component: Component,
  authenticator: Authenticator,
  urlBase: Requester["urlBase"],
  exchange: Exchange,
): Promise<Built> {
  const variables = { ...sliceVariables(exchange.slice), next_page_token: null, ...exchange.variables };
  const own = ownParts(context, component, variables, exchange.slice.extra["query_properties"]);
  const asked = merge(own.parts, exchange.parts ?? emptyParts());
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
  let body = own.raw;
  if (body === undefined && Object.keys(parts.json).length) {
    body = JSON.stringify(own.list ?? parts.json);
    headers["content-type"] ??= "application/json";
  } else if (body === undefined && own.list) {
    body = JSON.stringify(own.list);
    headers["content-type"] ??= "application/json";
  } else if (body === undefined && Object.keys(parts.form).length) {
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

// A whole one: of `https://{{ stream_partition.shop }}.example.com` nothing is left that could be compared.
const hasHost = (text: string): boolean => /^[^.-]+(?:\.[^.]+)*$/.test(URL.parse(text)?.hostname ?? "");

const isAtSame = (a: string, b: string): boolean => URL.canParse(a) && URL.parse(a)?.origin === URL.parse(b)?.origin;

const isWhole = (path: unknown): boolean => typeof path === "string" && /^\s*https?:\/\//i.test(path);

// Servers behind a proxy take their own scheme for http: what was begun over TLS goes on over it.
function atServerOf(named: string, target: string): string {
  const [from, to] = [URL.parse(named), URL.parse(target)];
  const plain = from?.protocol === "https:" && to?.protocol === "http:" && from.host === to.host;
  return plain ? target.replace(/^http:/i, "https:") : target;
}

// A value must not end its header and begin another.
const headerValue = (value: string): string => value.replace(/[\r\n\0]+/g, " ").trim();

/** The base and a path below it; a whole URL as path stands for itself. */
function joinUrl(base: string, path: string): string {
  if (/^https?:\/\//i.test(path)) {
    if (!URL.canParse(path)) throw noUrl(path, "path, what the server says of the next page");
    return path;
  }
  if (!path) return base;
  if (!URL.canParse(base)) throw noUrl(base, "url_base");
  if (!/^https?:/i.test(base))
    throw new MagicError("egress_blocked", `${base.slice(0, 20)}... is not read: only http and https URLs are`);
  const whole = base.endsWith("/") ? base : `${base}/`;
  // `?a=b` and `/rooted` follow RFC 3986; a colon in the first segment must not look like a scheme.
  const relative = path.startsWith("?") || path.startsWith("/") ? path : `./${path}`;
  if (!URL.canParse(relative, whole)) throw noUrl(path, "path, what the server says of the next page");
  const url = new URL(relative, whole);
  // As the reference joins them: `groups//{{ id }}` has no empty segment.
  url.pathname = url.pathname.replace(/\/{2,}/g, "/");
  return url.href;
}

function urlOf(text: string): URL {
  if (!URL.canParse(text)) throw noUrl(text, "url_base");
  return new URL(text);
}

const noUrl = (text: string, where: string): MagicError =>
  new MagicError("validation_failed", `'${text.slice(0, 200)}' is not a URL: check ${where} and the configuration`);

interface OwnParts {
  readonly parts: RequestParts;
  readonly raw: string | undefined;
  readonly list: unknown[] | undefined;
}

function ownParts(context: Context, component: Component, variables: Variables, asked: unknown): OwnParts {
  const parts = emptyParts();
  const params = textValues(context, component, component["request_parameters"], variables);
  Object.assign(parts.params, typeof params === "string" ? Object.fromEntries(new URLSearchParams(params)) : params);
  const named = component["request_parameters"];
  for (const [name, value] of Object.entries(isRecord(named) ? named : {}))
    if (isQueryProperties(value)) parts.params[name] = list(asked).join(",");
  const headers = isRecord(component["request_headers"])
    ? component["request_headers"]
    : nested(context, component, component["request_headers"] ?? {}, variables);
  for (const [name, value] of Object.entries(isRecord(headers) ? headers : {})) {
    const written = text(context, component, value, variables);
    if (written !== "" && written !== "None") parts.headers[text(context, component, name, variables)] = written;
  }
  const { json, ...body } = bodyOf(component);
  const data = textValues(context, component, body.data, variables);
  const raw = typeof data === "string" ? data : undefined;
  if (raw === undefined) Object.assign(parts.form, data);
  const value = json === undefined ? {} : nested(context, component, json, variables);
  if (isRecord(value)) Object.assign(parts.json, value);
  return { parts, raw, list: Array.isArray(value) ? value : undefined };
}

/** Names of fields to ask for: who sends the request has them in the slice. */
export function isQueryProperties(value: unknown): value is Component {
  return isRecord(value) && value["type"] === "QueryProperties";
}

function bodyOf(component: Component): { data?: unknown; json?: unknown } {
  const body = optionalChild(component, "request_body");
  if (!body) return { data: component["request_body_data"], json: component["request_body_json"] };
  const type = typeOf(body);
  if (type === "RequestBodyPlainText" || type === "RequestBodyUrlEncodedForm") return { data: body["value"] };
  return { json: body["value"] };
}

// Query and form values are text or lists; what a template gives for anything else stays the text that it wrote. In place of the
// mapping there may be text, or one expression that comes to a mapping.
function textValues(
  context: Context,
  component: Component,
  mapping: unknown,
  variables: Variables,
): Record<string, unknown> | string {
  if (typeof mapping === "string") {
    const made = /^\s*\{\{.*\}\}\s*$/s.test(mapping) ? native(context, component, mapping, variables) : undefined;
    return isRecord(made) ? withoutNull(made) : text(context, component, mapping, variables);
  }
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(isRecord(mapping) ? mapping : {})) {
    if (isQueryProperties(value)) continue;
    const evaluated = nested(context, component, value, variables);
    if (evaluated === null || evaluated === undefined || evaluated === "") continue;
    const asItIs = typeof evaluated === "string" || typeof value !== "string";
    const written = asItIs ? "" : text(context, component, value, variables);
    // `1,2` is text, though Python reads a tuple in it.
    const isList = Array.isArray(evaluated) && /^\s*\[/.test(written);
    out[text(context, component, name, variables)] = asItIs || isList ? evaluated : written;
  }
  return out;
}

const withoutNull = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));

async function attempt(
  context: Context,
  build: () => Promise<Built>,
  authenticator: Authenticator,
  errors: ErrorHandler,
  answers: Answers | undefined,
): Promise<Outcome> {
  let refreshed = false;
  for (let tries = 1, limited = 0; ; tries++) {
    context.signal.throwIfAborted();
    const { request, token, to, secrets, question, shown } = await build();
    const asked = answers ? question() : "";
    const known = answers?.of(asked);
    // Another stream's error handler may see in it what its own did not.
    if (known && errors.interpret(known).action === "success") return { response: known, request: shown };
    await context.budget.take({ ...request, url: new URL(request.url) }, (ms) => context.sleep(ms));
    let response: HttpResponse | undefined;
    let message: string;
    let limits = false;
    let another = false;
    try {
      response = await context.http.send(request, context.signal);
      context.budget.learn(response, context.clock.now());
      another = authenticator.learn?.(token, to, response) ?? false;
      const judged = errors.interpret(response);
      const verdict = { ...judged, message: redactText(judged.message, secrets) };
      message = verdict.message;
      limits = response.status === 429 || verdict.action === "rate_limited";
      // To ignore an error is to go on without the answer. One that is none counts, as in the reference.
      if (verdict.action === "success" || (verdict.action === "ignore" && response.status < 400)) {
        answers?.keep(asked, response);
        return { response, request: shown };
      }
      if (verdict.action === "ignore") return { ignored: verdict.message, answer: response };
      if (verdict.action === "reset_pagination") return { reset: true };
      if (verdict.action === "reduce_page_size") return { tooMuch: verdict.message };
      if (verdict.action === "split_request_window") throw new WindowRefused(verdict.message);
      if (
        (verdict.action === "refresh_token" || response.status === 401) &&
        !refreshed &&
        (await authenticator.refresh(token))
      ) {
        refreshed = true;
        tries--;
        continue;
      }
      // Who has no token to refresh asks again all the same.
      const refused = verdict.action === "refresh_token" && (refreshed || response.status === 401);
      // The token was taken: while a limit or a failure is waited out, it may end in its turn.
      if (response.status !== 401 && verdict.action !== "refresh_token") refreshed = false;
      if (verdict.action === "fail" || refused) throw failure(response, verdict);
      if (verdict.action === "rate_limited" && ++limited < RATE_LIMIT_TRIES) tries--;
    } catch (error) {
      if (response || context.signal.aborted || !(error instanceof MagicError) || !mayPass(error)) throw error;
      message = error.message;
    }
    if (tries > errors.maxRetries) throw new MagicError("upstream_error", `${message} (after ${tries} tries)`);
    // A token that has calls left need not wait for one that has none.
    if (limits && another) continue;
    await wait(context, errors, response, tries + limited, message, limits);
  }
}

// A connection that broke has a cause. An answer that is too large or is led in circles will be so again.
const mayPass = (error: MagicError): boolean =>
  error.code === "upstream_timeout" || (error.code === "upstream_error" && error.cause !== undefined);

async function wait(
  context: Context,
  errors: ErrorHandler,
  response: HttpResponse | undefined,
  attempts: number,
  message: string,
  limits: boolean,
): Promise<void> {
  const asked = retryAfterSeconds(response?.headers["retry-after"], context.clock.now());
  const told = errors.backoff(response, attempts) ?? (asked === undefined ? undefined : asked * 1000);
  const growing = (first: number): number => backoff(attempts - 1, first, MAX_BACKOFF_MS);
  const pause =
    told === undefined
      ? growing(DEFAULT_BACKOFF_MS)
      : told < DEFAULT_BACKOFF_MS
        ? Math.max(told, growing(LEAST_BACKOFF_MS))
        : told;
  if (pause > MAX_WAIT_MS)
    throw new MagicError(
      "upstream_error",
      `${message}; the wait of ${Math.round(pause / 1000)} s that it asks for is too long`,
    );
  context.log("info", `${message}; trying again in ${(pause / 1000).toFixed(1)} s`);
  // The other partitions would only meet the same limit.
  if (limits) context.budget.pauseUntil(context.clock.monotonic() + pause);
  await context.sleep(pause);
}
