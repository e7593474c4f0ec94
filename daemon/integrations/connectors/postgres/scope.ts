// Which rows of a table a run reads, in which parts, and where the next run goes on.
import { MagicError } from "#contract/errors.ts";
import type { SyncFailure } from "#contract/sync.ts";
import { checkReachable, cursorWentBackWarning, nullCursorWarning } from "../../engine/cursor.ts";
import { readInOrder } from "../../engine/keys.ts";
import { formatObjectName } from "../../engine/name.ts";
import type { Partition, ReadRequest, StreamState } from "../../engine/source.ts";
import { textOrder } from "../../engine/text-order.ts";
import type { TableInfo } from "./catalog.ts";
import type { PostgresLink } from "./connect.ts";
import { nothingHappened, takeHorizon, unseenSince } from "./horizon.ts";
import { lookBack } from "./look-back.ts";
import { ident, literal, qualified } from "./sql.ts";

// A table of more pages than this is read in ranges: progress is seen, and a destination may take them side by side.
const RANGE_PAGES = 131_072;

export interface Scope {
  /** SQL after WHERE; null: every row. */
  readonly condition: string | null;
  readonly order: string;
  readonly endState: StreamState | null;
  readonly changed: boolean;
  /** True: a row that is not read was there, as it is, when `state` was kept. */
  readonly exact: boolean;
  readonly warnings: readonly SyncFailure[];
}

// Which rows an incremental run reads, and where the next one goes on.
export async function planRead(link: PostgresLink, table: TableInfo, request: ReadRequest): Promise<Scope> {
  if (request.mode !== "incremental")
    return { condition: null, order: "", endState: null, changed: true, exact: false, warnings: [] };
  const parts = await partsOf(link, table);
  const stamped = (table.kind === "r" || table.kind === "p") && (await maySeeWriters(link, table));
  const oids = [table.oid, ...parts.map(({ oid }) => oid)];
  // Their rows do not tell who wrote them.
  const foreign = parts.filter(({ kind }) => kind === "f").map(({ oid }) => oid);
  const key = request.primaryKey ?? table.primaryKey;
  if (request.allChanges && (!stamped || key.length === 0 || foreign.length > 0))
    throw new MagicError(
      "validation_failed",
      `Mode cdc needs a table with a primary key (yours by --primary-key) whose row versions the role may see, and ${formatObjectName(table.object)} is none: use incremental or full_refresh.`,
    );
  // The horizon finds every changed row by itself; the cursor is then only shown.
  const field = request.cursorField ?? (request.allChanges ? (key[0] ?? null) : null);
  const column = table.columns.find(({ name }) => name === field);
  if (field === null || !column)
    throw new MagicError(
      "validation_failed",
      field === null
        ? `An incremental sync of ${formatObjectName(table.object)} needs a cursor field, e.g. ${suggestCursor(table)}.`
        : `${formatObjectName(table.object)} has no column ${JSON.stringify(field)} for the cursor.`,
    );
  if (stamped && foreign.length === 0 && request.state && (await nothingHappened(link, request.state)))
    return { condition: "false", order: "", endState: request.state, changed: false, exact: true, warnings: [] };
  const from = qualified(table.object);
  request.waiting(`the greatest ${field} of ${formatObjectName(table.object)}`);
  const keyed = key.length > 0;
  const without = stamped || keyed ? "false" : `EXISTS (SELECT FROM ${from} WHERE ${ident(field)} IS NULL)`;
  const name = formatObjectName(table.object);
  // max() knows fewer types than have an order: no uuid, no bytea.
  const at = `t.${ident(field)}`;
  const greatest = `(SELECT ${at} AS c FROM ${from} t WHERE ${at} IS NOT NULL ORDER BY ${at} DESC LIMIT 1) g`;
  // A key's own values say nothing of changes: behind another server's snapshot everything is read.
  const before = request.allChanges ? null : (request.state?.cursor ?? null);
  const since = before === null ? null : `${literal(before)}::${column.declared}`;
  // What took a view's place has rows before that one's cursor; a table's tell by themselves.
  const less =
    since === null || (stamped && keyed)
      ? "false"
      : keyed
        ? `NOT ${lookBack("g.c", since, column, true)}`
        : `g.c < ${since}`;
  const [row] = await link
    .rows<{ cursor: string | null; without: string; back: string | null }>(
      `SELECT g.c::text AS cursor, (${without})::text AS without, (${less})::text AS back FROM (SELECT) one LEFT JOIN ${greatest} ON true`,
    )
    .catch((error: unknown) => {
      if ((error as { code?: string }).code !== "42883") throw error;
      throw new MagicError(
        "validation_failed",
        `The cursor field ${JSON.stringify(field)} of ${name} is ${column.declared}, which has no order: name another one, or use full_refresh.`,
      );
    });
  // The rows themselves tell which of them are new.
  if (!stamped) checkReachable(row?.cursor ?? null, column, name);
  const taken = stamped ? await takeHorizon(link, from, oids, request.state, keyed) : null;
  const texts = {
    from,
    field: `${ident(field)}::text`,
    name: field,
    object: name,
    // Some collations do without.
    matches: `COLLATE "C" ~`,
    one: async (sql: string) =>
      Object.values((await link.rows<Record<string, string | null>>(sql))[0] ?? {})[0] ?? null,
  } as const;
  const asked = column.type.kind === "string" && (!stamped || foreign.length > 0);
  const other = asked ? await textOrder(texts, row?.cursor ?? null, before, keyed) : null;
  const back = other?.back ?? row?.back === "true";
  const scope = {
    order: readInOrder(request, table.primaryKey)
      ? ` ORDER BY ${(other?.by ?? [`${ident(table.object.name)}.${ident(field)}`]).map((part) => `${part} NULLS FIRST`).join(", ")}`
      : "",
    endState: {
      cursor: (back && taken?.behind ? null : (other?.greatest ?? row?.cursor)) ?? before,
      ...(taken ? { horizon: taken.horizon } : {}),
    },
    changed: true,
    exact: false,
    warnings: [
      ...(row?.without === "true" ? [nullCursorWarning(field, name)] : []),
      ...(back && !keyed && !stamped ? [cursorWentBackWarning(field, name, String(before))] : []),
    ],
  };
  if (!request.state) return { condition: null, ...scope };
  const unseen = stamped ? await unseenSince(link, request.state, oids, keyed, altered(table, request)) : null;
  const again = back && keyed ? null : (other?.later ?? lookBack(ident(field), since, column, keyed));
  if (!unseen) return { condition: again, ...scope };
  const found = [...(before === null ? [] : [other?.compare(">", before) ?? `${ident(field)} > ${since}`]), unseen];
  if (foreign.length > 0) found.push(`(tableoid IN (${foreign.join(", ")})${again === null ? "" : ` AND ${again}`})`);
  // Whoever is shown some rows only is shown others when a policy changes.
  const exact = taken?.later === true && foreign.length === 0 && !table.filtered;
  return { ...scope, condition: found.length === 1 ? unseen : `(${found.join(" OR ")})`, exact };
}

// Columns that the last run saw with another type, or did not see as there were none behind its last one.
function altered({ columns }: TableInfo, { known }: ReadRequest): string[] {
  if (!known) return [];
  const last = Math.max(...known.columns.map(({ place }) => place ?? Number.POSITIVE_INFINITY));
  return columns
    .filter(({ name, native, place = 0 }) => {
      const before = known.columns.find((column) => column.name === name);
      return before ? before.native !== native : place > last;
    })
    .map(({ name }) => name);
}

// xmin goes with the whole table: a role with a privilege on some columns only may not see it.
async function maySeeWriters(link: PostgresLink, { oid }: TableInfo): Promise<boolean> {
  const [row] = await link.rows<{ may: string }>(
    "SELECT has_column_privilege($1::oid, 'xmin', 'SELECT')::text AS may",
    [oid],
  );
  return row?.may === "true";
}

// Its partitions, theirs, and the tables that inherit from it.
function partsOf(link: PostgresLink, { oid }: TableInfo): Promise<{ oid: string; kind: string }[]> {
  return link.rows(
    `WITH RECURSIVE below AS (SELECT inhrelid AS oid FROM pg_inherits WHERE inhparent = $1::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN below b ON i.inhparent = b.oid)
     SELECT c.oid::text, c.relkind AS kind FROM below JOIN pg_class c ON c.oid = below.oid ORDER BY c.oid`,
    [oid],
  );
}

function suggestCursor(table: TableInfo): string {
  const names = table.columns
    .filter(({ type }) => type.kind === "timestamp" || type.kind === "int")
    .map(({ name }) => name);
  return names.length > 0 ? `--cursor-field ${names[0]}` : "a column whose value grows with every change";
}

export function partitionsOf(table: TableInfo, { condition, order }: Scope): Partition[] {
  if (table.kind !== "r" || condition !== null || order !== "" || table.pages <= RANGE_PAGES)
    return [{ id: "all", records: table.records }];
  const parts: Partition[] = [];
  for (let page = 0; page < table.pages; page += RANGE_PAGES) {
    const last = page + RANGE_PAGES >= table.pages;
    const share = Math.min(1, (table.pages - page) / RANGE_PAGES) * (RANGE_PAGES / table.pages);
    parts.push({
      id: last ? `${page}-` : `${page}-${page + RANGE_PAGES}`,
      records: table.records === null ? null : Math.round(table.records * share),
    });
  }
  return parts;
}

// A partition's id is its range of pages: `0-131072`; the last one is open.
export function where(partition: Partition, { condition, order }: Scope): string {
  const range = /^(\d+)-(\d*)$/.exec(partition.id);
  const parts = condition === null ? [] : [condition];
  if (range) parts.push(`ctid >= '(${range[1]},0)'::tid`);
  if (range?.[2]) parts.push(`ctid < '(${range[2]},0)'::tid`);
  return `${parts.length > 0 ? ` WHERE ${parts.join(" AND ")}` : ""}${order}`;
}
