// Finding every row that was committed since the last run, also those of writers that were slow to commit. A cursor alone cannot:
// a row may become visible with a lower value than one already read. PostgreSQL stamps each row version with the transaction that
// wrote it (xmin), so the rows that a snapshot did not see can be told exactly.
import { MagicError } from "#contract/errors.ts";
import { list } from "#contract/json-object.ts";
import type { StreamState } from "../../engine/source.ts";
import type { PostgresLink } from "./connect.ts";
import { literal } from "./sql.ts";

export interface Horizon {
  /** `pg_current_snapshot()`: xmin:xmax:in progress. */
  readonly snapshot: string;
  /** The cluster: transaction numbers mean nothing in another one. */
  readonly system: string;
  /** Counts promotions of standbys: a new primary may give numbers again that the old one had given to transactions which it lost. */
  readonly timeline?: string | undefined;
  /** Transactions numbered from the snapshot's xmin on whose rows it did see, subtransactions too (a snapshot does not list these). */
  readonly seen: readonly string[];
  /** The tables so far, by oid, partitions too: one that is attached, or takes another's place, brings rows whose writers are long gone. */
  readonly parts?: readonly string[];
}

// Beyond half of the 32-bit space a row's transaction number is ambiguous.
const TOO_OLD = 1_500_000_000n;
// Behind a transaction that stays open for hours: of more writers the rows are read again, where a key makes that harmless.
const MANY_WRITERS = 1_000_000;

/**
 * The horizon of the transaction that `link` is in; `current`: the table with its parts, `before`: the state of the last run. `behind`: a
 * standby's, which may lag behind the server of that run: by a key what it lacks is read again, without one that would come twice. `later`:
 * it is certainly none that lags, nor one that has lost transactions.
 */
export async function takeHorizon(
  link: PostgresLink,
  table: string,
  current: readonly string[],
  before: StreamState | null,
  keyed: boolean,
): Promise<{ readonly horizon: Horizon; readonly behind: boolean; readonly later: boolean }> {
  const { snapshot, system, timeline, standby } = await currentSnapshot(link);
  const [xmin, xmax] = snapshot.split(":");
  const earlier = horizonOf(before);
  const behind = standby && !keyed && earlier !== null && isOfOneLine(earlier, { system, timeline });
  const later = !standby && timeline !== undefined;
  const taken = (horizon: Horizon) => ({ horizon: behind ? joined(earlier, horizon) : horizon, behind, later });
  const known = earlier?.system === system ? (earlier.parts ?? []) : [];
  // One that was detached and comes back has been read; what was written into it meanwhile the snapshot tells. By a key it is read again:
  // where deletions are followed, its rows were taken for gone.
  const gone = keyed ? [] : known.filter((oid) => !current.includes(oid));
  const detached =
    gone.length === 0
      ? []
      : await link.rows<{ oid: string }>("SELECT oid::text FROM pg_class WHERE oid = ANY ($1::oid[])", [gone]);
  const parts = [...current, ...detached.map(({ oid }) => oid)];
  // Nobody is writing: every row that this snapshot sees was written before its xmin.
  if (xmin === xmax) return taken({ snapshot, system, timeline, seen: [], parts });
  const rows = await link.rows<{ xid: string }>(
    `SELECT DISTINCT xmin::text AS xid FROM ${table} WHERE ${since(xmin)}${keyed ? ` LIMIT ${MANY_WRITERS + 1}` : ""}`,
  );
  const seen = keyed && rows.length > MANY_WRITERS ? [] : rows.map(({ xid }) => xid);
  return taken({ snapshot, system, timeline, seen, parts });
}

/** No promotion lies between the two: a transaction's number means the same in both. */
function isOfOneLine(earlier: Horizon, now: Pick<Horizon, "system" | "timeline">): boolean {
  return earlier.system === now.system && (earlier.timeline ?? now.timeline) === now.timeline;
}

function boundsOf(snapshot: string): { readonly xmin: bigint; readonly xmax: bigint } {
  const [xmin = "0", xmax = "0"] = snapshot.split(":");
  return { xmin: BigInt(xmin), xmax: BigInt(xmax) };
}

const greater = (one: bigint, other: bigint): bigint => (one > other ? one : other);

/** What either of two horizons of one cluster has seen. */
function joined(earlier: Horizon, later: Horizon): Horizon {
  const [before, after] = [boundsOf(earlier.snapshot), boundsOf(later.snapshot)];
  const xmin = greater(before.xmin, after.xmin);
  const xmax = greater(before.xmax, after.xmax);
  // Others have become what every transaction before xmin is: seen.
  const late = [...earlier.seen, ...later.seen].filter((xid) => BigInt.asIntN(32, BigInt(xid) - xmin) >= 0n);
  return { ...later, snapshot: `${xmin}:${xmax}:`, seen: [...new Set(late)] };
}

/**
 * The SQL condition for rows that the earlier horizon did not see, or may not have; null where it says nothing about this server's rows.
 * `altered`: the columns that are new or of another type since.
 */
export async function unseenSince(
  link: PostgresLink,
  state: StreamState | null,
  parts: readonly string[],
  keyed: boolean,
  altered: readonly string[],
): Promise<string | null> {
  const earlier = horizonOf(state);
  if (!earlier) return null;
  const { snapshot, system, timeline } = await currentSnapshot(link);
  if (system === earlier.system && !isOfOneLine(earlier, { system, timeline })) {
    if (keyed) return "true";
    throw new MagicError(
      "validation_failed",
      "The source is a standby that was promoted since the last run: what the old primary did last may be gone, the numbers of its transactions are given again, and without a primary key nobody can tell which records are there. Run a full refresh, or name a key.",
    );
  }
  const then = boundsOf(earlier.snapshot).xmin;
  const now = boundsOf(snapshot).xmax;
  if (system !== earlier.system || now < then || now - then > TOO_OLD) return null;
  const young = since(String(then));
  const seen =
    keyed || state?.cursor == null
      ? earlier.seen
      : [...earlier.seen, ...(await rewriters(link, parts, young, altered))];
  const unseen =
    seen.length === 0 ? young : `(${young} AND xmin::text <> ALL (${literal(`{${seen.join(",")}}`)}::text[]))`;
  const known = earlier.parts ?? parts;
  const added = parts.filter((oid) => !known.includes(oid));
  return added.length === 0 ? unseen : `(${unseen} OR tableoid IN (${added.join(", ")}))`;
}

// Who gives a column another type, or a default that each row has its own of, writes every row anew: rows that have been read would come
// a second time. Of those the cursor tells the new ones. Where an older row is left, whoever altered the table wrote none anew.
// A later change of such a column (SET NOT NULL) hides who gave it its type: the table's own entry still tells who made its rows' file.
async function rewriters(
  link: PostgresLink,
  tables: readonly string[],
  young: string,
  altered: readonly string[],
): Promise<string[]> {
  const [root] = await link.rows<{ name: string }>("SELECT $1::oid::regclass::text AS name", [tables[0]]);
  const rows = await link.rows<{ xid: string }>(
    `WITH changes AS (SELECT attname, xmin::text::xid AS xid, attrelid FROM pg_attribute WHERE attrelid = ANY ($1::oid[]) AND attnum > 0 AND ${young}),
          files AS (SELECT oid, xmin::text::xid AS xid FROM pg_class WHERE oid = ANY ($1::oid[]) AND ${young})
     SELECT xid::text FROM (SELECT xid FROM changes UNION SELECT f.xid FROM files f JOIN changes c ON c.attrelid = f.oid WHERE attname::text = ANY ($2::text[]) AND age(c.xid) < age(f.xid)) altering
      WHERE EXISTS (SELECT FROM ${root?.name} t WHERE age(t.xmin) NOT BETWEEN 0 AND age(xid)) IS FALSE`,
    [`{${tables.join(",")}}`, [...altered]],
  );
  return rows.map(({ xid }) => xid);
}

/** True where no transaction has begun to write since the horizon was taken, and none was under way then. */
export async function nothingHappened(link: PostgresLink, state: StreamState | null): Promise<boolean> {
  const earlier = horizonOf(state);
  if (!earlier) return false;
  const { snapshot, system, timeline } = await currentSnapshot(link);
  const [xmin, xmax] = earlier.snapshot.split(":");
  return isOfOneLine(earlier, { system, timeline }) && xmin === xmax && snapshot === earlier.snapshot;
}

/** True where the state was kept of this cluster's very database, a standby's included. */
export async function isOfThisDatabase(link: PostgresLink, state: StreamState): Promise<boolean> {
  const { system } = await currentSnapshot(link);
  return !system.startsWith("unknown/") && horizonOf(state)?.system === system;
}

function horizonOf(state: StreamState | null): Horizon | null {
  const horizon = state?.["horizon"] as Partial<Horizon> | null | undefined;
  if (!horizon || typeof horizon.snapshot !== "string" || !/^\d+:\d+:/.test(horizon.snapshot)) return null;
  const numbers = (given: unknown) => list<string>(given).filter((one) => /^\d+$/.test(one));
  const { snapshot, system = "", timeline, seen = [], parts } = horizon;
  return { snapshot, system, timeline, seen: numbers(seen), ...(parts ? { parts: numbers(parts) } : {}) };
}

async function currentSnapshot(
  link: PostgresLink,
): Promise<{ snapshot: string; system: string; timeline: string | undefined; standby: boolean }> {
  const [row] = await link.rows<{ snapshot: string; place: string; standby: string; told: string }>(
    "SELECT pg_current_snapshot()::text AS snapshot, current_database() AS place, pg_is_in_recovery()::text AS standby, (has_function_privilege('pg_control_system()', 'EXECUTE') AND has_function_privilege('pg_control_checkpoint()', 'EXECUTE'))::text AS told",
  );
  // The control file tells of a promotion only with its checkpoint, minutes later; the log's own name at once.
  const log = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int";
  // Some hosts keep the cluster's number to themselves: then a restored cluster is not told from the old one.
  const [cluster] =
    row?.told === "true"
      ? await link.rows<{ id: string; timeline: string }>(
          `SELECT system_identifier::text AS id, (SELECT CASE WHEN pg_is_in_recovery() THEN timeline_id ELSE ${log} END::text FROM pg_control_checkpoint()) AS timeline FROM pg_control_system()`,
        )
      : [];
  const system = `${cluster?.id ?? "unknown"}/${row?.place ?? ""}`;
  return { snapshot: row?.snapshot ?? "", system, timeline: cluster?.timeline, standby: row?.standby === "true" };
}

// Written by transaction `xid` or a later one. A frozen row keeps the number of its writer: beyond half of the space its age is negative.
function since(xid: string | undefined): string {
  return `age(xmin) BETWEEN 0 AND age(${literal(low(xid))}::xid)`;
}

// A row's xmin holds the low 32 bits of the transaction number.
function low(xid: string | undefined): string {
  return String(BigInt(xid ?? "0") & 0xffffffffn);
}
