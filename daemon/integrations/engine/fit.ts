// What a destination's type would drop without a word: decimal places, seconds' fractions, a time of day, an offset, blanks. Databases
// round such values while they read them; here they are rejected, with the reason.
import { holds } from "./evolution.ts";
import type { Column, Row } from "./types.ts";

export interface Misfit {
  readonly column: string;
  readonly reason: string;
}

type Check = (text: string) => string | null;

/** Says of a row what would be lost in the columns that are there; null: nothing can be. */
export function misfitsOf(
  columns: readonly Column[],
  existing: readonly Column[] | null,
): ((row: Row) => Misfit | null) | null {
  const checks = columns.flatMap((column, at) => {
    const target = existing?.find(({ name }) => name === column.name);
    const check = target && !holds(target, column) ? checkOf(target) : null;
    return check ? [{ at, column: column.name, check }] : [];
  });
  if (checks.length === 0) return null;
  return (row) => {
    for (const { at, column, check } of checks) {
      const value = row[at];
      const reason = typeof value === "string" ? check(value) : null;
      if (reason !== null) return { column, reason };
    }
    return null;
  };
}

/** True where whole files may be handed over unread: PostgreSQL's own reading of them loses nothing that people write. */
export function readsExactly(columns: readonly Column[], existing: readonly Column[] | null): boolean {
  return columns.every((column) => {
    const target = existing?.find(({ name }) => name === column.name);
    return !target || holds(target, column) || checkOf(target) === null || target.native === "timestamp with time zone";
  });
}

function checkOf(target: Column): Check | null {
  const native = target.native ?? "";
  const { type } = target;
  const digits = Number(/^(?:timestamp|time|interval)[a-z ]*\((\d)\)/.exec(native)?.[1] ?? 6);
  if (type.kind === "decimal" && type.scale !== undefined) return decimals(type.scale, native);
  if (type.kind === "date")
    return (text) =>
      text.includes(":") && !midnight.test(text) ? `a time of day does not fit ${native || "date"}` : null;
  if (type.kind === "timestamp" && !type.zone)
    return (text) =>
      fraction(text, digits) ??
      (offset.test(text) ? `an offset does not fit ${native || "a timestamp without zone"}` : null);
  if (type.kind === "timestamp" || type.kind === "time" || /^interval/.test(native))
    return (text) => fraction(text, digits);
  const length = Number(/^character varying\((\d+)\)/.exec(native)?.[1] ?? 0);
  if (length > 0)
    return (text) =>
      text.endsWith(" ") && [...text].length > length ? `the blanks at its end do not fit ${native}` : null;
  return null;
}

const midnight = /[T ]00:00(:00(\.0+)?)?(Z|[+-]00(:?00)?)?$/i;
const offset = /:\d\d(?:\.\d+)? ?[+-](?!00(?::?00)?$)\d\d/;

function fraction(text: string, digits: number): string | null {
  const found = /:\d\d\.(\d+)/.exec(text)?.[1] ?? "";
  return /[1-9]/.test(found.slice(digits)) ? `more than ${digits} digits of a second's fraction` : null;
}

function decimals(scale: number, native: string): Check {
  return (text) => {
    const parts = /^\s*[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,5}))?\s*$/.exec(text);
    if (!parts) return null;
    const [, whole = "", places = "", exponent = "0"] = parts;
    const digits = whole + places;
    // The digit at which 10^-scale stands.
    const end = whole.length + Number(exponent) + scale;
    return /[1-9]/.test(end < 0 ? digits : digits.slice(end))
      ? `more decimal places than ${native || `scale ${scale}`} holds`
      : null;
  };
}
