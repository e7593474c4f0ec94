// What goes wrong in storage, as codes of the catalogue, and as plain data so that it crosses from the storage thread.
import { type ErrorCode, type FieldProblem, isMagicError, MagicError } from "#contract/errors.ts";

export interface Failure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly stack: string | undefined;
  readonly problems: readonly FieldProblem[];
  readonly retryAfterS: number | undefined;
  readonly extra: Readonly<Record<string, unknown>>;
}

export function toFailure(error: unknown): Failure {
  const known = isMagicError(error) ? (error as MagicError) : translate(error);
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return known === null
    ? { code: null, message, stack, problems: [], retryAfterS: undefined, extra: {} }
    : { ...pick(known), stack };
}

function pick({ code, message, problems, retryAfterS, extra }: MagicError): Omit<Failure, "stack"> {
  return { code, message, problems, retryAfterS, extra };
}

export function fromFailure({ code, message, stack, problems, retryAfterS, extra }: Failure): Error {
  const error =
    code === null
      ? new Error(message)
      : new MagicError(code, message, {
          problems,
          extra,
          ...(retryAfterS === undefined ? {} : { retryAfterS }),
        });
  // The stack of the storage thread says where; this thread's only says that a message came.
  if (stack !== undefined) error.stack = stack;
  return error;
}

/** The catalogue's word for an error of SQLite, Postgres or the file system; null where there is none. */
export function translate(error: unknown): MagicError | null {
  if (typeof error !== "object" || error === null) return null;
  const { errcode, code, message, syscall } = error as Readonly<Record<string, unknown>>;
  const options = { cause: error };
  if (typeof errcode === "number") return ofSqlite(errcode, String(message), options);
  if (foreign.test(String(message)) || (typeof code === "string" && untrusted.test(code)))
    return new MagicError(
      "storage_unavailable",
      `the Postgres that holds the state cannot be used: ${message}`,
      options,
    );
  if (typeof code !== "string") return lost.test(String(message)) ? unavailable(options) : null;
  if (full.has(code)) return new MagicError("storage_full", undefined, options);
  if (unusable.has(code)) return new MagicError("state_unusable", String(message), options);
  if (code === "22021")
    return new MagicError("invalid_request", "A text holds a NUL character, which the database cannot keep.", options);
  // Made in another encoding than UTF-8.
  if (code === "22P05")
    return new MagicError("invalid_request", `The database cannot keep a text: ${message}.`, options);
  // A socket that is not there is a server that is not there.
  if (code === "ENOENT" && syscall === "connect") return unavailable(options);
  // A certificate that the address of the Postgres names.
  if (code === "ENOENT" && syscall === "open") return new MagicError("state_unusable", String(message), options);
  // However often it was tried.
  if (code === "40001" || code === "40P01")
    return new MagicError("storage_unavailable", "too many calls changed the same thing at once", options);
  // Its statement_timeout: somebody holds a lock, or it has too much to do.
  if (code === "57014")
    return new MagicError("storage_unavailable", "the Postgres that holds the state did not answer in time", options);
  if (unreachable.has(code) || code.startsWith("08") || code.startsWith("57P")) return unavailable(options);
  if (denied.test(code))
    return new MagicError("storage_unavailable", `the Postgres that holds the state refuses: ${message}`, options);
  return null;
}

function unavailable(options: { cause: object }): MagicError {
  const { code } = options.cause as { readonly code?: unknown };
  const why = typeof code === "string" ? ` (${code})` : "";
  return new MagicError("storage_unavailable", `the Postgres that holds the state cannot be reached${why}`, options);
}

/**
 * Whether what was to be stored is itself what was refused, however often it is tried: a value that does not fit or breaks a constraint.
 * Postgres has classes of codes for these; of SQLite's errors only the words cross from its thread.
 */
export function isRefusal(error: unknown): boolean {
  if (isMagicError(error)) return error.code === "invalid_request";
  const { code, message } = (error ?? {}) as Readonly<Record<string, unknown>>;
  return typeof code === "string" ? /^(21|22|23|54)...$/.test(code) : refusals.test(String(message));
}

const refusals = /constraint failed|datatype mismatch|cannot store|too big|integer overflow/;

// The driver's own, which have no code.
const lost =
  /^(Connection terminated|Query read timeout|Client has encountered a connection error|timeout exceeded when trying to connect|Client was closed)/;
// Likewise: what is there is no Postgres, has no TLS where the address asks for it, or wants a password where the address has none.
const foreign =
  /^(Received unexpected \w+ message from backend|received invalid response|what answers there does not speak|Unknown authenticationOk message type|The server does not support SSL|There was an error establishing an SSL|SASL: )/;
// OpenSSL's and Node's words for a certificate that does not hold, and for a handshake that fails.
const untrusted = /CERT|^UNABLE_TO_|^ERR_(TLS|SSL)_|^EPROTO$/;
// 53100: the disk of a Postgres.
const full = new Set(["ENOSPC", "EDQUOT", "53100"]);
const unusable = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR", "EISDIR", "EEXIST"]);
const unreachable = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);
// It says itself why it does not serve: a standby, a transaction left too long, a password, a database or a right that is not there, too
// little of something, a lock, its disk.
const denied = /^(25006|25P0[23]|28...|3D000|42501|53...|55P03|58...)$/;

// The low byte is SQLite's primary result code: https://sqlite.org/rescode.html
function ofSqlite(errcode: number, message: string, options: { cause: object }): MagicError | null {
  switch (errcode & 0xff) {
    case 13: // SQLITE_FULL
      return new MagicError("storage_full", undefined, options);
    case 11: // SQLITE_CORRUPT
    case 26: // SQLITE_NOTADB
      return new MagicError("database_corrupt", message, options);
    case 8: // SQLITE_READONLY
    case 14: // SQLITE_CANTOPEN
      return new MagicError("state_unusable", `the database cannot be written: ${message}`, options);
    case 5: // SQLITE_BUSY: another program holds the file
      return new MagicError("storage_unavailable", "another program holds the database", options);
    case 10: // SQLITE_IOERR: a disk that fails and one that is full look alike here
      return new MagicError("storage_full", `the disk refused a read or write: ${message}`, options);
    default:
      return null;
  }
}
