// What a daemon refused, as the error that a command ends with: its code, its problems, its request id.
import { type ErrorCode, errors, type FieldProblem, MagicError } from "#contract/errors.ts";
import { fields, list } from "#contract/json-object.ts";
import { headers as names } from "#contract/protocol.ts";
import type { Head } from "./exchange.ts";

/** The MagicError that an answer of problem+json, of OpenAI's or of RFC 6749's form stands for. */
export function refusal(answer: Pick<Head, "status" | "headers">, text: string): MagicError {
  const body = fields(tryParse(text));
  const openai = fields(body["error"]);
  const named = body["code"] ?? openai["code"] ?? body["error"];
  const detail =
    body["detail"] ?? openai["message"] ?? body["error_description"] ?? `The daemon answered ${answer.status}.`;
  const retryAfter = Number(answer.headers.get("retry-after"));
  const { type, title, status, instance, code, errors: problems, retryable, detail: _detail, ...extra } = body;
  const found = codeOf(named, answer.status);
  return new MagicError(found, String(detail), {
    problems: list<FieldProblem>(problems),
    ...(retryAfter > 0 && { retryAfterS: retryAfter }),
    extra: {
      ...(typeof body["error"] === "undefined" && extra),
      ...adviceFor(found, retryAfter),
      status: answer.status,
      request_id: body["request_id"] ?? answer.headers.get(names.requestId),
    },
  });
}

// The catalogue speaks to those who send requests themselves.
function adviceFor(code: ErrorCode, waitS: number): { next: string } | object {
  if (code === "invalid_key") return { next: "Set MAGIC_API_KEY to a key, token or JWT of that daemon." };
  if (code === "rate_limited") return { next: waitS > 0 ? `Try again in ${waitS} s.` : "Try again a little later." };
  return {};
}

const byStatus: Readonly<Record<number, ErrorCode>> = {
  400: "invalid_request",
  401: "invalid_key",
  403: "insufficient_scope",
  404: "not_found",
  405: "method_not_allowed",
  406: "not_acceptable",
  409: "conflict",
  413: "payload_too_large",
  415: "unsupported_media_type",
  422: "validation_failed",
  429: "rate_limited",
  502: "upstream_error",
  503: "overloaded",
  504: "upstream_timeout",
  507: "storage_full",
};

// A newer daemon may know codes that this command line does not: the status says the kind.
function codeOf(named: unknown, status: number): ErrorCode {
  if (typeof named === "string" && Object.hasOwn(errors, named)) return named as ErrorCode;
  if (named === "invalid_api_key" || named === "invalid_client") return "invalid_key";
  return byStatus[status] ?? "internal";
}

/** The value of a JSON text; undefined for text that is none. */
export function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
