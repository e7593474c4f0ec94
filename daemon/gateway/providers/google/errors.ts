// Google's errors: `{"error": {code, message, status, details}}`, in a list at times; the hint when to come back is in the body.
import type { IncomingHttpHeaders } from "node:http";
import { fields, list, string } from "#contract/json-object.ts";
import type { Target } from "../adapter.ts";
import { type Failure, type FailureKind, failure } from "../failure.ts";
import { answered, kindOfStatus, retryAfter, retryInfo, saysSpent, statusOf } from "../openai/errors.ts";
import { secretsOf } from "../secrets.ts";

const kinds: Readonly<Record<string, FailureKind>> = {
  INVALID_ARGUMENT: "invalid",
  FAILED_PRECONDITION: "invalid",
  OUT_OF_RANGE: "invalid",
  UNAUTHENTICATED: "auth",
  PERMISSION_DENIED: "permission",
  NOT_FOUND: "not_found",
  RESOURCE_EXHAUSTED: "rate_limit",
  UNAVAILABLE: "overloaded",
  DEADLINE_EXCEEDED: "timeout",
  INTERNAL: "internal",
};

/** What an answer with an error status means. */
export function googleFailure(status: number, headers: IncomingHttpHeaders, body: string, target: Target): Failure {
  let error: unknown = {};
  try {
    const parsed: unknown = JSON.parse(body);
    error = fields(Array.isArray(parsed) ? parsed[0] : parsed)["error"];
  } catch {
    // Proxies answer in HTML: the status has to do.
  }
  const read = googleError(error, status, target);
  const hint =
    read.retryAfterMs ?? (read.kind === "rate_limit" || read.kind === "overloaded" ? retryAfter(headers) : null);
  return { ...read, retryAfterMs: hint };
}

/** The error object of a body, of a stream's event, or behind 200. */
export function googleError(value: unknown, status: number, target: Target): Failure {
  const error = fields(value);
  const code = typeof error["code"] === "number" ? error["code"] : status;
  const details = list(error["details"]).map(fields);
  let kind = status >= 300 ? kindOfStatus(status) : (kinds[string(error["status"])] ?? kindOfStatus(code));
  // A bad key is a 400 at Google's; it is not the caller's request that is wrong.
  if (details.some((detail) => detail["reason"] === "API_KEY_INVALID")) kind = "auth";
  const message = string(error["message"]);
  if (code === 402 || saysSpent(message)) kind = "quota";
  return failure(kind, message || answered(status), {
    ...statusOf(kind, status),
    upstreamStatus: status,
    retryAfterMs: retryInfo(error["details"]),
    secrets: secretsOf(target),
  });
}
