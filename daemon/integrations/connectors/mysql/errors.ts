// MySQL's and MariaDB's errors as ours.
import { type ErrorCode, isMagicError, MagicError } from "#contract/errors.ts";
import { isTlsFailure } from "../../engine/tls-failure.ts";

export interface ServerError extends Error {
  readonly code?: string;
  readonly errno?: number;
}

const byNumber: Readonly<Record<number, ErrorCode>> = {
  1045: "credentials_rejected",
  1698: "credentials_rejected",
  1251: "credentials_rejected",
  // No place to come from; a password that has expired, at the first statement or before; an account that is locked, also MariaDB's.
  1130: "credentials_rejected",
  1820: "credentials_rejected",
  1862: "credentials_rejected",
  3118: "credentials_rejected",
  4151: "credentials_rejected",
  1044: "permission_denied",
  1142: "permission_denied",
  1143: "permission_denied",
  1227: "permission_denied",
  1049: "object_not_found",
  1146: "object_not_found",
  1054: "object_not_found",
  1290: "destination_refused",
  1792: "destination_refused",
  1836: "destination_refused",
  1114: "destination_refused",
  1021: "destination_refused",
  // Of a table's definition; of a row see below.
  1118: "destination_refused",
  1713: "destination_refused",
  // Too many connections, of all, from the host that failed often, of the user; what the user may do in an hour is used up.
  1040: "unreachable",
  1129: "unreachable",
  1203: "unreachable",
  1226: "unreachable",
  1053: "connection_lost",
  1927: "connection_lost",
  1317: "connection_lost",
};
/**
 * A matter of single rows: out of range, truncated, wrong value, too long, too large for a page, duplicate, null, check, no row that it
 * refers to, no partition, no geometry or none of the column's, JSON that it cannot hold, what a trigger signals.
 */
const rowErrors = new Set([
  1048, 1062, 1063, 1118, 1169, 1264, 1265, 1292, 1364, 1366, 1406, 1411, 1416, 1452, 1525, 1526, 1586, 1643, 1644,
  1690, 1713, 3037, 3140, 3150, 3151, 3157, 3616, 3617, 3643, 3819, 4025,
]);

export function isRowError(thrown: unknown): thrown is ServerError {
  return rowErrors.has((thrown as ServerError | null)?.errno ?? 0);
}

/** For a statement that takes rows away or marks them: what a trigger signals is of no record. Any other error is thrown as it is. */
export function keptByTrigger(thrown: unknown): never {
  const error = thrown as ServerError;
  if (!isSignal(error)) throw error;
  throw new MagicError("destination_refused", `A trigger keeps rows that are to go: ${error.message}`, {
    cause: error,
  });
}

const isSignal = ({ errno }: ServerError) => errno === 1643 || errno === 1644;

export function mysqlError(thrown: unknown, side: "source" | "destination", doing: string): MagicError {
  if (isMagicError(thrown)) return thrown;
  const error = legible(thrown as ServerError);
  const message = error instanceof Error ? error.message || (error.code ?? "") : String(thrown);
  return new MagicError(codeOf(error, message, side), `${side} MySQL, ${doing}: ${message}`, { cause: thrown });
}

/** What came over the connection was not MySQL's. */
export const garbled = (cause: Error) =>
  new Error(`Connection lost: what came over it is not MySQL's protocol (${cause.message})`, { cause });

// What is neither the server's word nor the socket's, which have a number or a code, the driver made of bytes that it could not read.
function legible(error: ServerError): ServerError {
  if (!(error instanceof Error) || error instanceof TypeError || error.errno !== undefined) return error;
  const known = error.code !== undefined && !(error instanceof RangeError);
  return known || /closed state|Connection lost|does not speak/.test(error.message) ? error : garbled(error);
}

function codeOf(error: ServerError, message: string, side: "source" | "destination"): ErrorCode {
  const known = byNumber[error.errno ?? 0];
  if (known) return known;
  const code = error.code ?? "";
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOENT)$/.test(code)) return "unreachable";
  if (/does not speak/.test(message) || isTlsFailure(error)) return "unreachable";
  if (/^(PROTOCOL_CONNECTION_LOST|ECONNRESET|EPIPE)$/.test(code) || /closed state|Connection lost/i.test(message))
    return "connection_lost";
  // At the source it is a view's function that fails.
  if (isRowError(error)) return side === "source" && isSignal(error) ? "source_failed" : "bad_record";
  return side === "source" ? "source_failed" : "destination_refused";
}
