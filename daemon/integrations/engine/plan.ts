// What a run will do, decided before a row is read: names, keys, what happens to rows that have gone.
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import type { SyncSpec } from "#contract/sync.ts";
import { DELETED_AT, type WritePlan } from "./destination.ts";
import { parseObjectName } from "./name.ts";
import { databasePlace, readServerUrl } from "./server-url.ts";
import type { TableSchema } from "./types.ts";

/** Refuses what a run cannot do, before anything is opened. */
export function checkSpec(spec: SyncSpec): void {
  if (spec.mode === "cdc" && !tellsChanges(spec.source))
    throw new MagicError(
      "not_supported",
      "Mode cdc reads PostgreSQL tables: elsewhere use incremental (with --deletes soft or hard to follow deletions) or full_refresh.",
    );
  if (/^_magic_/i.test(parseObjectName(spec.destination.object).name))
    throw new MagicError(
      "validation_failed",
      "Tables that begin with _magic_ are kept for our own: choose another name.",
    );
  if (spec.columns?.length === 0)
    throw new MagicError("validation_failed", "No column is to be synced: name at least one.");
  const twice = spec.primary_key?.find((name, at, all) => all.indexOf(name) !== at);
  if (twice !== undefined)
    throw new MagicError("validation_failed", `The primary key names ${JSON.stringify(twice)} twice.`);
  if (!(spec.stall_timeout_s > 0))
    throw new MagicError("validation_failed", "The stall time-out must be more than 0 seconds.");
}

/** Whether the source finds whatever has changed by itself, without a cursor. */
export function tellsChanges({ url }: Pick<SyncSpec["source"], "url">): boolean {
  return /^postgres(ql)?:$/.test(readServerUrl(url)?.protocol ?? "");
}

/**
 * How rows are written, from the spec and the source's schema. `snapshot`: it is one consistent picture. `refill`: the rows that are there
 * are this sync's own, and all of them are read again. `apart`: they are no database's, so none is removed.
 */
export function writePlan(
  spec: SyncSpec,
  source: TableSchema,
  snapshot: boolean,
  refill: boolean,
  former: { readonly key: readonly string[]; readonly columns: readonly string[] } | null,
  apart: boolean,
): WritePlan {
  const mapping = new Map(Object.entries(spec.mapping ?? {}));
  const rename = (name: string) => mapping.get(name) ?? name;
  for (const name of mapping.keys())
    if (!source.columns.some((column) => column.name === name))
      throw new MagicError("validation_failed", `The mapping names column ${JSON.stringify(name)}, which is not read.`);
  const columns = source.columns.map((column) => ({ ...column, name: rename(column.name) }));
  const names = new Set<string>();
  for (const { name } of columns) {
    if (names.has(name))
      throw new MagicError("validation_failed", `Two columns would be named ${JSON.stringify(name)}.`);
    if (name === DELETED_AT)
      throw new MagicError(
        "validation_failed",
        "The column _magic_deleted_at is kept for our mark of deleted rows: map it to another name.",
      );
    if (!name.isWellFormed())
      throw new MagicError(
        "validation_failed",
        `A column's name holds half of a surrogate pair (${JSON.stringify(name)}): map it to another one, or leave it out.`,
      );
    names.add(name);
  }
  const primaryKey = source.primaryKey.map(rename);
  for (const name of primaryKey)
    if (!names.has(name))
      throw new MagicError(
        "validation_failed",
        `The primary key's column ${JSON.stringify(name)} is not among the columns to sync.`,
      );
  // Forgetting the state replaces what came of it: rows that were appended must not come twice.
  const replace = spec.mode === "full_refresh" || spec.reset === true || (refill && primaryKey.length === 0);
  const deletes = spec.deletes ?? (replace || (spec.mode === "cdc" && !apart) ? "hard" : "ignore");
  if (primaryKey.length === 0 && (deletes === "soft" || (deletes === "hard" && !replace)))
    throw new MagicError(
      "validation_failed",
      `Deletes "${deletes}" need a primary key: ${columns.length > 0 ? "name it with --primary-key" : `${spec.source.object} has no column yet`}.`,
    );
  const kind = replace ? "replace" : primaryKey.length > 0 ? "upsert" : "append";
  // What a record is refused for may go with the rows that have gone: the run judges it then.
  const judgedLater = snapshot && kind === "upsert" && deletes === "hard";
  return {
    kind,
    columns,
    primaryKey,
    formerKey: former?.key ?? null,
    left: former?.columns.filter((name) => !names.has(name)) ?? [],
    keyCertain: snapshot && spec.primary_key === null,
    deletes,
    cursorField: spec.cursor_field === null ? null : rename(spec.cursor_field),
    onBadRecord: judgedLater ? "quarantine" : spec.on_bad_record,
    sourceSchema: { ...source, mapping: spec.mapping },
  };
}

/** Where records come from, as a digest: an address without credentials. */
export function placeOf({ url, place: led = "" }: SyncSpec["source"]): string {
  const read = readServerUrl(url);
  const port = defaultPorts[read?.protocol ?? ""];
  const address = !read || port === undefined ? place(url.replace(/^sqlite:(\/\/)?/i, "")) : database(read, port);
  return createHash("sha256").update(`${address} ${led}`).digest("hex").slice(0, 16);
}

const defaultPorts: Readonly<Record<string, number>> = {
  "postgres:": 5432,
  "postgresql:": 5432,
  "mysql:": 3306,
  "mariadb:": 3306,
};

function database(url: URL, defaultPort: number): string {
  const { host, port } = databasePlace(url, defaultPort);
  return JSON.stringify([defaultPort, host.toLowerCase(), port, url.pathname]);
}

/** The same id for the same two ends, whatever the credentials: so that a command without a state file resumes. */
export function derivedSyncId(spec: SyncSpec): string {
  const parts = [place(spec.source.url), spec.source.object, place(spec.destination.url), spec.destination.object];
  return `sync_${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 26)}`;
}

function place(url: string): string {
  const read = readServerUrl(url);
  if (!read) return resolve(url);
  const { protocol, host, pathname, searchParams } = read;
  return `${protocol}//${host}${pathname}${searchParams.get("host") ?? ""}`;
}
