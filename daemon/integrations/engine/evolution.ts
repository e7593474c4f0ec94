// When the source's schema and the destination's differ: new columns are added, widened types widened, anything else stops the run.
import { MagicError } from "#contract/errors.ts";
import { type Column, type ColumnType, type TableSchema, typeName } from "./types.ts";

export interface Changes {
  /** Columns that the destination lacks. */
  readonly add: readonly Column[];
  /** Columns that the destination must widen to the source's type. */
  readonly widen: readonly Column[];
}

/** Throws schema_drift where the source changed since `before` in a way that cannot be followed; `selected`: the columns asked for. */
export function checkDrift(
  before: TableSchema | null,
  now: TableSchema,
  selected: readonly string[] | null,
  object: string,
): void {
  for (const old of before?.columns ?? []) {
    const column = now.columns.find(({ name }) => name === old.name);
    if (!column) {
      if (selected !== null && !selected.includes(old.name)) continue;
      throw drift(
        `Column ${JSON.stringify(old.name)} of ${object} has gone since the last run: run a full refresh (--full-refresh), or name the columns that are left (--columns).`,
      );
    }
    if (column.blank || old.blank) continue;
    if (!holds(column, old) && !(sameFamily(column.type, old.type) && holds(old, column)))
      throw drift(
        `Column ${JSON.stringify(old.name)} of ${object} was ${nameOf(old)} and is now ${nameOf(column)}: run a full refresh (--full-refresh), which goes on where the destination's column can take it.`,
      );
  }
}

/** The columns, with a mark on those whose values alone tell the type and have told a narrower one in the run `before`. */
export function grown(columns: readonly Column[], before: TableSchema | null): readonly Column[] {
  return columns.map((column) => {
    const old = column.untyped && before?.columns.find(({ name }) => name === column.name);
    return old && !old.blank && holds(column, old) && !holds(old, column) ? { ...column, grown: true } : column;
  });
}

/** What the destination's table must change to take `columns`; throws schema_drift where no change can. */
export function planChanges(columns: readonly Column[], existing: readonly Column[], table: string): Changes {
  const add: Column[] = [];
  const widen: Column[] = [];
  for (const column of columns) {
    const target = existing.find(({ name }) => name === column.name);
    if (!target) add.push(column);
    else if (accepts(target, column) && !(column.grown && holds(column, target) && !holds(target, column))) continue;
    else if (holds(column, target)) widen.push(column);
    else
      throw drift(
        `Column ${JSON.stringify(column.name)} of ${table} is ${nameOf(target)} and cannot take the source's ${nameOf(column)} without changing values: alter it there, map the source's to another name, leave it out (--columns), or drop the table, which is then made anew.`,
      );
  }
  return { add, widen };
}

/** Refuses columns that the table computes itself, where nobody can see beforehand whether it comes to the source's values. */
export function refuseComputed(columns: readonly Column[], computed: readonly string[], table: string): void {
  const names = columns.map(({ name }) => name).filter((name) => computed.includes(name));
  if (names.length === 0) return;
  throw new MagicError(
    "destination_refused",
    `${table} computes ${names.map((name) => JSON.stringify(name)).join(", ")} itself: leave it out (name the other columns with --columns), or choose another table. Nothing was changed.`,
  );
}

/** Columns of the table that no value comes for any more, and that can be null. */
export function leftNull(
  { left }: { readonly left: readonly string[] },
  existing: readonly (Column & { readonly generated?: boolean })[] = [],
): readonly string[] {
  return existing.flatMap(({ name, nullable, generated }) =>
    nullable && !generated && left.includes(name) ? name : [],
  );
}

/** The table's columns after `wider` took the place of those of their names. */
export function widened(columns: readonly Column[], wider: readonly Column[]): readonly Column[] {
  return columns.map((column) => wider.find(({ name }) => name === column.name) ?? column);
}

/** True where every value of `from` is a value of `into`, of the same kind of thing: a widening (int to bigint, varchar(10) to text). */
export function holds(into: Column, from: Column): boolean {
  if ((into.type.kind === "timestamp" || into.type.kind === "time") && into.type.kind === from.type.kind)
    return into.type.zone === from.type.zone && fractionOf(into) >= fractionOf(from);
  if (sameText(into, from)) return true;
  const a = into.type;
  const b = from.type;
  if (a.kind === "string" && b.kind === "string") return lengthOf(into) >= lengthOf(from);
  if (a.kind === "int" && b.kind === "int") return a.bits >= b.bits;
  if (a.kind === "float" && b.kind === "float") return a.bits >= b.bits;
  if (a.kind === "decimal" && b.kind === "int")
    return (a.scale ?? 0) >= 0 && integerDigits(a) >= (b.bits === 16 ? 5 : b.bits === 32 ? 10 : 19);
  if (a.kind === "decimal" && b.kind === "decimal")
    return (
      integerDigits(a) >= integerDigits(b) &&
      (a.precision === undefined || (b.precision !== undefined && (a.scale ?? 0) >= (b.scale ?? 0)))
    );
  if (a.kind === "json" && b.kind === "json") return true;
  if (a.kind === "array" && b.kind === "array")
    return holds(
      { name: "", nullable: true, type: a.items, ...element(into) },
      { name: "", nullable: true, type: b.items, ...element(from) },
    );
  return false;
}

// Beyond widening: a destination that people made may hold any value as text, or parse values that had no type.
function accepts(target: Column, column: Column): boolean {
  if (holds(target, column)) return true;
  if (column.untyped || column.blank) return true;
  const { kind } = target.type;
  // Of a text whose length nobody declared, the values that are too long are rejected one by one.
  if (kind === "string")
    return (
      lengthOf(target) === Number.POSITIVE_INFINITY || (column.type.kind === "string" && column.native === undefined)
    );
  if (column.type.kind === "int" && column.type.bits < 64 && kind === "float") return target.type.bits === 64;
  // MySQL's booleans are tinyint(1): what is neither 0 nor 1 is rejected row by row.
  if (column.type.kind === "int" && column.type.bits === 16 && kind === "bool") return true;
  // Digits and fields that such an interval lacks would be dropped without a word.
  if (/^interval[ (]/.test(target.native ?? "") && !column.untyped) return false;
  if (column.type.kind === "string" || column.type.kind === "other")
    return kind === "uuid" || kind === "json" || kind === "other" || kind === "array";
  return column.type.kind === "json" && kind === "array";
}

function sameText(a: Column, b: Column): boolean {
  if (a.native !== undefined && b.native !== undefined) return a.native === b.native;
  return a.type.kind !== "other" && a.type.kind !== "string" && JSON.stringify(a.type) === JSON.stringify(b.type);
}

function sameFamily(a: ColumnType, b: ColumnType): boolean {
  const family = ({ kind }: ColumnType) => (kind === "int" || kind === "decimal" ? "exact number" : kind);
  return family(a) === family(b);
}

function element(column: Column): { native?: string } {
  return column.native?.endsWith("[]") ? { native: column.native.slice(0, -2) } : {};
}

function lengthOf(column: Column): number {
  if (column.native === '"char"') return 1;
  // 63 bytes, of which a character may take four.
  if (column.native === "name") return 15;
  const limit = /^(?:character varying|character|varchar|char)\((\d+)\)$/.exec(column.native ?? "");
  return limit ? Number(limit[1]) : Number.POSITIVE_INFINITY;
}

// `timestamp(3) without time zone`: digits of the seconds' fraction; six where nothing is said.
function fractionOf(column: Column): number {
  const digits = /^timestamp\((\d)\)|^time\((\d)\)/.exec(column.native ?? "");
  return Number(digits?.[1] ?? digits?.[2] ?? 6);
}

function integerDigits(type: ColumnType & { kind: "decimal" }): number {
  return type.precision === undefined ? Number.POSITIVE_INFINITY : type.precision - (type.scale ?? 0);
}

function nameOf(column: Column): string {
  return column.native ?? typeName(column.type);
}

function drift(detail: string): MagicError {
  return new MagicError("schema_drift", `${detail} Nothing was changed.`);
}
