// Bedrock's errors: the type in `x-amzn-errortype` (or in the body's `__type`), the words in `message`; in a stream they are exception frames.
import type { IncomingHttpHeaders } from "node:http";
import { fields, string } from "#contract/json-object.ts";
import type { Target } from "../adapter.ts";
import { type Failure, type FailureKind, failure } from "../failure.ts";
import { answered, kindOfStatus, retryAfter, statusOf } from "../openai/errors.ts";
import { secretsOf } from "../secrets.ts";

const kinds: Readonly<Record<string, FailureKind>> = {
  throttlingexception: "rate_limit",
  toomanyrequestsexception: "rate_limit",
  servicequotaexceededexception: "quota",
  validationexception: "invalid",
  accessdeniedexception: "permission",
  unrecognizedclientexception: "permission",
  expiredtokenexception: "permission",
  resourcenotfoundexception: "not_found",
  modelnotreadyexception: "overloaded",
  serviceunavailableexception: "overloaded",
  modeltimeoutexception: "timeout",
  modelerrorexception: "server",
  modelstreamerrorexception: "server",
  internalserverexception: "internal",
};

/** What an answer with an error status means. */
export function bedrockFailure(status: number, headers: IncomingHttpHeaders, body: string, target: Target): Failure {
  let document: Record<string, unknown> = {};
  try {
    document = fields(JSON.parse(body));
  } catch {
    // Proxies answer in HTML: the status has to do.
  }
  const type = nameOf(string(headers["x-amzn-errortype"]) || string(document["__type"]));
  const byStatus = kindOfStatus(status);
  const kind = byStatus === "auth" || byStatus === "permission" ? byStatus : (kinds[type] ?? byStatus);
  const message = string(document["message"] ?? document["Message"]) || answered(status);
  return failure(kind, message, {
    ...statusOf(kind, status),
    upstreamStatus: status,
    retryAfterMs: kind === "rate_limit" || kind === "overloaded" ? retryAfter(headers) : null,
    secrets: secretsOf(target),
  });
}

/** An exception frame of a stream. */
export function exceptionFailure(type: string, payload: string, target: Target): Failure {
  let message = "";
  try {
    message = string(fields(JSON.parse(payload))["message"]);
  } catch {
    message = payload;
  }
  const kind = kinds[nameOf(type)] ?? "server";
  return failure(kind, message || `The provider reported ${type || "an error"}.`, {
    upstreamStatus: 200,
    secrets: secretsOf(target),
  });
}

// "ThrottlingException:http://internal.amazon.com/...", "com.amazon.coral#ThrottlingException"
function nameOf(type: string): string {
  return (type.split(":")[0] ?? "").split("#").at(-1)?.toLowerCase() ?? "";
}
