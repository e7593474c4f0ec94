// An object as discovery shows it, from its schema.
import type { DiscoveredObject } from "#contract/sync.ts";
import { jsonSchemaOf, type TableSchema } from "./types.ts";

export function discoveredObject(name: string, table: TableSchema, records: number | null): DiscoveredObject {
  const cursors = table.columns.filter(({ type }) => ["int", "timestamp", "date"].includes(type.kind));
  return {
    name,
    schema: {
      type: "object",
      properties: Object.fromEntries(table.columns.map((column) => [column.name, jsonSchemaOf(column)])),
      required: table.columns.filter(({ nullable }) => !nullable).map((column) => column.name),
    },
    primary_key: table.primaryKey,
    cursor_candidates: cursors.map((column) => column.name),
    records,
  };
}
