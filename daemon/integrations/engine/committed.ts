// The state of a sync as it was kept. People edit it: what nobody can go on from is refused before a row is read.
import { MagicError } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import type { CommittedState } from "./destination.ts";

/** A row of `_magic_state`; none: nothing was committed. @throws MagicError source_failed */
export function committedIn(
  row: { readonly state: string | null; readonly schema: string | null } | undefined,
  table: string,
): CommittedState {
  const member = (text: string | null | undefined): unknown => (text ? JSON.parse(text) : null);
  try {
    const found = committedOf({ state: member(row?.state), schema: member(row?.schema) });
    if (found) return found;
  } catch {
    // Said below.
  }
  throw new MagicError(
    "source_failed",
    `The state of this sync in ${table} cannot be read: mend its row, or delete it and run a full refresh. It was left as it is.`,
  );
}

/** Absent members as nulls; null: it cannot be read. */
export function committedOf(found: unknown): CommittedState | null {
  if (!isObject(found)) return null;
  const { state = null, schema = null } = found;
  return isState(state) && isSchema(schema) ? ({ state, schema } as CommittedState) : null;
}

// A number is meant as its text.
function isState(state: unknown): boolean {
  if (state === null) return true;
  return isObject(state) && ["string", "number"].includes(typeof (state["cursor"] ?? ""));
}

function isSchema(schema: unknown): boolean {
  if (schema === null) return true;
  if (!isObject(schema)) return false;
  const { columns, primaryKey, mapping = null } = schema;
  const isColumn = (column: unknown) =>
    isObject(column) && typeof column["name"] === "string" && isType(column["type"]);
  return (
    Array.isArray(columns) &&
    columns.every(isColumn) &&
    Array.isArray(primaryKey) &&
    primaryKey.every((name) => typeof name === "string") &&
    (mapping === null || isObject(mapping))
  );
}

function isType(type: unknown): boolean {
  return isObject(type) && typeof type["kind"] === "string" && (type["kind"] !== "array" || isType(type["items"]));
}
