// PostgreSQL as a destination: everything of a run happens in one transaction, the state too, so a run that dies leaves nothing.
import { MagicError } from "#contract/errors.ts";
import type { Reject, SyncFailure } from "#contract/sync.ts";
import {
  type CommittedState,
  DELETED_AT,
  type Destination,
  mayBeMarked,
  type OpenRequest,
  type WritePlan,
  type WriteSession,
} from "../../engine/destination.ts";
import { widened } from "../../engine/evolution.ts";
import { checkInto } from "../../engine/fit.ts";
import { sameKey } from "../../engine/keys.ts";
import { formatObjectName } from "../../engine/name.ts";
import { keyOf } from "../../engine/rejects.ts";
import type { RawStream } from "../../engine/source.ts";
import type { Column } from "../../engine/types.ts";
import { killedBy } from "../killed-by.ts";
import { type Translating, translating } from "../translating.ts";
import { describeTable, type TableInfo } from "./catalog.ts";
import { checksumSql } from "./checksum.ts";
import { BEGIN, type ConnectOptions, connectPostgres, type PostgresLink } from "./connect.ts";
import { copyInto } from "./copy-into.ts";
import { postgresError } from "./errors.ts";
import { finishTable } from "./finish-table.ts";
import { deleteMissing, keepDeleted, mergeStage } from "./merge.ts";
import { type Loading, makeStage, prepare } from "./prepare.ts";
import { ident } from "./sql.ts";
import { ensureStateTable, lockSync, lockTable, readState, writeState } from "./state-table.ts";
import { exchangeRows, noRenames, swap } from "./swap.ts";
import { copyTuples } from "./write-packed.ts";
import { writeRows } from "./write-rows.ts";

export function postgresDestination(options: Omit<ConnectOptions, "side">): Destination {
  const links: PostgresLink[] = [];
  return {
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
  const session = killedBy(request.signal, link);
  const inWords = (error: unknown) => postgresError(error, "destination", doing);
  try {
    const schema = request.table.schema ?? (await currentSchema(link));
    const target = { schema, name: request.table.name };
    request.waiting("another run of this sync to end");
    await lockSync(link, request.syncId, request.stream);
    request.waiting(`the lock of ${formatObjectName(target)}`);
    await link.run(`ROLLBACK; ${BEGIN}`);
    const committed = await readState(link, schema, request.syncId, request.stream);
    const existing = await describeTable(link, target);
    return sessionOf({ link, request, target, committed, existing, guard: translating(inWords), close: session.close });
  } catch (error) {
    session.kill();
    throw inWords(error);
  }
}

// Neither replaced nor counted, and a key that one of them has is taken.
function hiddenRows(name: string): SyncFailure {
  return {
    code: "row_level_security",
    message: `Row-level security is active on the destination's table ${name} for this role: rows that its policies hide stay as they are. Use a role with BYPASSRLS to write the whole table.`,
  };
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

interface Parts {
  readonly link: PostgresLink;
  readonly request: OpenRequest;
  readonly target: { readonly schema: string; readonly name: string };
  readonly committed: CommittedState;
  readonly existing: TableInfo | null;
  readonly guard: Translating;
  close(): Promise<void>;
}

function sessionOf(parts: Parts): WriteSession {
  const { link, request, target, guard } = parts;
  let { existing } = parts;
  const final = `${ident(target.schema)}.${ident(target.name)}`;
  let plan: WritePlan | undefined;
  let loading: Loading | undefined;
  let later: string | null = null;
  let types: readonly string[] = [];
  let exact = false;
  let hashable = false;
  let generated: readonly string[] = [];
  let wider: readonly Column[] = [];
  // Columns of which PostgreSQL keeps one of two equal keys.
  let jsonb: readonly boolean[] = [];
  let place = 0;
  let renames = noRenames;
  let exchanged = false;
  const merging = () => ({ link, table: final, plan: begun().plan, generated, waiting: request.waiting });
  const begun = () => {
    if (!plan || !loading) throw new Error("the session has not begun");
    return { plan, loading };
  };

  const session: WriteSession = {
    committed: parts.committed,
    get existing() {
      return existing ? widened(existing.columns, wider).filter(({ name }) => name !== DELETED_AT) : null;
    },
    fitNew: checkInto,
    warnings: existing?.filtered ? [hiddenRows(formatObjectName(target))] : [],
    bytes: () => link.bytes(),
    get rawFormats(): readonly RawStream["format"][] {
      if (loading === undefined) return [];
      if (jsonb.some((is, at) => is && plan?.columns[at]?.native !== "jsonb")) return [];
      return exact ? ["pg-binary", "csv"] : ["pg-text", "csv"];
    },
    get rawTypes() {
      return types;
    },
    hasRows: () =>
      guard(async () => {
        const [row] = await link.rows<{ there: string }>(
          `SELECT EXISTS (SELECT FROM ${final}${living()})::text AS there`,
        );
        return row?.there === "true";
      }),
    begin: (wanted) =>
      guard(async () => {
        plan = wanted;
        request.waiting(`the lock of ${formatObjectName(target)}`);
        await ensureStateTable(link, target.schema);
        await link.run(`COMMIT; ${BEGIN}`);
        // Two syncs that replace one table would wait for each other, or the second leave out the first one's indexes.
        if (wanted.kind === "replace" || existing === null) {
          const oid = await lockTable(link, target);
          if (oid !== (existing?.oid ?? null)) existing = await describeTable(link, target);
        }
        ({ loading, later, types, exact, hashable, generated, wider } = await prepare(
          { link, target, existing, syncId: request.syncId },
          wanted,
          final,
        ));
        jsonb = types.map((type) => type === "jsonb");
      }),
    writeRaw: (raw) =>
      guard(() => {
        request.waiting(`rows of ${request.stream} on their way into ${formatObjectName(target)}`);
        return copyInto(link, begun().loading, begun().plan, raw);
      }),
    write: (rows, places) =>
      guard(async () => {
        const { loading, plan } = begun();
        request.waiting(`rows of ${request.stream} on their way into ${formatObjectName(target)}`);
        const first = place;
        place += rows.length;
        return writeRows(
          { link, table: loading.table, columns: plan.columns, jsonb, keyOf: keyOf(plan) },
          rows,
          (at) => places?.[at] ?? first + at,
        );
      }),
    writePacked: (packed) =>
      guard(async () => {
        const { loading, plan } = begun();
        if (await copyTuples(link, loading.table, plan.columns, packed.tuples)) {
          place += packed.count;
          packed.done();
          return { written: packed.count, rejects: [] };
        }
        // The text form's COPY tells which row it was.
        return session.write(packed.rows());
      }),
    checkpoint: (stateAfter) =>
      guard(async () => {
        const { plan } = begun();
        const state = stateAfter(await session.merge());
        await writeState(link, target.schema, request, state, plan.sourceSchema);
        await link.run(`COMMIT; ${BEGIN}`);
        loading = await makeStage(link, final, plan, generated);
      }),
    deleteMissing: (keys) => guard(() => deleteMissing(link, final, begun().plan, keys)),
    merge: () =>
      guard(async (): Promise<readonly Reject[]> => {
        const { plan, loading } = begun();
        if (later !== null) {
          request.waiting(`the lock of ${formatObjectName(target)}`);
          await link.runBetweenReaders(later);
          later = null;
        }
        request.waiting(`the merge into ${formatObjectName(target)}`);
        if (loading.how === "append") return [];
        if (loading.how === "stage") return mergeStage(merging(), loading.table);
        if (loading.how === "shadow" && plan.deletes === "soft" && existing && !loading.stays)
          await keepDeleted(link, final, loading.table, plan, sameKey(existing.primaryKey, plan.primaryKey));
        const built = await finishTable({ link, target, existing, plan, loading, waiting: request.waiting });
        renames = built.renames;
        if (!loading.stays || !existing) return built.rejects;
        exchanged = true;
        return [...built.rejects, ...(await exchangeRows(merging(), loading.table))];
      }),
    count: () =>
      guard(async () => {
        request.waiting(`the count of ${formatObjectName(target)}`);
        const [row] = await link.rows<{ n: string }>(`SELECT count(*)::text AS n FROM ${resultTable()}${living()}`);
        return row ? Number(row.n) : null;
      }),
    checksum: () =>
      guard(async () => {
        request.waiting(`the checksum of ${formatObjectName(target)}`);
        if (!hashable || link.encoding !== "UTF8") return null;
        const columns = begun().plan.columns.map(({ name }) => ident(name));
        await link.run("SAVEPOINT magic_checksum");
        try {
          const [row] = await link.rows<{ n: string; checksum: string }>(
            checksumSql(resultTable(), columns, types, living()),
          );
          return row ? { count: Number(row.n), checksum: row.checksum } : null;
        } catch (error) {
          await link.run("ROLLBACK TO SAVEPOINT magic_checksum; RELEASE SAVEPOINT magic_checksum");
          // 42883: one of the types has no hash function (json, point, xml).
          if ((error as { code?: string }).code === "42883") return null;
          throw error;
        }
      }),
    commit: (state) =>
      guard(async () => {
        const { plan, loading } = begun();
        request.waiting(`the lock of ${formatObjectName(target)}`);
        if (loading.how === "shadow" && !exchanged)
          await swap(link, { ...target, oid: existing?.oid ?? null }, loading.name, plan, renames);
        await writeState(link, target.schema, request, state, plan.sourceSchema);
        request.waiting("the destination's commit");
        await link.run(`COMMIT; ${BEGIN}`);
        await parts.close();
      }),
    abort: async () => {
      // Cutting the connection undoes the transaction, whatever it is doing.
      link.kill();
      await parts.close();
    },
  };
  const resultTable = () => (loading?.how === "shadow" && !exchanged ? loading.table : final);
  const living = () => (mayBeMarked(plan, existing) ? ` WHERE ${ident(DELETED_AT)} IS NULL` : "");
  return session;
}
