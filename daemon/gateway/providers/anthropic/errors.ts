// Anthropic's errors: `{"type": "error", "error": {type, message}, request_id}`; 529 is overload.
import type { IncomingHttpHeaders } from "node:http";
import { fields, string } from "#contract/json-object.ts";
import type { Target } from "../adapter.ts";
import { type Failure, type FailureKind, failure } from "../failure.ts";
import { answered, kindOfStatus, retryAfter, statusOf } from "../openai/errors.ts";
import { secretsOf } from "../secrets.ts";

const kinds: Readonly<Record<string, FailureKind>> = {
  invalid_request_error: "invalid",
  authentication_error: "auth",
  permission_error: "permission",
  not_found_error: "not_found",
  request_too_large: "invalid",
  rate_limit_error: "rate_limit",
  timeout_error: "timeout",
  api_error: "internal",
  overloaded_error: "overloaded",
};

/** An account that has spent its credit or its own limit is told so as if the request were wrong: 400, invalid_request_error. */
const SPENT = /^Your credit balance is too low\b|^You have reached your specified (?:workspace )?API usage limits\b/;
/** One that has spent its tier's or its contract's limit as if it were too quick, `error.details.error_code` of a 429. */
const SPENT_CODE = /_spend_limit_reached$/;

/** What an answer with an error status means. */
export function anthropicFailure(status: number, headers: IncomingHttpHeaders, body: string, target: Target): Failure {
  let error: Record<string, unknown> = {};
  try {
    error = fields(fields(JSON.parse(body))["error"]);
  } catch {
    // Proxies answer in HTML: the status has to do.
  }
  const message = string(error["message"]);
  const kind = isSpent(error) ? "quota" : kindOfStatus(status);
  return failure(kind, message || answered(status), {
    ...statusOf(kind, status),
    upstreamStatus: status,
    retryAfterMs: kind === "rate_limit" || kind === "overloaded" ? retryAfter(headers) : null,
    secrets: secretsOf(target),
  });
}

/** An error event of a stream, or an error document behind 200. */
export function anthropicError(event: Readonly<Record<string, unknown>>, target: Target): Failure {
  const error = fields(event["error"]);
  const kind = isSpent(error) ? "quota" : (kinds[string(error["type"])] ?? "server");
  return failure(kind, string(error["message"]) || "The provider reported an error.", {
    upstreamStatus: 200,
    secrets: secretsOf(target),
  });
}

function isSpent({ type, message, details }: Readonly<Record<string, unknown>>): boolean {
  const code = string(fields(details)["error_code"]);
  // The latter is Zhipu's, who speaks Anthropic's format, too.
  const named = type === "billing_error" || type === "1113";
  return named || SPENT.test(string(message)) || SPENT_CODE.test(code);
}
