// MySQL and MariaDB as a source: one consistent snapshot, every value as the server's text.
import { MagicError } from "#contract/errors.ts";
import { discoveredObject } from "../../engine/discovered.ts";
import { floatText } from "../../engine/float-text.ts";
import { formatObjectName } from "../../engine/name.ts";
import { pickColumns } from "../../engine/pick.ts";
import type { Batch, ReadRequest, Source, SourceStream } from "../../engine/source.ts";
import type { Column, Row, Value } from "../../engine/types.ts";
import { killedBy } from "../killed-by.ts";
import { describeTable, listTables, type MysqlColumn } from "./catalog.ts";
import { connectMysql, ident, type MysqlLink } from "./connect.ts";
import { mysqlError } from "./errors.ts";
import { extendedWkb } from "./geometry.ts";
import { planRead } from "./scope.ts";

const BATCH_ROWS = 2000;

export function mysqlSource(options: { url: string; address?: string }): Source {
  const links: MysqlLink[] = [];
  const connect = async () => {
    const link = await connectMysql({ ...options, side: "source" });
    links.push(link);
    return link;
  };
  return {
    check: async () => {
      await connect();
    },
    discover: async () => {
      const tables = await listTables(await connect()).catch((error: unknown) => {
        throw mysqlError(error, "source", "listing the tables");
      });
      return tables.map((table) =>
        discoveredObject(formatObjectName({ schema: table.database, name: table.name }), table, table.records),
      );
    },
    open: async (request) => openStream(await connect(), request),
    close: async () => {
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

/** As a run carries it. */
function carried({ name, type, nullable, place = 0 }: MysqlColumn): Column {
  return { name, type, nullable, place };
}

async function openStream(link: MysqlLink, request: ReadRequest): Promise<SourceStream> {
  const name = formatObjectName(request.object);
  const session = killedBy(request.signal, link);
  try {
    request.waiting(`the source's description of ${name}`);
    await link.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY");
    const table = await describeTable(link, request.object);
    if (!table)
      throw new MagicError("object_not_found", `The source has no table ${name}, or the user may not see it.`);
    if (table.columns.length === 0)
      throw new MagicError(
        "object_not_found",
        `${name} cannot be read: it is a view of what has gone, or not for the user.`,
      );
    const { columns, primaryKey } = pickColumns(table, request, name);
    const from = `${ident(table.database)}.${ident(table.name)}`;
    const { condition, endState, warnings } = await planRead(link, table, from, primaryKey.length > 0, request);
    request.waiting(`rows of ${name}`);
    return {
      schema: { columns: columns.map(carried), primaryKey },
      snapshot: true,
      changed: true,
      warnings,
      partitions: [{ id: "all", records: condition === "" ? table.records : null }],
      rawFormats: [],
      endState: () => endState,
      count: async () => {
        const [row] = await link.rows(`SELECT count(*) AS n FROM ${from}`).catch((error: unknown) => {
          throw mysqlError(error, "source", `counting ${name}`);
        });
        return Number(row?.["n"] ?? 0);
      },
      read: () => readRows(link, columns, `${from}${condition}`, request, name),
      keys: async function* () {
        const keys = primaryKey.flatMap((key) => table.columns.find((column) => column.name === key) ?? []);
        for await (const { rows } of readRows(link, keys, from, request, name)) yield rows as Value[][];
      },
      close: session.close,
    };
  } catch (error) {
    session.kill();
    throw mysqlError(error, "source", `reading ${name}`);
  }
}

async function* readRows(
  link: MysqlLink,
  columns: readonly MysqlColumn[],
  from: string,
  request: ReadRequest,
  name: string,
): AsyncGenerator<Batch> {
  // The driver refuses columns called __proto__.
  const sql = `SELECT ${columns.map(({ expression }, at) => `${expression} AS _magic_${at}`).join(", ")} FROM ${from}`;
  const reads = columns.map(readerOf);
  let rows: Row[] = [];
  let bytes = 0;
  try {
    for await (const stored of link.stream(sql)) {
      const row: Row = [];
      for (let at = 0; at < stored.length; at++) {
        const value = stored[at] ?? null;
        bytes += value?.length ?? 1;
        row.push(value === null ? null : (reads[at]?.(value) ?? null));
      }
      rows.push(row);
      if (rows.length >= BATCH_ROWS || bytes > 4 << 20) {
        yield { rows, bytes };
        rows = [];
        bytes = 0;
        request.waiting(`rows of ${name}`);
      }
    }
  } catch (error) {
    throw mysqlError(error, "source", `reading ${name}`);
  }
  if (rows.length > 0) yield { rows, bytes };
}

function readerOf({ type, form }: MysqlColumn): (value: Buffer) => Value {
  const { kind } = type;
  if (form === "float32") return (value) => floatText(Math.fround(Number(value.toString("latin1"))), 32);
  if (form === "geometry") return extendedWkb;
  if (kind === "bytes") return (value) => value;
  if (kind === "bool") return (value) => (value.toString("latin1") === "1" ? "true" : "false");
  if (kind === "timestamp" && type.zone) return (value) => `${value.toString("latin1")}+00`;
  return (value) => value.toString("utf8");
}
