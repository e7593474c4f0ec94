// PostgreSQL as a source: one REPEATABLE READ snapshot, read by COPY in ctid ranges; raw where the destination takes it.
import { isUtf8 } from "node:buffer";
import { MagicError } from "#contract/errors.ts";
import type { DiscoveredObject, Reject, SyncFailure } from "#contract/sync.ts";
import { checkReachable, nullCursorWarning } from "../../engine/cursor.ts";
import { readInOrder } from "../../engine/keys.ts";
import { formatObjectName } from "../../engine/name.ts";
import type {
  Batch,
  Partition,
  RawRequest,
  RawStream,
  ReadRequest,
  Source,
  SourceStream,
  StreamState,
} from "../../engine/source.ts";
import { jsonSchemaOf, type Row, type Value } from "../../engine/types.ts";
import { describeTable, listTables, selectSchema, type TableColumn, type TableInfo } from "./catalog.ts";
import { checksumSql } from "./checksum.ts";
import { type ConnectOptions, connectPostgres, type PostgresLink } from "./connect.ts";
import { lineReader, wholeLines } from "./copy-text.ts";
import { postgresError } from "./errors.ts";
import { framed } from "./frames.ts";
import { isOfThisDatabase, nothingHappened, takeHorizon, unseenSince } from "./horizon.ts";
import { lookBack } from "./look-back.ts";
import { ident, identList, literal, qualified } from "./sql.ts";

// A table of more pages than this is read in ranges: progress is seen, and a destination may take them side by side.
const RANGE_PAGES = 131_072;
// A larger table is proven by its counts: hashing it on both sides costs a quarter of the copy.
const CHECKSUM_PAGES = 8192;
// Somewhat less than JavaScript's longest text: destinations put it into lines of their own.
const LONGEST_LINE = 500 << 20;

export function postgresSource(options: Omit<ConnectOptions, "side">): Source {
  const links: PostgresLink[] = [];
  const connect = async () => {
    const link = await connectPostgres({ ...options, side: "source" });
    links.push(link);
    return link;
  };
  return {
    check: async () => {
      const link = await connect();
      await link.close();
    },
    discover: async () => {
      const link = await connect();
      const tables = await listTables(link).catch((error: unknown) => {
        throw postgresError(error, "source", "listing the tables");
      });
      return tables.map(discovered);
    },
    open: async (request) => openStream(await connect(), request, connect),
    knows: async (state) => {
      const link = await connect();
      return isOfThisDatabase(link, state).finally(() => link.close());
    },
    close: async () => {
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

function discovered(table: TableInfo): DiscoveredObject {
  const cursors = table.columns.filter(
    ({ type }) => type.kind === "int" || type.kind === "timestamp" || type.kind === "date",
  );
  return {
    name: formatObjectName(table.object),
    schema: {
      type: "object",
      properties: Object.fromEntries(table.columns.map((column) => [column.name, jsonSchemaOf(column)])),
      required: table.columns.filter(({ nullable }) => !nullable).map(({ name }) => name),
    },
    primary_key: table.primaryKey,
    cursor_candidates: cursors.map(({ name }) => name),
    records: table.records,
  };
}

async function openStream(
  link: PostgresLink,
  request: ReadRequest,
  connect: () => Promise<PostgresLink>,
): Promise<SourceStream> {
  const name = formatObjectName(request.object);
  const stop = () => link.kill();
  request.signal.addEventListener("abort", stop, { once: true });
  try {
    request.waiting(`the source's description of ${name}`);
    await beginSnapshot(link, request.object);
    const table = await describeTable(link, request.object);
    if (!table)
      throw new MagicError("object_not_found", `The source has no table ${name}, or the role may not see it.`);
    const { columns, schema } = selectSchema(table, request.columns, request.primaryKey);
    if (columns.length === 0)
      throw new MagicError(
        "validation_failed",
        `No column of ${name} is to be synced: ${request.columns ? "name at least one" : "it has none"}.`,
      );
    const scope = await planRead(link, table, request);
    const snapshot = request.mode === "full_refresh" ? await exportSnapshot(link) : null;
    request.waiting(`rows of ${name}`);
    return {
      schema,
      snapshot: true,
      changed: scope.changed,
      warnings: [...warningsOf(table, name), ...scope.warnings],
      partitions: partitionsOf(table, scope),
      rawFormats: ["pg-binary", "pg-text"],
      read: (partition) => readRows(link, table, columns, partition, scope, request),
      copyRaw: (partition, raw) => copyRaw(link, table, columns, partition, scope, raw),
      endState: () => scope.endState,
      count: async () => {
        request.waiting(`the count of ${name}`);
        const sql = `SELECT count(*)::text AS n FROM ${qualified(table.object)}`;
        const [row] = await link.rows<{ n: string }>(sql).catch((error: unknown) => {
          throw postgresError(error, "source", `counting ${name}`);
        });
        return row ? Number(row.n) : null;
      },
      checksum: (types) => {
        if (table.pages > CHECKSUM_PAGES || link.encoding !== "UTF8") return null;
        // A cast to another type is not what goes over: it drops the blanks at the end of character(n), and adds inet's netmask.
        if (columns.some(({ native = "" }, at) => /^(character\(|bpchar|inet$)/.test(native) && types[at] !== native))
          return null;
        const values = columns.map((column, at) => castTo(column, types[at] ?? "text"));
        return checksumBeside(connect, snapshot, checksumSql(qualified(table.object), values), request.signal);
      },
      keys: () => readKeys(link, table, schema.primaryKey, request),
      close: async () => {
        request.signal.removeEventListener("abort", stop);
        await link.close();
      },
    };
  } catch (error) {
    request.signal.removeEventListener("abort", stop);
    link.kill();
    throw postgresError(error, "source", `reading ${name}`);
  }
}

// A table that is truncated or rewritten after the snapshot was taken looks empty in it: the lock comes first, and keeps it as it is.
async function beginSnapshot(link: PostgresLink, object: ReadRequest["object"]): Promise<void> {
  const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  const [found] = await link.rows<{ name: string }>(
    "SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v')",
    [qualified(object)],
  );
  await link.run(begin);
  if (!found) return;
  try {
    await link.run(`LOCK TABLE ${found.name} IN ACCESS SHARE MODE`);
  } catch (error) {
    // Gone meanwhile, a privilege on some columns only, a view over what may not be locked: read without.
    if (!/^(42|0A|25)/.test((error as { code?: string }).code ?? "")) throw error;
    await link.run(`ROLLBACK; ${begin}`);
  }
}

// So that a second connection sees the same rows; null where the server cannot (some poolers and standbys).
async function exportSnapshot(link: PostgresLink): Promise<string | null> {
  try {
    const [row] = await link.rows<{ id: string }>("SELECT pg_export_snapshot() AS id");
    return row?.id ?? null;
  } catch {
    return null;
  }
}

// The checksum is computed on a connection of its own while the rows are copied, on one core.
async function checksumBeside(
  connect: () => Promise<PostgresLink>,
  snapshot: string | null,
  sql: string,
  signal: AbortSignal,
): Promise<string | null> {
  if (snapshot === null) return null;
  const link = await connect();
  const stop = () => link.kill();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await link.run(
      `SET max_parallel_workers_per_gather = 0; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT ${literal(snapshot)}`,
    );
    const [row] = await link.rows<{ checksum: string }>(sql);
    return row?.checksum ?? null;
  } finally {
    signal.removeEventListener("abort", stop);
    await link.close();
  }
}

interface Scope {
  /** SQL after WHERE; null: every row. */
  readonly condition: string | null;
  readonly order: string;
  readonly endState: StreamState | null;
  readonly changed: boolean;
  readonly warnings: readonly SyncFailure[];
}

// Which rows an incremental run reads, and where the next one goes on.
async function planRead(link: PostgresLink, table: TableInfo, request: ReadRequest): Promise<Scope> {
  if (request.mode !== "incremental")
    return { condition: null, order: "", endState: null, changed: true, warnings: [] };
  const parts = await partsOf(link, table);
  const stamped = table.kind === "r" || table.kind === "p";
  const oids = [table.oid, ...parts.map(({ oid }) => oid)];
  // Their rows do not tell who wrote them.
  const foreign = parts.filter(({ kind }) => kind === "f").map(({ oid }) => oid);
  // The horizon finds every changed row by itself; the cursor is then only shown.
  const field = request.cursorField ?? (request.anyCursor && stamped ? (table.primaryKey[0] ?? null) : null);
  const column = table.columns.find(({ name }) => name === field);
  if (field === null || !column)
    throw new MagicError(
      "validation_failed",
      field === null
        ? `An incremental sync of ${formatObjectName(table.object)} needs a cursor field, e.g. ${suggestCursor(table)}.`
        : `${formatObjectName(table.object)} has no column ${JSON.stringify(field)} for the cursor.`,
    );
  if (stamped && foreign.length === 0 && request.state && (await nothingHappened(link, request.state)))
    return { condition: "false", order: "", endState: request.state, changed: false, warnings: [] };
  const from = qualified(table.object);
  request.waiting(`the greatest ${field} of ${formatObjectName(table.object)}`);
  const keyed = (request.primaryKey ?? table.primaryKey).length > 0;
  const without = stamped || keyed ? "false" : `EXISTS (SELECT FROM ${from} WHERE ${ident(field)} IS NULL)`;
  const name = formatObjectName(table.object);
  // max() knows fewer types than have an order: no uuid, no bytea.
  const at = `t.${ident(field)}`;
  const greatest = `(SELECT ${at}::text FROM ${from} t WHERE ${at} IS NOT NULL ORDER BY ${at} DESC LIMIT 1)`;
  const [row] = await link
    .rows<{ cursor: string | null; without: string }>(`SELECT ${greatest} AS cursor, (${without})::text AS without`)
    .catch((error: unknown) => {
      if ((error as { code?: string }).code !== "42883") throw error;
      throw new MagicError(
        "validation_failed",
        `The cursor field ${JSON.stringify(field)} of ${name} is ${column.declared}, which has no order: name another one, or use full_refresh.`,
      );
    });
  // The rows themselves tell which of them are new.
  if (!stamped) checkReachable(row?.cursor ?? null, column, name);
  const horizon = stamped ? await takeHorizon(link, from, oids, request.state, keyed) : null;
  const before = request.state?.cursor ?? null;
  const scope = {
    order: readInOrder(request, table.primaryKey)
      ? ` ORDER BY ${ident(table.object.name)}.${ident(field)} NULLS FIRST`
      : "",
    endState: { cursor: row?.cursor ?? before, ...(horizon ? { horizon } : {}) },
    changed: true,
    warnings: row?.without === "true" ? [nullCursorWarning(field, name)] : [],
  };
  if (!request.state) return { condition: null, ...scope };
  const unseen = stamped ? await unseenSince(link, request.state, oids) : null;
  const since = before === null ? null : `${literal(before)}::${column.declared}`;
  const again = lookBack(ident(field), since, column, keyed);
  if (!unseen) return { condition: again, ...scope };
  const found = [...(since === null ? [] : [`${ident(field)} > ${since}`]), unseen];
  if (foreign.length > 0) found.push(`(tableoid IN (${foreign.join(", ")})${again === null ? "" : ` AND ${again}`})`);
  return { condition: found.length === 1 ? unseen : `(${found.join(" OR ")})`, ...scope };
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

function warningsOf(table: TableInfo, name: string): SyncFailure[] {
  if (!table.filtered) return [];
  return [
    {
      code: "row_level_security",
      message: `Row-level security is active on ${name} for this role: rows that its policies hide were not synced. Use a role with BYPASSRLS to sync all rows.`,
    },
  ];
}

function partitionsOf(table: TableInfo, { condition, order }: Scope): Partition[] {
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
function where(partition: Partition, { condition, order }: Scope): string {
  const range = /^(\d+)-(\d*)$/.exec(partition.id);
  const parts = condition === null ? [] : [condition];
  if (range) parts.push(`ctid >= '(${range[1]},0)'::tid`);
  if (range?.[2]) parts.push(`ctid < '(${range[2]},0)'::tid`);
  return `${parts.length > 0 ? ` WHERE ${parts.join(" AND ")}` : ""}${order}`;
}

function castTo(column: TableColumn, type: string): string {
  return column.declared === type ? ident(column.name) : `${ident(column.name)}::${type}`;
}

// xml's output function leaves the declaration out, its cast to text does not. A boolean is `true` in a column of texts, not `t`.
function textOf({ name, declared, type }: TableColumn, there: string | undefined): string {
  if (type.kind === "bool" && there !== undefined && there !== "boolean") return `${ident(name)}::boolean::text`;
  return /^xml(\[\])*$/.test(declared) ? `${ident(name)}::${declared.replace("xml", "text")}` : ident(name);
}

async function copyRaw(
  link: PostgresLink,
  table: TableInfo,
  columns: readonly TableColumn[],
  partition: Partition,
  scope: Scope,
  raw: RawRequest,
): Promise<RawStream> {
  const { to } = (await import("pg-copy-streams")).default;
  // The destination's own type may be unknown here (an enum, an extension's): then its input function gets our text.
  const list = columns.map((column, at) =>
    raw.format === "pg-binary" ? castTo(column, raw.types[at] ?? "text") : textOf(column, raw.types[at]),
  );
  const format = raw.format === "pg-binary" ? "binary" : "text";
  const sql = `COPY (SELECT ${list.join(", ")} FROM ${qualified(table.object)}${where(partition, scope)}) TO STDOUT (FORMAT ${format})`;
  const query = to(sql, { highWaterMark: 1 << 20 });
  const counted = raw.framed ? framed(query) : null;
  const stream = link.client.query(counted ?? query);
  return {
    ...(counted ? { passed: () => counted.messages } : {}),
    format: raw.format,
    framed: raw.framed === true,
    explain: (error) => postgresError(error, "source", `reading ${formatObjectName(table.object)}`),
    stream,
    count: async () => {
      // The server tells the number after the data's end, perhaps in another packet; the next answer comes after both.
      await link.rows("SELECT 1").catch((error: unknown) => {
        throw postgresError(error, "source", `reading ${formatObjectName(table.object)}`);
      });
      return stream.rowCount;
    },
  };
}

async function* readRows(
  link: PostgresLink,
  table: TableInfo,
  columns: readonly TableColumn[],
  partition: Partition,
  scope: Scope,
  request: ReadRequest,
): AsyncGenerator<Batch> {
  const raw = await copyRaw(link, table, columns, partition, scope, { format: "pg-text", types: [] });
  const read = lineReader(columns);
  const name = formatObjectName(table.object);
  let place = 0;
  let leftOut = false;
  try {
    for await (const { lines, bytes, whole } of wholeLines(raw.stream as AsyncIterable<Buffer>, LONGEST_LINE)) {
      if (lines.length === 0) {
        const reason = `the record's text has ${bytes} bytes, of which ${LONGEST_LINE} can be held`;
        yield { rows: [], places: [], rejects: [{ key: `row ${++place}`, column: null, reason }], bytes };
        leftOut = true;
        continue;
      }
      const first = place;
      place += lines.length;
      if (!isUtf8(whole)) yield { ...readable(whole, first, read), bytes };
      else {
        const rows = lines.map(read);
        yield leftOut ? { rows, places: rows.map((_, at) => first + at), bytes } : { rows, bytes };
      }
      request.waiting(`rows of ${name}`);
    }
  } catch (error) {
    throw postgresError(error, "source", `reading ${name}`);
  }
}

// A database in SQL_ASCII holds any bytes: rows that are no UTF-8 are rejected, never replaced.
function readable(
  whole: Buffer,
  first: number,
  read: (line: string) => Row,
): Pick<Batch, "rows" | "places" | "rejects"> {
  const rows: Row[] = [];
  const places: number[] = [];
  const rejects: Reject[] = [];
  for (let at = 0, place = first; at <= whole.length; place++) {
    const feed = whole.indexOf(10, at);
    const line = whole.subarray(at, feed < 0 ? whole.length : feed);
    at += line.length + 1;
    if (!isUtf8(line)) rejects.push({ key: `row ${place + 1}`, column: null, reason: "not valid UTF-8" });
    else {
      rows.push(read(line.toString("utf8")));
      places.push(place);
    }
  }
  return { rows, places, rejects };
}

async function* readKeys(
  link: PostgresLink,
  table: TableInfo,
  key: readonly string[],
  request: ReadRequest,
): AsyncGenerator<Value[][]> {
  const { to } = (await import("pg-copy-streams")).default;
  const columns = key
    .map((name) => table.columns.find((column) => column.name === name))
    .filter((column) => column !== undefined);
  const name = formatObjectName(table.object);
  request.waiting(`the keys of ${name}`);
  const read = lineReader(columns);
  try {
    const stream = link.client.query(to(`COPY (SELECT ${identList(key)} FROM ${qualified(table.object)}) TO STDOUT`));
    for await (const { lines } of wholeLines(stream as AsyncIterable<Buffer>)) yield lines.map(read);
  } catch (error) {
    throw postgresError(error, "source", `reading the keys of ${name}`);
  }
}
