// How the checks go through a schema, and how they tell of what they find.
import { toPointer } from "../json-pointer.ts";
import { lists, maps, single } from "./keywords.ts";

export type Schema = Record<string, unknown>;

/** Tells of a problem of the schema at a pointer, or of one of its members. */
export type Add = (
  at: string,
  key: string | undefined,
  code: string,
  message: string,
  fix: string,
  value?: unknown,
) => void;

/** Visits every subschema, the schema itself first. */
export function walk(schema: unknown, at: string, visit: (schema: Schema, at: string) => void): void {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
  const node = schema as Schema;
  visit(node, at);
  for (const [path, sub] of children(node)) walk(sub, at + path, visit);
}

/** The schemas that stand in this one, or those behind some of its keywords, each with its pointer. */
export function* children(node: Schema, only?: ReadonlySet<string>): Generator<[path: string, schema: unknown]> {
  for (const [key, value] of Object.entries(node)) {
    if (only && !only.has(key)) continue;
    if (single.has(key) || key === "contentSchema") yield [toPointer([key]), value];
    else if (typeof value !== "object" || value === null) continue;
    else if (maps.has(key) || lists.has(key))
      for (const [name, sub] of Object.entries(value)) yield [toPointer([key, name]), sub];
  }
}
