// What an answer means: success, retry, ignore, fail. Manifest filters first, then the defaults for HTTP statuses.
import { type ErrorCode, MagicError } from "#contract/errors.ts";
import { isRedirect } from "#contract/redirect.ts";
import { type Context, condition, native, text } from "../context.ts";
import { type Component, children, list, optionalText, refuseCustom, typeOf } from "../manifest/component.ts";
import { backoffOf } from "./backoff-strategies.ts";
import type { HttpResponse } from "./client.ts";
import { describe, errorMessage } from "./error-message.ts";
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
    (Boolean(fragment) && errorMessage(response)?.includes(fragment) === true);
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
  // A redirect that arrives here says not where to: it is no empty page.
  const final = FINAL.has(status) || isRedirect(status);
  const action: Action = final ? "fail" : status < 400 ? "success" : status === 429 ? "rate_limited" : "retry";
  return { action, message: action === "success" ? "" : describe(response), matched: false };
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
