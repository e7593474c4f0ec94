// Which rows hold values that a column of the destination would change without a word: databases round, cut and fold such values while
// they read them; here they are rejected, with the reason. The checks themselves stand in fit-checks.ts.
import { holds } from "./evolution.ts";
import { type Check, checkOf } from "./fit-checks.ts";
import type { FieldCheck } from "./source.ts";
import type { Column, Row, Value } from "./types.ts";

export interface Misfit {
  readonly column: string;
  readonly reason: string;
}

/** A column that is there already; `fit` where its system has rules of its own, else those of PostgreSQL's type names hold. */
export interface ExistingColumn extends Column {
  /** The check for values of `source`; null: none can be changed. */
  fit?(source: Column): ValueCheck | null;
}

export type ValueCheck = (value: Value) => string | null;

/** The fields to be looked at on their way into the columns that are there, and those of loose columns into new ones where `fitNew` says so. */
export function checksOf(
  columns: readonly Column[],
  existing: readonly ExistingColumn[] | null,
  fitNew?: (column: Column) => ValueCheck | null,
): readonly (FieldCheck & { readonly column: string })[] {
  return columns.flatMap((column, at) => {
    const target = existing?.find(({ name }) => name === column.name);
    const check = target ? checkFor(target, column) : column.loose && fitNew?.(column);
    return check ? [{ at, column: column.name, check }] : [];
  });
}

/** Says of a row what would be lost; null: nothing can be. */
export function misfitsOf(checks: ReturnType<typeof checksOf>): ((row: Row) => Misfit | null) | null {
  if (checks.length === 0) return null;
  return (row) => {
    for (const { at, column, check } of checks) {
      const reason = check(row[at] ?? null);
      if (reason !== null) return { column, reason };
    }
    return null;
  };
}

function checkFor(target: ExistingColumn, column: Column): ValueCheck | null {
  if (target.fit) return target.fit(column);
  return holds(target, column) && (!column.loose || target.loose) ? null : checkInto(target);
}

/** The check for values that go into a column of a PostgreSQL type, or come out of one that holds them to nothing. */
export function checkInto(column: Column): ValueCheck | null {
  const check = checkOf(column);
  return check && onText(check);
}

/** A check of texts as one of values. */
export function onText(check: Check): ValueCheck {
  return (value) => (typeof value === "string" ? check(value) : null);
}
