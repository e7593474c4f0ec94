// Streams that are read from a number on.
import { type Context, native, text } from "../context.ts";
import { emptyParts, inject } from "../http/options.ts";
import { type Component, optionalChild, requiredText } from "../manifest/component.ts";
import type { Cursor } from "./cursor.ts";
import { fieldOf } from "./fields.ts";

export function countCursor(context: Context, component: Component): Cursor {
  const field = text(context, component, requiredText(component, "cursor_field"));
  const start = countOf(native(context, component, component["start_value"] ?? 0)) ?? 0;
  const option = optionalChild(component, "start_value_option");
  return {
    field,
    intervals: (cursor) => [{ variables: { start_value: asVariable(countOf(cursor) ?? start) }, end: null }],
    parts(each) {
      const parts = emptyParts();
      if (option) inject(context, option, each.variables["start_value"], parts);
      return parts;
    },
    advance(cursor, records) {
      const known = countOf(cursor);
      let latest = known;
      for (const record of records) {
        const value = countOf(fieldOf(record, field));
        if (value !== undefined && (latest === undefined || value > latest)) latest = value;
      }
      return latest === known ? cursor : String(latest);
    },
    narrowed(each, cursor) {
      const [known, before] = [countOf(cursor), countOf(each.variables["start_value"])];
      if (known === undefined || (before !== undefined && known <= before)) return undefined;
      return { ...each, variables: { start_value: asVariable(known) } };
    },
    halves: () => undefined,
    wanted: () => true,
    time: () => undefined,
    later: (a, b) => ((countOf(b) ?? 0) > (countOf(a) ?? 0) ? b : a),
    before: (cursor) => cursor,
    exhausted: () => false,
  };
}

// Ids that count on are longer than 2^53 with many vendors: rounded up, one would hide the records before it.
function countOf(value: unknown): bigint | number | undefined {
  const written = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
  if (/^[+-]?\d{1,400}$/.test(written)) return BigInt(written.replace(/^\+/, ""));
  return written !== "" && Number.isFinite(Number(written)) ? Number(written) : undefined;
}

// As everywhere: an integer that is none in JSON is text.
function asVariable(value: bigint | number): number | string {
  const number = Number(value);
  return typeof value === "bigint" && !Number.isSafeInteger(number) ? String(value) : number;
}
