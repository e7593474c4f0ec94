// One error, three forms on the wire: problem+json (RFC 9457) for the core API and the runtime, OpenAI's for the gateway,
// RFC 6749's (section 5.2) for the token endpoint. All are made from the catalogue.
import { type ErrorCode, errors, isMagicError, MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { pointerParts } from "#contract/json-pointer.ts";
import { BODY_LIMIT, shownLimit } from "./body.ts";
import type { ErrorForm } from "./route-config.ts";
import { fieldProblems } from "./validation.ts";

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const DOCS = "https://magic.dev/errors/";

/**
 * What an error that reached the error handler means: a MagicError of the catalogue, always. `bodyLimit` (bytes) and `consumes` (media types)
 * are the route's.
 */
export function classify(
  error: unknown,
  bodyLimit = BODY_LIMIT,
  consumes: readonly string[] = ["application/json"],
): MagicError {
  if (isMagicError(error)) return error;
  const known = error as { code?: string; statusCode?: number; validation?: Parameters<typeof fieldProblems>[0] };
  if (known.validation)
    return new MagicError("validation_failed", undefined, { problems: fieldProblems(known.validation), cause: error });
  const code = fastifyCodes[known.code ?? ""];
  if (code === "payload_too_large") {
    const detail = `The body is too large: ${shownLimit(bodyLimit)} are read here at the most.`;
    return new MagicError(code, detail, { cause: error });
  }
  if (code === "unsupported_media_type")
    return new MagicError(code, `The body's Content-Type must be ${consumes.join(" or ")}.`, { cause: error });
  if (code) return new MagicError(code, (error as Error).message.slice(0, 300), { cause: error });
  if (error instanceof SyntaxError && known.statusCode === 400)
    return new MagicError("invalid_request", "The body is not valid JSON.", { cause: error });
  if (known.code === "SQLITE_FULL" || known.code === "ENOSPC")
    return new MagicError("storage_full", "The disk is full: nothing was stored.", { cause: error });
  return new MagicError("internal", "Something unexpected happened; the daemon's log has it.", { cause: error });
}

/**
 * A database that refuses names hosts, users and itself: nothing for somebody of whom nobody knows yet who it is, since just that could not
 * be looked up. The log has it.
 */
export function forCaller(error: MagicError, principal: Pick<Principal, "type"> | null): MagicError {
  if (error.code !== "storage_unavailable" || (principal && principal.type !== "anonymous")) return error;
  const { extra, retryAfterS } = error;
  return new MagicError(error.code, undefined, { extra, cause: error, ...(retryAfterS && { retryAfterS }) });
}

/** The answer for an error in one of the three forms. */
export function answerFor(error: MagicError, form: ErrorForm, requestId: string): ErrorAnswer {
  const make = form === "openai" ? openai : form === "oauth" ? oauth : problem;
  const answer = make(error, requestId);
  const headers: Record<string, string> = { ...error.headers, ...answer.headers };
  // OpenAI's clients try these again by themselves, unless they are told that it is of no use.
  if (form === "openai" && retriedByClients(answer.status) && !errors[error.code].retryable)
    headers["x-should-retry"] = "false";
  if (error.retryAfterS !== undefined) headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfterS)));
  const challenge = form === "oauth" ? basicChallenge(answer.status) : bearerChallenge(error, answer.status);
  if (challenge !== undefined) headers["www-authenticate"] ??= challenge;
  if (answer.status === 503 && error.code === "draining") headers["connection"] = "close";
  return { ...answer, headers };
}

function basicChallenge(status: number): string | undefined {
  return status === 401 ? 'Basic realm="magic"' : undefined;
}

// RFC 6750, section 3.1.
function bearerChallenge({ code, extra }: MagicError, status: number): string | undefined {
  if (status === 401) return 'Bearer realm="magic", error="invalid_token"';
  const { scope } = extra;
  return code === "insufficient_scope" && typeof scope === "string"
    ? `Bearer realm="magic", error="insufficient_scope", scope="${scope}"`
    : undefined;
}

function retriedByClients(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function problem(error: MagicError, requestId: string): ErrorAnswer {
  const entry = errors[error.code];
  const status = entry.status === 0 ? 500 : entry.status;
  return {
    status,
    headers: { "content-type": "application/problem+json" },
    body: {
      ...error.extra,
      type: DOCS + error.code,
      title: entry.title,
      status,
      detail: error.message,
      instance: `urn:magic:request:${requestId}`,
      code: error.code,
      request_id: requestId,
      retryable: entry.retryable,
      ...(error.problems.length > 0 && { errors: error.problems }),
    },
  };
}

// https://platform.openai.com/docs/guides/error-codes: bad bodies are 400 there, and clients switch on `type` and `code`.
function openai(error: MagicError): ErrorAnswer {
  const entry = errors[error.code];
  const status = error.code === "validation_failed" ? 400 : entry.status === 0 ? 500 : entry.status;
  const { param = pointerAsParam(error), type = openaiType(status, error.code), ...extra } = error.extra;
  const code = error.code === "invalid_key" ? "invalid_api_key" : error.code;
  return {
    status,
    headers: { "content-type": "application/json" },
    body: { error: { message: error.message, type, param: param ?? null, code, ...extra } },
  };
}

function openaiType(status: number, code: ErrorCode): string {
  if (code === "insufficient_quota" || code === "budget_exceeded") return "insufficient_quota";
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

// /messages/0/role -> messages[0].role, the way OpenAI names a parameter.
function pointerAsParam(error: MagicError): string | null {
  const pointer = error.problems[0]?.pointer;
  if (!pointer) return null;
  return pointerParts(pointer).reduce(
    (path, token) => (/^\d+$/.test(token) ? `${path}[${token}]` : path === "" ? token : `${path}.${token}`),
    "",
  );
}

function oauth(error: MagicError): ErrorAnswer {
  const entry = errors[error.code];
  const byCode: Partial<Record<ErrorCode, string>> = {
    invalid_key: "invalid_client",
    expired: "invalid_grant",
    insufficient_scope: "invalid_scope",
    rate_limited: "temporarily_unavailable",
  };
  const status = error.code === "validation_failed" ? 400 : entry.status === 0 ? 500 : entry.status;
  const { error: named, ...extra } = error.extra;
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    body: {
      error: named ?? byCode[error.code] ?? ofStatus(status),
      // RFC 6749, section 5.2: printable ASCII without quotation marks and backslashes.
      error_description: error.message.replaceAll('"', "'").replace(/[^ !#-[\]-~]/gu, "?"),
      ...extra,
    },
  };
}

// A client gives up where it is told that its request is wrong.
function ofStatus(status: number): string {
  if (status === 503) return "temporarily_unavailable";
  return status >= 500 ? "server_error" : "invalid_request";
}

const fastifyCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "payload_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "invalid_request",
  FST_ERR_CTP_EMPTY_JSON_BODY: "invalid_request",
  FST_ERR_CTP_INVALID_JSON_BODY: "invalid_request",
  FST_ERR_BAD_URL: "invalid_request",
  FST_ERR_VALIDATION: "validation_failed",
  ECONNRESET: "client_closed",
};
