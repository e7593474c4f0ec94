// Rows as they come, counted against the caps.
import { MagicError } from "#contract/errors.ts";
import { MAX_DIMENSIONS } from "#contract/runtime-limits.ts";
import { caps } from "./driver.ts";

export interface Meter {
  /** Throws `limit_exceeded` when the row is one too many or the bytes are. */
  add(row: Record<string, unknown>): void;
  readonly rows: Record<string, unknown>[];
}

export function openMeter(): Meter {
  const rows: Record<string, unknown>[] = [];
  let bytes = 0;
  return {
    rows,
    add(row) {
      for (const key in row) {
        const value = row[key];
        bytes += key.length + (typeof value === "string" ? value.length : 16);
      }
      rows.push(row);
      if (rows.length > caps.rows) throw new MagicError("limit_exceeded", `the query has more than ${caps.rows} rows`);
      if (bytes > caps.bytes)
        throw new MagicError("limit_exceeded", `the query's rows have more than ${caps.bytes} bytes`);
    },
  };
}

/** A driver's value as JSON can carry it: bytes as base64, times as RFC 3339, integers beyond 2^53 and what is not a number as text. */
export function wireValue(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64");
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  return value;
}

/** Marked times and bytes in the database's form, marked JSON as what it holds. */
export function unmarked(
  value: unknown,
  timeOf: (rfc3339: string) => string,
  bytesOf: (base64: string) => unknown,
): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { $bytes, $time, $json } = value as { $bytes?: unknown; $time?: unknown; $json?: unknown };
  if ($json !== undefined) return $json;
  if (typeof $bytes === "string") return bytesOf($bytes);
  return typeof $time === "string" ? timeOf($time) : value;
}

/** Each member of a list, and of the lists in it. */
export function eachMember(value: unknown, change: (member: unknown) => unknown, dimensions = 0): unknown {
  if (!Array.isArray(value) || dimensions === MAX_DIMENSIONS) return change(value);
  return value.map((member: unknown) => eachMember(member, change, dimensions + 1));
}

export const bytesOf = (base64: string): Uint8Array => Buffer.from(base64, "base64");
const asIs = (text: string): string => text;

/** A parameter as a driver takes it whose database has no arrays: a list is JSON, its bytes base64 and its times RFC 3339. */
export function driverValue(value: unknown, timeOf = asIs): unknown {
  if (Array.isArray(value)) return eachMember(value, (member) => unmarked(member, asIs, asIs));
  return unmarked(value, timeOf, bytesOf);
}

/** The database's refusal, without the driver's own fields; its message is the developer's to read. `hint`: what to do about it. */
export function refused(error: unknown, hint = ""): MagicError {
  const { message, code } = error as { message?: string; code?: unknown };
  return new MagicError("upstream_error", `the database answered: ${message || String(code ?? error)}${hint}`, {
    cause: error,
  });
}

/** Whether that is because the session only reads: what SQLite (SQLITE_READONLY), PostgreSQL and MySQL call it. */
export function refusedAsWrite(error: unknown): boolean {
  const { errcode, code, errno } = ((error as Error).cause ?? {}) as Record<string, unknown>;
  return (Number(errcode) & 0xff) === 8 || code === "25006" || errno === 1792;
}
