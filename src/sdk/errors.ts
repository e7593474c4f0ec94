// Errors that a handler throws to choose the HTTP answer, and the error that a refused or failed power throws.

const brand: unique symbol = Symbol.for("magic.handler.error") as never;

/** Codes that a handler may answer with; each has its HTTP status in the daemon's error catalogue. */
export type HandlerErrorCode =
  | "invalid_request"
  | "validation_failed"
  | "not_found"
  | "conflict"
  | "rate_limited"
  | "upstream_error"
  | "upstream_timeout"
  | "overloaded"
  | "handler_error";

/** What the daemon answers with when it refuses or fails what a handler asked of it. */
export type PowerErrorCode =
  | HandlerErrorCode
  | "capability_denied"
  | "egress_blocked"
  | "limit_exceeded"
  | "timeout"
  | "model_not_allowed"
  | "model_not_found"
  | "insufficient_quota"
  | "controller_not_found"
  | "input_invalid"
  | "output_invalid"
  | (string & {});

/**
 * Ends the invocation with a problem+json answer of this code: `throw new HandlerError("not_found", "no ticket 7")`.
 * Any other thrown error answers 500 `handler_error` with its message; its stack is in the log only. Secrets that the invocation read are
 * struck out of both.
 */
export class HandlerError extends Error {
  readonly code: PowerErrorCode;
  /** HTTP status of the system behind, where there is one. */
  readonly status: number | undefined;
  readonly [brand] = true;

  constructor(code: PowerErrorCode, detail: string, options: ErrorOptions & { status?: number } = {}) {
    super(detail, options);
    this.name = "HandlerError";
    this.code = code;
    this.status = options.status;
  }
}

/** 422: the input fits its schema but makes no sense. */
export class InvalidInput extends HandlerError {
  constructor(detail: string, options: ErrorOptions = {}) {
    super("validation_failed", detail, options);
    this.name = "InvalidInput";
  }
}

/** 404. */
export class NotFound extends HandlerError {
  constructor(detail: string, options: ErrorOptions = {}) {
    super("not_found", detail, options);
    this.name = "NotFound";
  }
}

/** 409. */
export class Conflict extends HandlerError {
  constructor(detail: string, options: ErrorOptions = {}) {
    super("conflict", detail, options);
    this.name = "Conflict";
  }
}

/** 502: a system behind failed; the caller may try again. */
export class UpstreamFailed extends HandlerError {
  constructor(detail: string, options: ErrorOptions & { status?: number } = {}) {
    super("upstream_error", detail, options);
    this.name = "UpstreamFailed";
  }
}

/** True for an error with a code: thrown by the handler, or by one of the request's powers (`capability_denied`, ...). */
export function isHandlerError(error: unknown): error is HandlerError {
  return typeof error === "object" && error !== null && brand in error;
}
