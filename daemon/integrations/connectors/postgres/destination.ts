// PostgreSQL as a destination: everything of a run happens in one transaction, the state too, so a run that dies leaves nothing.

import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MagicError } from "#contract/errors.ts";
import type { DiscoveredObject, Reject } from "#contract/sync.ts";
import type { CommittedState, Destination, OpenRequest, WritePlan, WriteSession } from "../../engine/destination.ts";
import { planChanges } from "../../engine/evolution.ts";
import { formatObjectName } from "../../engine/name.ts";
import { keyOf } from "../../engine/rejects.ts";
import type { RawStream } from "../../engine/source.ts";
import type { Column } from "../../engine/types.ts";
import { describeTable, type TableInfo } from "./catalog.ts";
import { checksumSql } from "./checksum.ts";
import { type ConnectOptions, connectPostgres, type PostgresLink } from "./connect.ts";
import { isDataError, postgresError } from "./errors.ts";
import { takingFrames } from "./frames.ts";
import { applyMerge, deleteMissing, keepDeleted, takeOutDuplicates } from "./merge.ts";
import { postgresSource } from "./source.ts";
import { ident, identList } from "./sql.ts";
import { ensureStateTable, lockSync, readState, writeState } from "./state-table.ts";
import { copyIndexes, exchangeRows, mustStay, type Renames, swap } from "./swap.ts";
import { binaryAlike, hashedAlike, nativeOf } from "./types.ts";
import { writeRows } from "./write-rows.ts";

export const DELETED_AT = "_magic_deleted_at";

export function postgresDestination(options: Omit<ConnectOptions, "side">): Destination {
  const links: PostgresLink[] = [];
  return {
    check: async () => {
      const link = await connectPostgres({ ...options, side: "destination" });
      await link.close();
    },
    discover: async (): Promise<readonly DiscoveredObject[]> => {
      const source = postgresSource(options);
      try {
        return await source.discover();
      } finally {
        await source.close();
      }
    },
    open: async (request) => {
      const link = await connectPostgres({ ...options, side: "destination" });
      links.push(link);
      return openSession(link, request);
    },
    close: async () => {
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

async function openSession(link: PostgresLink, request: OpenRequest): Promise<WriteSession> {
  const doing = `writing ${formatObjectName(request.table)}`;
  const stop = () => link.kill();
  request.signal.addEventListener("abort", stop, { once: true });
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw postgresError(error, "destination", doing);
    }
  };
  const close = async () => {
    request.signal.removeEventListener("abort", stop);
    await link.close();
  };
  try {
    const schema = request.table.schema ?? (await currentSchema(link));
    const target = { schema, name: request.table.name };
    request.waiting("another run of this sync to end");
    await lockSync(link, request.syncId, request.stream);
    await link.run("BEGIN");
    const committed = await readState(link, schema, request.syncId, request.stream);
    const existing = await describeTable(link, target);
    return sessionOf({ link, request, target, committed, existing, guard, close });
  } catch (error) {
    link.kill();
    throw postgresError(error, "destination", doing);
  }
}

async function currentSchema(link: PostgresLink): Promise<string> {
  const [row] = await link.rows<{ schema: string | null }>("SELECT current_schema() AS schema");
  if (!row?.schema)
    throw new MagicError(
      "object_not_found",
      "The destination's role has no default schema: name the table as schema.name.",
    );
  return row.schema;
}

// The usual name of a primary key's index, unless something else has it.
async function freeName(
  link: PostgresLink,
  target: { readonly schema: string; readonly name: string },
): Promise<string> {
  const name = `${target.name}_pkey`;
  const [row] = await link.rows<{ there: string | null }>("SELECT to_regclass($1)::text AS there", [
    `${ident(target.schema)}.${ident(name)}`,
  ]);
  return row?.there ? `_magic_${Date.now().toString(36)}_pkey` : name;
}

interface Parts {
  readonly link: PostgresLink;
  readonly request: OpenRequest;
  readonly target: { readonly schema: string; readonly name: string };
  readonly committed: CommittedState;
  readonly existing: TableInfo | null;
  guard<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Where rows go while they are loaded. shadow: replaces the table. direct: a table made in this transaction. stage: merged later. */
type Loading = {
  readonly how: "shadow" | "direct" | "stage" | "append";
  readonly table: string;
  readonly name: string;
};

function sessionOf(parts: Parts): WriteSession {
  const { link, request, target, existing, guard } = parts;
  const final = `${ident(target.schema)}.${ident(target.name)}`;
  let plan: WritePlan | undefined;
  let loading: Loading | undefined;
  let types: readonly string[] = [];
  let exact = false;
  let hashable = false;
  let place = 0;
  let renames: Renames = { constraints: [], indexes: [] };
  let swapping = false;
  const begun = () => {
    if (!plan || !loading) throw new Error("the session has not begun");
    return { plan, loading };
  };

  const session: WriteSession = {
    committed: parts.committed,
    existing: existing ? existing.columns.filter(({ name }) => name !== DELETED_AT) : null,
    warnings: [],
    bytes: () => link.bytes(),
    get rawFormats(): readonly RawStream["format"][] {
      return loading?.how === undefined ? [] : exact ? ["pg-binary", "csv"] : ["pg-text", "csv"];
    },
    get rawTypes() {
      return types;
    },
    begin: (wanted) =>
      guard(async () => {
        plan = wanted;
        request.waiting(`the lock of ${formatObjectName(target)}`);
        await link.run("ROLLBACK");
        await ensureStateTable(link, target.schema);
        await link.run("BEGIN");
        ({ loading, types, exact, hashable } = await prepare(parts, wanted, final));
      }),
    writeRaw: (raw) => guard(() => copyInto(link, begun().loading, begun().plan, raw)),
    write: (rows, places) =>
      guard(async () => {
        const { loading, plan } = begun();
        const first = place;
        place += rows.length;
        return writeRows(
          { link, table: loading.table, columns: plan.columns, keyOf: keyOf(plan) },
          rows,
          (at) => places?.[at] ?? first + at,
        );
      }),
    checkpoint: (state) =>
      guard(async () => {
        const { plan } = begun();
        await session.merge();
        await writeState(link, target.schema, request, state, plan.sourceSchema);
        await link.run("COMMIT; BEGIN");
        loading = await makeStage(link, final, plan);
      }),
    deleteMissing: (keys) => guard(() => deleteMissing(link, final, begun().plan, keys)),
    merge: () =>
      guard(async (): Promise<readonly Reject[]> => {
        const { plan, loading } = begun();
        request.waiting(`the merge into ${formatObjectName(target)}`);
        if (loading.how === "append") return [];
        if (loading.how === "stage") {
          await applyMerge(link, loading.table, final, plan);
          return [];
        }
        const key = plan.primaryKey;
        if (loading.how === "shadow" && plan.deletes === "soft" && existing)
          await keepDeleted(link, final, loading.table, plan);
        swapping = loading.how === "shadow" && existing !== null && !(await mustStay(link, existing.oid));
        if (key.length === 0 && !swapping) return [];
        const build = async () => {
          const keyed = swapping && existing !== null && existing.primaryKey.length > 0;
          if (swapping && existing) renames = await copyIndexes(link, existing.oid, loading.table);
          if (key.length > 0 && !keyed) {
            const ours = loading.how === "shadow" ? `${loading.name}_pkey` : await freeName(link, target);
            await link.run(
              `ALTER TABLE ${loading.table} ADD CONSTRAINT ${ident(ours)} PRIMARY KEY (${identList(key)})`,
            );
            if (loading.how === "shadow") renames.constraints.push([ours, `${target.name}_pkey`]);
          }
        };
        await link.run("SAVEPOINT magic_keys");
        try {
          await build();
          return [];
        } catch (error) {
          if (!isDataError(error) || key.length === 0 || plan.onBadRecord === "fail") throw error;
          await link.run("ROLLBACK TO SAVEPOINT magic_keys");
          const rejects = await takeOutDuplicates(link, loading.table, plan);
          await build();
          return rejects;
        }
      }),
    count: () =>
      guard(async () => {
        request.waiting(`the count of ${formatObjectName(target)}`);
        const [row] = await link.rows<{ n: string }>(`SELECT count(*)::text AS n FROM ${resultTable()}${undeleted()}`);
        return row ? Number(row.n) : null;
      }),
    checksum: () =>
      guard(async () => {
        request.waiting(`the checksum of ${formatObjectName(target)}`);
        if (!hashable) return null;
        const columns = begun().plan.columns.map(({ name }) => ident(name));
        await link.run("SAVEPOINT magic_checksum");
        try {
          const [row] = await link.rows<{ n: string; checksum: string }>(
            checksumSql(resultTable(), columns, undeleted()),
          );
          return row ? { count: Number(row.n), checksum: row.checksum } : null;
        } catch (error) {
          await link.run("ROLLBACK TO SAVEPOINT magic_checksum");
          // 42883: one of the types has no hash function (json, point, xml).
          if ((error as { code?: string }).code === "42883") return null;
          throw error;
        }
      }),
    commit: (state) =>
      guard(async () => {
        const { plan, loading } = begun();
        request.waiting(`the lock of ${formatObjectName(target)}`);
        if (loading.how === "shadow") {
          if (swapping || existing === null)
            await swap(link, { ...target, oid: existing?.oid ?? null }, loading.name, renames);
          else await exchangeRows(link, final, loading.table, columnsOf(plan));
        }
        await writeState(link, target.schema, request, state, plan.sourceSchema);
        request.waiting("the destination's commit");
        await link.run("COMMIT");
        await parts.close();
      }),
    abort: async () => {
      // Cutting the connection undoes the transaction, whatever it is doing.
      link.kill();
      await parts.close();
    },
  };
  const resultTable = () => (begun().loading.how === "shadow" ? begun().loading.table : final);
  const undeleted = () => (begun().plan.deletes === "soft" ? ` WHERE ${ident(DELETED_AT)} IS NULL` : "");
  return session;
}

const columnsOf = (plan: WritePlan) => [
  ...plan.columns.map(({ name }) => name),
  ...(plan.deletes === "soft" ? [DELETED_AT] : []),
];

// Makes the table or alters it, and makes what the rows are loaded into.
async function prepare(parts: Parts, plan: WritePlan, final: string): Promise<Prepared> {
  const { link, target, existing, request } = parts;
  if (existing && existing.kind !== "r" && existing.kind !== "p")
    throw new MagicError(
      "destination_refused",
      `${formatObjectName(target)} is a view or a foreign table, not a table.`,
    );
  const changes = existing
    ? planChanges(plan.columns, existing.columns, formatObjectName(target))
    : { add: [], widen: [] };
  const thereOf = ({ name }: Column) => existing?.columns.find((one) => one.name === name);
  const typeOf = (column: Column) => {
    const there = thereOf(column);
    return there && !changes.widen.some(({ name }) => name === column.name) ? there.declared : nativeOf(column);
  };
  const soft = plan.deletes === "soft";
  const types = plan.columns.map(typeOf);
  const exact = plan.columns.every((column) => binaryAlike(column, thereOf(column)));
  const hashable = plan.columns.every((column) => hashedAlike(nativeOf(column), thereOf(column)));
  const alter = async (table: string) => {
    const lacksMark = soft && !existing?.columns.some(({ name }) => name === DELETED_AT);
    const steps = [
      ...changes.add.map((column) => `ADD COLUMN ${ident(column.name)} ${nativeOf(column)}`),
      ...changes.widen.map((column) => `ALTER COLUMN ${ident(column.name)} TYPE ${nativeOf(column)}`),
      ...(lacksMark ? [`ADD COLUMN ${ident(DELETED_AT)} timestamptz`] : []),
    ];
    if (steps.length > 0) await link.run(`ALTER TABLE ${table} ${steps.join(", ")}`);
  };
  const create = async (table: string) => {
    const columns = plan.columns.map((column, at) => `${ident(column.name)} ${types[at]}`);
    if (soft) columns.push(`${ident(DELETED_AT)} timestamptz`);
    await link.run(`CREATE TABLE ${table} (${columns.join(", ")})`);
  };
  if (plan.kind === "replace") {
    const name = `_magic_shadow_${request.syncId.replace(/[^A-Za-z0-9]/g, "").slice(-16)}_${Date.now().toString(36)}`;
    const table = `${ident(target.schema)}.${ident(name)}`;
    if (existing) {
      await link.run(`CREATE TABLE ${table} (LIKE ${final} INCLUDING ALL EXCLUDING INDEXES)`);
      await alter(table);
      // In place, the table itself must take the new columns; where it is swapped this is one more catalogue change in the same transaction.
      if (await mustStay(link, existing.oid)) await alter(final);
    } else await create(table);
    return { loading: { how: "shadow", table, name }, types, exact, hashable };
  }
  if (!existing) {
    await create(final);
    return { loading: { how: "direct", table: final, name: target.name }, types, exact, hashable };
  }
  await alter(final);
  return { loading: await makeStage(link, final, plan), types, exact, hashable };
}

interface Prepared {
  readonly loading: Loading;
  readonly types: readonly string[];
  /** Binary COPY brings every value as it is. */
  readonly exact: boolean;
  /** Both servers hash these types alike. */
  readonly hashable: boolean;
}

async function makeStage(link: PostgresLink, final: string, plan: WritePlan): Promise<Loading> {
  if (plan.kind === "append") return { how: "append", table: final, name: "" };
  await link.run(
    `CREATE TEMP TABLE _magic_stage (LIKE ${final} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED) ON COMMIT DROP`,
  );
  return { how: "stage", table: "pg_temp._magic_stage", name: "_magic_stage" };
}

async function copyInto(
  link: PostgresLink,
  loading: Loading,
  plan: WritePlan,
  raw: RawStream,
): Promise<{ written: number; bytes: number }> {
  const { from } = (await import("pg-copy-streams")).default;
  const options = [raw.format === "pg-binary" ? "FORMAT binary" : raw.format === "csv" ? "FORMAT csv" : "FORMAT text"];
  // The rows are only visible with the table itself, which this transaction made: they may be frozen from the start.
  if (loading.how === "shadow" || loading.how === "direct") options.push("FREEZE");
  const sql = `COPY ${loading.table} (${identList(plan.columns.map(({ name }) => name))}) FROM STDIN (${options.join(", ")})`;
  const before = link.bytes();
  const query = from(sql, { highWaterMark: 1 << 20 });
  const stream = link.client.query(raw.framed ? takingFrames(query) : query);
  // Whichever end fails first is the one that failed; the other is only closed.
  let first: "source" | "destination" | undefined;
  raw.stream.once("error", () => {
    first ??= "source";
  });
  stream.once("error", () => {
    first ??= "destination";
  });
  try {
    await pipeline(raw.stream as Readable, stream);
  } catch (error) {
    throw first === "source" && raw.explain ? raw.explain(error) : error;
  }
  return { written: stream.rowCount, bytes: link.bytes() - before };
}
