// Values whose form differs between the source's type and that of a column that was there before: JSON arrays into PostgreSQL's, bytes
// that CSV and JSON Lines write as text.
import { isJson } from "#shared/json-text.ts";
import type { Column, Row, Value } from "./types.ts";

/** A function over rows, or null where every value goes as it is. */
export function converterOf(
  columns: readonly Column[],
  existing: readonly Column[] | null,
): ((row: Row) => Row) | null {
  const places = columns.flatMap((column, at) => {
    const kind = existing?.find(({ name }) => name === column.name)?.type.kind;
    if (column.fromJson && column.type.kind === "string" && kind === "json") return [{ at, convert: jsonString }];
    // Of a file whose texts have no type; elsewhere a text that looks so is one.
    if (kind === "bytes" && column.type.kind === "string" && (column.fromJson || (column.untyped && column.native)))
      return [{ at, convert: bytesOf }];
    if (column.type.kind !== "json" || kind === undefined || kind === "json" || kind === "string") return [];
    return [{ at, convert: kind === "array" ? arrayLiteral : bareText }];
  });
  if (places.length === 0) return null;
  return (row) => {
    for (const { at, convert } of places) row[at] = convert(row[at] ?? null);
    return row;
  };
}

// What was a JSON string is one again.
function jsonString(value: Value): Value {
  return typeof value === "string" ? JSON.stringify(value) : value;
}

function bytesOf(value: Value): Value {
  return typeof value === "string" && isHexBytes(value) ? Buffer.from(value.slice(2), "hex") : value;
}

/** True for bytes as CSV and JSON Lines write them: `\x00ff`. */
export function isHexBytes(text: string): boolean {
  return text.startsWith("\\x") && text.length % 2 === 0 && !/[^0-9a-f]/i.test(text.slice(2));
}

// A JSON string in a column of another type is its text: "NaN" among numbers.
function bareText(value: Value): Value {
  return typeof value === "string" && value.startsWith('"') && isJson(value) ? (JSON.parse(value) as string) : value;
}

// What is no JSON array goes on as it is: the destination refuses it, and says why.
function arrayLiteral(value: Value): Value {
  if (typeof value !== "string" || !value.startsWith("[")) return value;
  try {
    return literalOf(JSON.parse(value, keepDigits) as unknown[]);
  } catch {
    return value;
  }
}

/** A JSON array as PostgreSQL's array literal; numbers keep their digits. */
export function literalOf(items: readonly unknown[]): string {
  const parts = items.map((item) => {
    if (item === null || item === undefined) return "NULL";
    if (Array.isArray(item)) return literalOf(item);
    const text = typeof item === "string" ? item : jsonText(item);
    return item instanceof Digits || typeof item === "boolean" ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
  });
  return `{${parts.join(",")}}`;
}

/** JSON text of a parsed value, numbers as they were written. */
export function jsonText(value: unknown): string {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, member]) => `${JSON.stringify(key)}:${jsonText(member)}`)
      .join(",")}}`;
  return JSON.stringify(value) ?? "null";
}

/** A number of a JSON text as it was written. */
export class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A reviver for JSON.parse that keeps every number's digits. */
export function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === "number" ? new Digits(context?.source ?? String(value)) : value;
}
