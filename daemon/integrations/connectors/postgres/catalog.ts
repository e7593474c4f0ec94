// What PostgreSQL's catalogue says of a table: columns, primary key, size, row-level security.
import type { ObjectName } from "../../engine/name.ts";
import type { Column } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { qualified } from "./sql.ts";
import { typeOfNative } from "./types.ts";

export interface TableColumn extends Column {
  /** As `format_type` gives it here, with the schema where it is no built-in type. */
  readonly declared: string;
  /** True where another server certainly has the same type with the same binary form. */
  readonly builtin: boolean;
  readonly generated: boolean;
}

export interface TableInfo {
  readonly oid: string;
  readonly object: ObjectName & { readonly schema: string };
  /** r table, p partitioned, v view, m materialized view, f foreign table. */
  readonly kind: string;
  readonly columns: readonly TableColumn[];
  readonly primaryKey: readonly string[];
  /** An estimate by the last ANALYZE; null where never done. */
  readonly records: number | null;
  /** Of 8 kB. */
  readonly pages: number;
  /** True where row-level security hides rows of the table from the role that we are. */
  readonly filtered: boolean;
}

/** The table, or null where there is none that this role may see. */
export async function describeTable(link: PostgresLink, object: ObjectName): Promise<TableInfo | null> {
  const [table] = await describe(link, "c.oid = to_regclass($1)", [qualified(object)]);
  return table ?? null;
}

// However many tables: three statements. `which` is a condition on pg_class c and pg_namespace n.
async function describe(link: PostgresLink, which: string, parameters: readonly unknown[]): Promise<TableInfo[]> {
  const tables = await link.rows<Record<string, string>>(
    `SELECT c.oid::text, n.nspname, c.relname, c.relkind, c.reltuples::bigint::text AS tuples, CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) / 8192 ELSE c.relpages END::text AS relpages,
            CASE WHEN c.relkind IN ('r', 'p') THEN row_security_active(c.oid) ELSE false END::text AS filtered
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE ${which} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY n.nspname, c.relname LIMIT 10000`,
    parameters,
  );
  if (tables.length === 0) return [];
  const oids = [`{${tables.map(({ oid }) => oid).join(",")}}`];
  const columns = await link.rows<Record<string, string>>(
    `SELECT a.attrelid::text AS oid, a.attname AS name, a.attnum::text AS place, format_type(a.atttypid, a.atttypmod) AS declared, a.attnotnull::text AS required, (a.attgenerated <> '')::text AS generated,
            t.typtype, CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END AS base,
            CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END::bigint < 16384 AS builtin
       FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`,
    oids,
  );
  const keys = await link.rows<{ oid: string; name: string }>(
    `SELECT i.indrelid::text AS oid, a.attname AS name FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k(attnum, place)
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE i.indrelid = ANY ($1::oid[]) AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY i.indrelid, k.place`,
    oids,
  );
  const columnsOf = Map.groupBy(columns, ({ oid }) => oid);
  const keyOf = Map.groupBy(keys, ({ oid }) => oid);
  return tables.map((found) => {
    const oid = found["oid"] ?? "";
    const tuples = Number(found["tuples"]);
    return {
      oid,
      object: { schema: found["nspname"] ?? "", name: found["relname"] ?? "" },
      kind: found["relkind"] ?? "r",
      columns: (columnsOf.get(oid) ?? []).map(columnOf),
      primaryKey: (keyOf.get(oid) ?? []).map(({ name }) => name),
      records: tuples < 0 ? null : tuples,
      pages: Number(found["relpages"]),
      filtered: found["filtered"] === "true",
    };
  });
}

function columnOf(row: Record<string, string>): TableColumn {
  const declared = row["declared"] ?? "text";
  const builtin = row["builtin"] === "t";
  // An enum, a composite or an extension's type need not exist elsewhere: it travels as its text form.
  const native = builtin ? (row["base"] ?? declared) : "text";
  return {
    name: row["name"] ?? "",
    place: Number(row["place"]),
    type: builtin ? typeOfNative(native) : { kind: row["typtype"] === "e" ? "string" : "other" },
    nullable: row["required"] !== "true",
    native,
    declared,
    builtin: builtin && row["typtype"] !== "d",
    generated: row["generated"] === "true",
  };
}

/** True where it hides rows from that role, of the table or of one that a view reads with its reader's rights. */
export async function hidesRows(link: PostgresLink, { oid, kind, filtered }: TableInfo): Promise<boolean> {
  if (kind !== "v") return filtered;
  const [row] = await link.rows<{ hides: string | null }>(
    `WITH RECURSIVE reached AS (SELECT $1::oid AS oid UNION
       SELECT d.refobjid FROM reached JOIN pg_class v ON v.oid = reached.oid AND EXISTS (SELECT FROM unnest(v.reloptions) o WHERE o ~* '^security_invoker=(1|on|t|y)')
         JOIN pg_rewrite r ON r.ev_class = v.oid JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass)
     SELECT bool_or(row_security_active(c.oid))::text AS hides FROM reached JOIN pg_class c ON c.oid = reached.oid AND c.relkind IN ('r', 'p')`,
    [oid],
  );
  return row?.hides === "true";
}

/** By column what changes with no row: the labels of enums and the members of composites in its type, and the definitions of its views. */
export async function spellingsOf(
  link: PostgresLink,
  { oid, kind, columns }: TableInfo,
): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
  if (kind !== "v" && columns.every(({ builtin }) => builtin)) return new Map();
  const words = await link.rows<{ name: string; id: string; word: string }>(
    `WITH RECURSIVE used AS (
       SELECT attname::text AS name, atttypid AS type FROM pg_attribute WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
       UNION SELECT used.name, part.type FROM used JOIN pg_type t ON t.oid = used.type CROSS JOIN LATERAL (
         SELECT t.typelem AS type UNION ALL SELECT t.typbasetype UNION ALL SELECT rngsubtype FROM pg_range WHERE rngtypid = t.oid
         UNION ALL SELECT atttypid FROM pg_attribute WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped) part
        WHERE part.type >= 16384),
     reached AS (SELECT $1::oid AS view UNION SELECT d.refobjid FROM reached JOIN pg_rewrite r ON r.ev_class = view
       JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass)
     SELECT name, e.oid::text AS id, enumlabel::text AS word FROM used JOIN pg_enum e ON e.enumtypid = used.type
     UNION ALL SELECT name, t.typrelid::text, string_agg(attnum::text, ',' ORDER BY attnum)
       FROM used JOIN pg_type t ON t.oid = used.type JOIN pg_attribute a ON a.attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped GROUP BY 1, 2
     UNION ALL SELECT attname::text, c.oid::text, md5(pg_get_viewdef(c.oid)) FROM reached JOIN pg_class c ON c.oid = view AND c.relkind = 'v'
       JOIN pg_attribute ON attrelid = $1::oid AND attnum > 0`,
    [oid],
  );
  const byColumn = Map.groupBy(words, ({ name }) => name);
  return new Map([...byColumn].map(([name, all]) => [name, Object.fromEntries(all.map(({ id, word }) => [id, word]))]));
}

/** As a run carries it. */
export function carried(column: TableColumn, spelling?: Column["spelling"]): Column {
  const { name, type, nullable, place } = column;
  const known = { ...(place === undefined ? {} : { place }), ...(spelling === undefined ? {} : { spelling }) };
  return { name, type, nullable, native: column.native ?? "text", ...known };
}

/** All tables and views that the role may read, with their columns. */
export function listTables(link: PostgresLink): Promise<TableInfo[]> {
  return describe(
    link,
    "NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' AND c.relname NOT LIKE '\\_magic\\_%' AND has_table_privilege(c.oid, 'SELECT')",
    [],
  );
}
