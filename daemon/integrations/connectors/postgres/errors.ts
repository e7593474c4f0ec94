// PostgreSQL's errors as ours: SQLSTATE and socket errors -> a code of the catalogue and a sentence that says what to do.
import { type ErrorCode, isMagicError, MagicError } from "#contract/errors.ts";
import { isTlsFailure } from "../../engine/tls-failure.ts";

export type Side = "source" | "destination";

/** Where an error comes from, as pg's DatabaseError and Node's socket errors carry it. */
export interface ServerError extends Error {
  readonly code?: string;
  readonly detail?: string;
  readonly where?: string;
  readonly column?: string;
  readonly constraint?: string;
}

/**
 * Class 22 (data exception) or 23 (integrity constraint), what a trigger raises (P0), a row or a key that is too large for a page, or what a
 * column's own input function says of a value (tsvector's is a syntax error, regclass's an undefined table): this row is bad, others may be good.
 */
export function isDataError(error: unknown): error is ServerError {
  const { code, where, message } = (error ?? {}) as ServerError;
  if (typeof code !== "string") return false;
  return (
    /^(22|23|P0)[0-9A-Z]{3}$/.test(code) ||
    (code === "54000" && /^(index )?row |too long for tsvector/.test(message)) ||
    (/^(0A|42|54)/.test(code) && /^COPY .*?, line \d+, column /ms.test(where ?? ""))
  );
}

/** What a DELETE of rows that have gone is refused for, in words that say what to do; any other error is itself. */
export function stillReferred(error: unknown): unknown {
  const { code = "", detail, message } = error as ServerError;
  if (code.startsWith("P0"))
    return new MagicError("destination_refused", `A trigger keeps rows that are to go: ${message}`, { cause: error });
  if (code !== "23503") return error;
  return new MagicError(
    "destination_refused",
    `Rows have gone at the source that other tables still refer to: ${detail ?? message} Remove those first, or use --deletes soft.`,
    { cause: error },
  );
}

const byState: Readonly<Record<string, ErrorCode>> = {
  "28P01": "credentials_rejected",
  "28000": "credentials_rejected",
  "3D000": "object_not_found",
  "42P01": "object_not_found",
  "3F000": "object_not_found",
  "42703": "object_not_found",
  "42501": "permission_denied",
  "25006": "destination_refused",
  "53100": "destination_refused",
  "53300": "unreachable",
  "57P01": "connection_lost",
  "57P02": "connection_lost",
  "57P03": "unreachable",
  "57P04": "connection_lost",
  "57P05": "connection_lost",
  "25P03": "connection_lost",
  "25P04": "connection_lost",
};
const unreachable = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "ENOENT",
]);
const lost = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED"]);

/** The error that the run reports for what PostgreSQL, or the way to it, said. */
export function postgresError(thrown: unknown, side: Side, doing: string): MagicError {
  if (isMagicError(thrown)) return thrown;
  const error = thrown as ServerError;
  const message = error instanceof Error ? error.message : String(thrown);
  const detail = `${side} PostgreSQL, ${doing}: ${message}${error.detail ? ` (${error.detail})` : ""}`;
  return new MagicError(codeOf(error, message, side), detail, { cause: thrown });
}

function codeOf(error: ServerError, message: string, side: Side): ErrorCode {
  const code = error.code ?? "";
  // At the source it is a view's function that fails.
  if (isDataError(error)) return side === "source" && code.startsWith("P0") ? "source_failed" : "bad_record";
  const known = byState[code];
  if (known) return known;
  if (code.startsWith("08") || lost.has(code) || /connection terminated|Connection ended|not queryable/i.test(message))
    return /timeout/i.test(message) ? "unreachable" : "connection_lost";
  if (unreachable.has(code) || /timeout expired|timeout exceeded|does not speak/i.test(message) || isTlsFailure(error))
    return "unreachable";
  if (/password must be a string|no password|SASL|authentication/i.test(message)) return "credentials_rejected";
  return side === "source" ? "source_failed" : "destination_refused";
}
