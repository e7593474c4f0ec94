// What an answer means: success, retry, ignore, fail; and how long to wait. Manifest filters first, then the defaults for HTTP statuses.
import { type ErrorCode, MagicError } from "#contract/errors.ts";
import { retryAfterSeconds } from "../../../retry-after.ts";
import { type Context, condition, native, text } from "../context.ts";
import { compileRegex } from "../jinja/regex.ts";
import { type Component, children, isRecord, list, optionalText, refuseCustom, typeOf } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";
import { responseVariables } from "./response.ts";

export type Action =
  | "success"
  | "retry"
  | "ignore"
  | "fail"
  | "rate_limited"
  | "reset_pagination"
  | "reduce_page_size"
  | "split_request_window"
  | "refresh_token";

export interface Verdict {
  readonly action: Action;
  readonly message: string;
  /** True where a filter of the manifest said what to do. */
  readonly matched: boolean;
  /** True where the manifest lays it to the configuration. */
  readonly configuration?: boolean;
}

/** What an error handler's SPLIT_REQUEST_WINDOW ends a request with; where nobody splits, it ends the read. */
export class WindowRefused extends MagicError {
  constructor(refusal: string) {
    super("upstream_error", refusal);
  }
}

export interface ErrorHandler {
  interpret(response: HttpResponse): Verdict;
  /** Milliseconds before try `attempt` + 1 (1 is the first), or undefined: a default applies. */
  backoff(response: HttpResponse | undefined, attempt: number): number | undefined;
  readonly maxRetries: number;
}

const DEFAULT_RETRIES = 5;

export function errorHandlerOf(context: Context, component: Component | undefined): ErrorHandler {
  if (!component) return { interpret: byStatus, backoff: () => undefined, maxRetries: DEFAULT_RETRIES };
  const type = typeOf(component);
  if (type === "DefaultErrorHandler") return single(context, component);
  if (type !== "CompositeErrorHandler") return refuseCustom(component);
  const handlers = children(component, "error_handlers").map((each) => errorHandlerOf(context, each));
  return {
    interpret(response) {
      let last = byStatus(response);
      // A handler that does not know a passing failure has it asked again, as in the reference: a later one must not pass over its records.
      let again: Verdict | undefined;
      for (const handler of handlers) {
        const verdict = handler.interpret(response);
        if (verdict.action === "ignore" && again) return again;
        if (verdict.action === "retry" && !verdict.matched) again ??= verdict;
        if (verdict.action === "success" || (verdict.matched && verdict.action !== "fail")) return verdict;
        if (verdict.matched || !last.matched) last = verdict;
      }
      return last;
    },
    backoff(response, attempt) {
      for (const handler of handlers) {
        const wait = handler.backoff(response, attempt);
        if (wait !== undefined) return wait;
      }
      return undefined;
    },
    maxRetries: Math.max(0, ...handlers.map((handler) => handler.maxRetries)),
  };
}

// What comes to no number must not be endless.
function retriesOf(value: unknown): number {
  const retries = value === undefined || value === null ? DEFAULT_RETRIES : Number(value);
  return Number.isNaN(retries) ? DEFAULT_RETRIES : retries;
}

type Failed = Parameters<ErrorHandler["backoff"]>;

function single(context: Context, component: Component): ErrorHandler {
  const filters = children(component, "response_filters");
  const strategies = children(component, "backoff_strategies").map((each) => backoffOf(context, each));
  const retries = component["max_retries"];
  return {
    interpret(response) {
      let described: Verdict | undefined;
      for (const filter of filters) {
        const verdict = applyFilter(context, filter, response);
        if (verdict?.matched) return verdict;
        described ??= verdict;
      }
      return described ?? byStatus(response);
    },
    backoff(response, attempt) {
      for (const strategy of strategies) {
        const wait = strategy(response, attempt);
        // A template may come to no number.
        if (Number.isFinite(wait)) return wait;
      }
      return undefined;
    },
    maxRetries: retriesOf(native(context, component, retries)),
  };
}

const actions: Readonly<Record<string, Action>> = {
  SUCCESS: "success",
  FAIL: "fail",
  RETRY: "retry",
  IGNORE: "ignore",
  RATE_LIMITED: "rate_limited",
  RESET_PAGINATION: "reset_pagination",
  REDUCE_PAGE_SIZE: "reduce_page_size",
  SPLIT_REQUEST_WINDOW: "split_request_window",
  REFRESH_TOKEN_THEN_RETRY: "refresh_token",
};

function applyFilter(context: Context, filter: Component, response: HttpResponse): Verdict | undefined {
  const codes = list(filter["http_codes"]).map(Number);
  // Of a text that a template leaves empty every message would be a match.
  const fragment = text(context, filter, optionalText(filter, "error_message_contains"));
  const matches =
    codes.includes(response.status) ||
    (filter["predicate"] !== undefined &&
      filter["predicate"] !== "" &&
      condition(context, filter, filter["predicate"], responseVariables(response))) ||
    (Boolean(fragment) && errorMessage(response).includes(fragment));
  if (!matches) return undefined;
  // One without an action decides nothing, as in the reference: it says what the failure means, if it is one.
  const action = actions[optionalText(filter, "action") ?? ""];
  const message = optionalText(filter, "error_message");
  return {
    action: action ?? byStatus(response).action,
    message: (message && text(context, filter, message, responseVariables(response)).trim()) || describe(response),
    matched: action !== undefined,
    configuration: filter["failure_type"] === "config_error",
  };
}

/** Asked again, they would be answered alike: the request itself is wrong. Others (409, 423, a vendor's own 430) may pass. */
const FINAL: ReadonlySet<number> = new Set([
  ...[400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 416, 417],
  ...[421, 422, 426, 428, 431, 451],
]);

function byStatus(response: HttpResponse): Verdict {
  const { status } = response;
  const action: Action =
    status < 400 ? "success" : status === 429 ? "rate_limited" : FINAL.has(status) ? "fail" : "retry";
  return { action, message: action === "success" ? "" : describe(response), matched: false };
}

function describe(response: HttpResponse): string {
  const url = new URL(response.url);
  const message = errorMessage(response).slice(0, 300).trim();
  return `${url.origin}${url.pathname} answered ${response.status}${message ? `: ${message}` : ""}`;
}

/** The message in an error body, wherever the vendor has put it; else the body's text. */
function errorMessage(response: HttpResponse): string {
  const body = response.body.subarray(0, 64 * 1024).toString("utf8");
  try {
    return messageIn(JSON.parse(body), 0) ?? body;
  } catch {
    return body;
  }
}

function messageIn(value: unknown, depth: number): string | undefined {
  if (depth > 5) return undefined;
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const parts = value.map((each) => messageIn(each, depth + 1)).filter(Boolean);
    return parts.length ? parts.join(", ") : undefined;
  }
  if (!isRecord(value)) return undefined;
  for (const key of [
    "message",
    "messages",
    "error",
    "errors",
    "failures",
    "failure",
    "detail",
    "err",
    "error_message",
    "msg",
    "reason",
    "status_message",
  ]) {
    if (Object.hasOwn(value, key)) {
      const found = messageIn(value[key], depth + 1);
      if (found) return found;
    }
  }
  return undefined;
}

function backoffOf(context: Context, strategy: Component): (...failed: Failed) => number | undefined {
  const number = (field: string, otherwise?: number) =>
    Number(native(context, strategy, strategy[field] ?? otherwise)) * 1000;
  switch (typeOf(strategy)) {
    case "ConstantBackoffStrategy":
      return () => number("backoff_time_in_seconds") + jitter(strategy);
    case "ExponentialBackoffStrategy":
      return (_response, attempt) => number("factor", 5) * 2 ** attempt + jitter(strategy);
    case "WaitTimeFromResponse":
      return (response) => waitFromResponse(context, strategy, response);
    case "WaitTimeFromHeader":
    case "WaitUntilTimeFromHeader":
      return (response) => waitFromHeader(context, strategy, response);
    default:
      return refuseCustom(strategy);
  }
}

// What it makes of an answer may be nothing, or no number: then the next strategy is asked.
function waitFromResponse(
  context: Context,
  strategy: Component,
  response: HttpResponse | undefined,
): number | undefined {
  if (!response) return undefined;
  let seconds: number;
  try {
    seconds = Number(native(context, strategy, strategy["wait_time_in_seconds"], responseVariables(response)));
  } catch {
    return undefined;
  }
  if (!(seconds > 0)) return undefined;
  const most = strategy["max_waiting_time_in_seconds"];
  if (most !== undefined && most !== null && seconds >= Number(native(context, strategy, most))) throw tooLong(seconds);
  return seconds * 1000;
}

const tooLong = (seconds: number): MagicError =>
  new MagicError("upstream_error", `the server asks to wait ${seconds} s, longer than max_waiting_time_in_seconds`);

function jitter(strategy: Component): number {
  const range = strategy["jitter_range_in_seconds"];
  if (range === undefined || range === null) return 0;
  const [low, high] = Array.isArray(range) ? range.map(Number) : [0, Number(range)];
  return ((low ?? 0) + Math.random() * ((high ?? 0) - (low ?? 0))) * 1000;
}

function waitFromHeader(context: Context, strategy: Component, response: HttpResponse | undefined): number | undefined {
  const header = response?.headers[text(context, strategy, strategy["header"]).toLowerCase()];
  const least = strategy["min_wait"];
  const leastS = least === undefined || least === null ? undefined : Number(native(context, strategy, least));
  const shortest = leastS === undefined ? undefined : leastS * 1000;
  if (header === undefined) return shortest;
  const regex = optionalText(strategy, "regex");
  let value = header;
  if (regex) {
    const matcher = compileRegex(text(context, strategy, regex)).matcher(header);
    if (!matcher.find()) return shortest;
    value = matcher.group(matcher.groupCount() > 0 ? 1 : 0) ?? "";
  }
  const seconds = Number(value);
  let wait =
    typeOf(strategy) === "WaitTimeFromHeader"
      ? Number.isFinite(seconds) && value.trim()
        ? seconds
        : retryAfterSeconds(value, context.clock.now())
      : untilSeconds(value, context.clock.now());
  if (wait === undefined) return shortest;
  if (leastS !== undefined) wait = Math.max(wait, leastS);
  const most = strategy["max_waiting_time_in_seconds"];
  if (most !== undefined && most !== null && wait > Number(native(context, strategy, most))) throw tooLong(wait);
  return Math.max(0, wait) * 1000;
}

export function untilSeconds(value: string, now: number): number | undefined {
  const seconds = Number(value);
  // Vendors give seconds or milliseconds since the epoch; seconds of that size are three thousand years away.
  const unit = seconds > 1e11 ? 1 : 1000;
  const at = Number.isFinite(seconds) && value.trim() ? seconds * unit : Date.parse(value);
  return Number.isNaN(at) ? undefined : (at - now) / 1000;
}

/** The error that ends a read: 401 and 403 are the credentials', and a success that the manifest lays to the configuration. */
export function failure(response: HttpResponse, { message, configuration = false }: Verdict): MagicError {
  const code: ErrorCode =
    response.status === 401 || response.status === 403 || (configuration && response.status < 400)
      ? "credentials_rejected"
      : response.status === 404
        ? "not_found"
        : "upstream_error";
  return new MagicError(code, message);
}
