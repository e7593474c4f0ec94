// PostgreSQL as a source: one REPEATABLE READ snapshot, read by COPY in ctid ranges; raw where the destination takes it.
import { isUtf8 } from "node:buffer";
import { MagicError } from "#contract/errors.ts";
import type { Reject, SyncFailure } from "#contract/sync.ts";
import { discoveredObject } from "../../engine/discovered.ts";
import { formatObjectName } from "../../engine/name.ts";
import { pickColumns } from "../../engine/pick.ts";
import type {
  Batch,
  Partition,
  RawRequest,
  RawStream,
  ReadRequest,
  Source,
  SourceStream,
} from "../../engine/source.ts";
import type { Row, Value } from "../../engine/types.ts";
import { killedBy } from "../killed-by.ts";
import {
  carried,
  describeTable,
  hidesRows,
  listTables,
  spellingsOf,
  type TableColumn,
  type TableInfo,
} from "./catalog.ts";
import { checksumSql } from "./checksum.ts";
import { type ConnectOptions, connectPostgres, type PostgresLink } from "./connect.ts";
import { lineReader, wholeLines } from "./copy-text.ts";
import { postgresError } from "./errors.ts";
import { bounded, framed } from "./frames.ts";
import { isOfThisDatabase } from "./horizon.ts";
import { partitionsOf, planRead, type Scope, where } from "./scope.ts";
import { ident, identList, literal, qualified } from "./sql.ts";

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
      return tables.map((table) => discoveredObject(formatObjectName(table.object), table, table.records));
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

async function openStream(
  link: PostgresLink,
  request: ReadRequest,
  connect: () => Promise<PostgresLink>,
): Promise<SourceStream> {
  const name = formatObjectName(request.object);
  const session = killedBy(request.signal, link);
  try {
    request.waiting(`the source's description of ${name}`);
    await beginSnapshot(link, request.object);
    const table = await describeTable(link, request.object);
    if (!table)
      throw new MagicError("object_not_found", `The source has no table ${name}, or the role may not see it.`);
    const { columns, primaryKey } = pickColumns(table, request, formatObjectName(table.object));
    if (columns.length === 0)
      throw new MagicError(
        "validation_failed",
        `No column of ${name} is to be synced: ${request.columns ? "name at least one" : "it has none"}.`,
      );
    const scope = await planRead(link, table, request);
    const reading: Reading = { link, table, columns, scope };
    const whole = request.mode === "full_refresh";
    const snapshot = whole ? await exportSnapshot(link) : null;
    const spellings = whole ? null : await spellingsOf(link, table);
    request.waiting(`rows of ${name}`);
    return {
      schema: { columns: columns.map((column) => carried(column, spellings?.get(column.name))), primaryKey },
      snapshot: true,
      changed: scope.changed,
      exact: scope.exact,
      warnings: [...((await hidesRows(link, table)) ? [hiddenRows(name)] : []), ...scope.warnings],
      partitions: partitionsOf(table, scope),
      rawFormats: ["pg-binary", "pg-text"],
      read: (partition) => readRows(reading, partition, request),
      copyRaw: (partition, raw) => copyRaw(reading, partition, raw),
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
        return checksumBeside(connect, snapshot, checksumSql(qualified(table.object), values, types), request.signal);
      },
      keys: () => readKeys(link, table, primaryKey, request),
      close: session.close,
    };
  } catch (error) {
    session.kill();
    throw postgresError(error, "source", `reading ${name}`);
  }
}

// A table that is truncated or rewritten after the snapshot was taken looks empty in it: the lock comes first, and keeps it as it is.
async function beginSnapshot(link: PostgresLink, object: ReadRequest["object"]): Promise<void> {
  const begin = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
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
    await link.run(begin);
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

// The checksum is computed on a connection of its own while the rows are copied, on one core. Who waits to alter the table waits
// for the rows, and this connection behind it: it gives up, or both would wait for ever, and everybody else who reads the table.
async function checksumBeside(
  connect: () => Promise<PostgresLink>,
  snapshot: string | null,
  sql: string,
  signal: AbortSignal,
): Promise<string | null> {
  if (snapshot === null) return null;
  const link = await connect();
  const session = killedBy(signal, link);
  try {
    await link.run(
      `SET max_parallel_workers_per_gather = 0; SET lock_timeout = 1000; COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT ${literal(snapshot)}`,
    );
    const [row] = await link.rows<{ checksum: string }>(sql);
    return row?.checksum ?? null;
  } finally {
    await session.close();
  }
}

function hiddenRows(name: string): SyncFailure {
  return {
    code: "row_level_security",
    message: `Row-level security is active on ${name} for this role: rows that its policies hide were not synced. Use a role with BYPASSRLS to sync all rows.`,
  };
}

// A real becomes the double that its text says, 0.1: so do the keys, and what goes over as text because of another column.
function castTo({ name, declared }: TableColumn, type: string): string {
  if (declared === type) return ident(name);
  return `${ident(name)}${/^real(\[\])*$/.test(declared) ? "::text" : ""}::${type}`;
}

// xml's output function leaves the declaration out, its cast to text does not. A boolean is `true` in a column of texts, not `t`.
function textOf({ name, declared, type }: TableColumn, there: string | undefined): string {
  if (type.kind === "bool" && there !== undefined && there !== "boolean") return `${ident(name)}::boolean::text`;
  return /^xml(\[\])*$/.test(declared) ? `${ident(name)}::${declared.replace("xml", "text")}` : ident(name);
}

/** What of a table is read, and over which connection. */
interface Reading {
  readonly link: PostgresLink;
  readonly table: TableInfo;
  readonly columns: readonly TableColumn[];
  readonly scope: Scope;
}

async function copyRaw(reading: Reading, partition: Partition, raw: RawRequest): Promise<RawStream> {
  const { link, table, columns, scope } = reading;
  const { to } = (await import("pg-copy-streams")).default;
  // The destination's own type may be unknown here (an enum, an extension's): then its input function gets our text.
  const list = columns.map((column, at) =>
    raw.format === "pg-binary" ? castTo(column, raw.types[at] ?? "text") : textOf(column, raw.types[at]),
  );
  const format = raw.format === "pg-binary" ? "binary" : "text";
  const sql = `COPY (SELECT ${list.join(", ")} FROM ${qualified(table.object)}${where(partition, scope)}) TO STDOUT (FORMAT ${format})`;
  const query = to(sql, { highWaterMark: 1 << 20 });
  const counted = raw.framed ? framed(query) : null;
  const stream = link.client.query(counted ?? bounded(query));
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

async function* readRows(reading: Reading, partition: Partition, request: ReadRequest): AsyncGenerator<Batch> {
  const raw = await copyRaw(reading, partition, { format: "pg-text", types: [] });
  const read = lineReader(reading.columns);
  const name = formatObjectName(reading.table.object);
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
