// Quoting for PostgreSQL.
import type { ObjectName } from "../../engine/name.ts";

export function ident(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function literal(text: string): string {
  return text.includes("\\")
    ? ` E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`
    : `'${text.replaceAll("'", "''")}'`;
}

export function qualified(object: ObjectName): string {
  return object.schema === null ? ident(object.name) : `${ident(object.schema)}.${ident(object.name)}`;
}

export function identList(names: readonly string[], prefix = ""): string {
  return names.map((name) => prefix + ident(name)).join(", ");
}
