// Before the first row: the destination's table is made or altered, and what the rows are loaded into is made.
import { MagicError } from "#contract/errors.ts";
import { DELETED_AT, type WritePlan } from "../../engine/destination.ts";
import { planChanges } from "../../engine/evolution.ts";
import { outlived } from "../../engine/keys.ts";
import { formatObjectName } from "../../engine/name.ts";
import type { Column } from "../../engine/types.ts";
import type { TableInfo } from "./catalog.ts";
import type { PostgresLink } from "./connect.ts";
import { ident } from "./sql.ts";
import { mustStay, numberOn } from "./swap.ts";
import { binaryAlike, hashedAlike, nativeOf } from "./types.ts";

export interface PrepareParts {
  readonly link: PostgresLink;
  readonly syncId: string;
  readonly target: { readonly schema: string; readonly name: string };
  readonly existing: TableInfo | null;
}

/** Where rows go while they are loaded. shadow: replaces the table. direct: a table made in this transaction. stage: merged later. */
export interface Loading {
  readonly how: "shadow" | "direct" | "stage" | "append";
  /** Quoted. */
  readonly table: string;
  readonly name: string;
  /** True where the table there cannot be replaced by the shadow: its rows are exchanged. */
  readonly stays: boolean;
}

// PostgreSQL cuts longer names without an error: two tables or columns could become one.
const NAME_BYTES = 63;
const SYSTEM_COLUMNS = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];

function checkNames(target: PrepareParts["target"], plan: WritePlan): void {
  for (const name of [target.schema, target.name, ...plan.columns.map((column) => column.name)]) {
    if (Buffer.byteLength(name) > NAME_BYTES)
      throw new MagicError(
        "validation_failed",
        `PostgreSQL's names have at most ${NAME_BYTES} bytes, ${JSON.stringify(name)} has ${Buffer.byteLength(name)}: choose a shorter one (for a column by a mapping, or leave it out).`,
      );
    if (name === "" || name.includes("\0"))
      throw new MagicError(
        "validation_failed",
        `PostgreSQL can name nothing ${JSON.stringify(name)}: choose another name (for a column by a mapping, or leave it out).`,
      );
  }
  const system = plan.columns.find(({ name }) => SYSTEM_COLUMNS.includes(name));
  if (system)
    throw new MagicError(
      "validation_failed",
      `PostgreSQL has a column ${JSON.stringify(system.name)} of its own in every table: map yours to another name, or leave it out.`,
    );
}

// Makes the table or alters it, and makes what the rows are loaded into.
export async function prepare(parts: PrepareParts, plan: WritePlan, final: string): Promise<Prepared> {
  const { link, target, existing, syncId } = parts;
  checkNames(target, plan);
  if (existing && existing.kind !== "r" && existing.kind !== "p")
    throw new MagicError(
      "destination_refused",
      `${formatObjectName(target)} is a view or a foreign table, not a table.`,
    );
  const changes = existing
    ? planChanges(plan.columns, existing.columns, formatObjectName(target))
    : { add: [], widen: [] };
  const thereOf = ({ name }: Column) => existing?.columns.find((one) => one.name === name);
  const { widen: wider } = changes;
  const typeOf = (column: Column) => {
    const there = thereOf(column);
    return there && !wider.some(({ name }) => name === column.name) ? there.declared : nativeOf(column);
  };
  const soft = plan.deletes === "soft";
  const types = plan.columns.map(typeOf);
  const exact = plan.columns.every((column) => binaryAlike(column, thereOf(column)));
  // Values that the table computes itself are read, and left to it.
  const generated = plan.columns.filter((column) => thereOf(column)?.generated).map(({ name }) => name);
  const hashable =
    generated.length === 0 && plan.columns.every((column) => hashedAlike(nativeOf(column), thereOf(column)));
  // Columns of a former key that no value comes for any more.
  const left =
    existing && outlived(existing.primaryKey, plan)
      ? existing.primaryKey.filter((key) => plan.columns.every(({ name }) => name !== key))
      : [];
  const altering = (table: string) => {
    const lacksMark = soft && !existing?.columns.some(({ name }) => name === DELETED_AT);
    const steps = [
      ...changes.add.map((column) => `ADD COLUMN ${ident(column.name)} ${nativeOf(column)}`),
      ...wider.map((column) => `ALTER COLUMN ${ident(column.name)} TYPE ${nativeOf(column)}`),
      ...(lacksMark ? [`ADD COLUMN ${ident(DELETED_AT)} timestamptz`] : []),
      ...(table === final ? [] : left.map((name) => `ALTER COLUMN ${ident(name)} DROP NOT NULL`)),
    ];
    return steps.length > 0 ? `ALTER TABLE ${table} ${steps.join(", ")}` : null;
  };
  const alter = async (table: string) => {
    const sql = altering(table);
    if (sql !== null) await link.run(sql);
  };
  const create = async (table: string) => {
    const columns = plan.columns.map((column, at) => `${ident(column.name)} ${types[at]}`);
    if (soft) columns.push(`${ident(DELETED_AT)} timestamptz`);
    await link.run(`CREATE TABLE ${table} (${columns.join(", ")})`);
  };
  if (plan.kind === "replace") {
    const name = `_magic_shadow_${syncId.replace(/[^A-Za-z0-9]/g, "").slice(-16)}_${Date.now().toString(36)}`;
    const table = `${ident(target.schema)}.${ident(name)}`;
    if (existing) {
      const stays = generated.length > 0 || (await mustStay(link, existing.oid));
      // What only passes through needs no sequence of its own.
      const less = stays ? `EXCLUDING IDENTITY ${generated.length > 0 ? "EXCLUDING GENERATED" : ""}` : "";
      const { kind, storage } = stays ? { kind: "", storage: "" } : await storageOf(link, existing.oid);
      await link.run(
        `CREATE ${kind}TABLE ${table} (LIKE ${final} INCLUDING ALL EXCLUDING INDEXES EXCLUDING STATISTICS ${less})${storage}`,
      );
      if (stays) await letNulls(link, table, final, plan, FILLED_IN);
      else await numberOn(link, existing.oid, table, plan);
      await alter(table);
      // In place, the table itself must take the new columns.
      const later = stays ? altering(final) : null;
      return { loading: { how: "shadow", table, name, stays }, later, types, exact, hashable, generated, wider };
    }
    await create(table);
    const loading = { how: "shadow", table, name, stays: false } as const;
    return { loading, later: null, types, exact, hashable, generated, wider };
  }
  if (!existing) {
    await create(final);
    const loading = { how: "direct", table: final, name: target.name, stays: false } as const;
    return { loading, later: null, types, exact, hashable, generated, wider };
  }
  const later = altering(final);
  const loading = await makeStage(link, final, plan, generated, later !== null);
  if (later !== null) await alter(loading.table);
  return { loading, later, types, exact, hashable, generated, wider };
}

// How the old table is stored, which LIKE leaves out: access method, fillfactor and its like, tablespace, whether it is logged.
async function storageOf(link: PostgresLink, oid: string): Promise<{ kind: string; storage: string }> {
  const [row] = await link.rows<Record<"persistence" | "method" | "options" | "space", string | null>>(
    `SELECT c.relpersistence AS persistence, (SELECT quote_ident(amname) FROM pg_am WHERE oid = c.relam) AS method, CASE WHEN has_tablespace_privilege(s.oid, 'CREATE') THEN quote_ident(s.spcname) END AS space,
            (SELECT string_agg(format('%s=%L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ') FROM unnest(c.reloptions) o) AS options
       FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.oid = $1::oid`,
    [oid],
  );
  const parts = [
    row?.method ? ` USING ${row.method}` : "",
    row?.options ? ` WITH (${row.options})` : "",
    row?.space ? ` TABLESPACE ${row.space}` : "",
  ];
  return { kind: row?.persistence === "u" ? "UNLOGGED " : "", storage: parts.join("") };
}

export interface Prepared {
  readonly loading: Loading;
  /** What alters the destination's table once the rows have been read: its readers wait from then on, until the commit. */
  readonly later: string | null;
  readonly types: readonly string[];
  /** Binary COPY brings every value as it is. */
  readonly exact: boolean;
  /** Both servers hash these types alike. */
  readonly hashable: boolean;
  /** Columns of the plan that the table computes itself. */
  readonly generated: readonly string[];
  /** Columns of the table that were widened, as they are now. */
  readonly wider: readonly Column[];
}

/** What the rows of an incremental run are loaded into: it ends with the transaction. */
export async function makeStage(
  link: PostgresLink,
  final: string,
  plan: WritePlan,
  generated: readonly string[],
  altered = false,
): Promise<Loading> {
  if (plan.kind === "append" && generated.length === 0 && !altered)
    return { how: "append", table: final, name: "", stays: true };
  await link.run(
    `CREATE TEMP TABLE _magic_stage (LIKE ${final} INCLUDING DEFAULTS INCLUDING CONSTRAINTS ${generated.length > 0 ? "" : "INCLUDING GENERATED"}) ON COMMIT DROP`,
  );
  const table = "pg_temp._magic_stage";
  await letNulls(link, table, final, plan, "true");
  return { how: "stage", table, name: "_magic_stage", stays: true };
}

// By an identity, or by a trigger that sees each row before it goes in.
const FILLED_IN =
  "(t.attidentity <> '' OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t.attrelid AND NOT tgisinternal AND tgtype & 7 = 7))";

// What nobody sends the destination's table may fill in by itself: rows that pass through `table` on their way lack it there.
async function letNulls(
  link: PostgresLink,
  table: string,
  final: string,
  plan: WritePlan,
  where: string,
): Promise<void> {
  const [left] = await link.rows<{ steps: string | null }>(
    `SELECT string_agg(format('ALTER COLUMN %I DROP NOT NULL', t.attname), ', ') AS steps FROM pg_attribute t JOIN pg_attribute a ON a.attrelid = $1::regclass AND a.attname = t.attname AND a.attnotnull
      WHERE t.attrelid = $2::regclass AND t.attnum > 0 AND t.attname::text <> ALL ($3::text[]) AND ${where}`,
    [table, final, plan.columns.map(({ name }) => name)],
  );
  if (left?.steps) await link.run(`ALTER TABLE ${table} ${left.steps}`);
}
