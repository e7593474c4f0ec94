// The audit log's rows. The chain over them is made and proven by daemon/identity/audit.
import { insertRows } from "../insert-rows.ts";
import type { Page } from "../page.ts";
import type { Db } from "../schema.ts";
import { type AuditEntryTable, auditColumns } from "../tables/audit.ts";

export interface AuditHead {
  readonly sequence: number;
  readonly mac: string;
}

/** No log comes so far. What lies beyond was put there by somebody else: there numbers end, or are no longer exact. */
const FURTHEST = 2 ** 52;

/** Nor does a log come so far at once. What lies further ahead was put there by somebody else too: behind it the log might have no room. */
const STRIDE = 2 ** 40;

const reachOf = (after: number): number => Math.min(after + STRIDE, FURTHEST);

/** The last entry's place, which lies at or behind a known one, `after`; undefined in an empty log. */
export async function head(db: Db, { after }: { after: number }): Promise<AuditHead | undefined> {
  return db
    .selectFrom("audit_entry")
    .select(["sequence", "mac"])
    .where("sequence", "<=", reachOf(after))
    .orderBy("sequence", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** What was found where `append` expected the log's end. */
export interface AuditBeyond {
  readonly head: AuditHead;
  /** The ids of the given entries that are there already: the answer to an earlier try was lost. */
  readonly stored: readonly string[];
}

/** Appends entries (JSON: arrays in the order of `auditColumns`) unless the log goes beyond `after` already, by another replica or an earlier try. */
export async function append(
  db: Db,
  { after, rows }: { after: number; rows: string },
): Promise<AuditBeyond | "appended"> {
  const found = await head(db, { after });
  if (found && found.sequence > after) {
    const given = (JSON.parse(rows) as unknown[][]).map((row) => String(row[auditColumns.indexOf("id")]));
    const there = await db
      .selectFrom("audit_entry")
      .select("id")
      .where("sequence", ">", after)
      .where("id", "in", given)
      .execute();
    return { head: found, stored: there.map(({ id }) => id) };
  }
  await insertRows(db, "audit_entry", auditColumns, rows);
  return "appended";
}

/** Entries behind `after` (null: from the very first, those without a number too), ascending: for the proof. */
export async function page(
  db: Db,
  { after, limit }: { after: number | null; limit: number },
): Promise<AuditEntryTable[]> {
  let query = db.selectFrom("audit_entry").selectAll();
  if (after !== null) query = query.where("sequence", ">", after);
  return query.orderBy("sequence", "asc").limit(limit).execute();
}

export interface ListAudit extends Page {
  readonly environment?: string | undefined;
  readonly request_id?: string | undefined;
  readonly outcome?: string | undefined;
  /** An id, or a type. */
  readonly identity?: string | undefined;
  readonly action?: string | undefined;
  /** RFC 3339, both inclusive. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** Where a list goes on. */
export interface AuditStep {
  /** Newest first; oldest first ahead of a cursor. One more than asked for at the most. */
  readonly rows: AuditEntryTable[];
  /** The next place to look at; null: there is no more. */
  readonly next: number | null;
}

export interface LookAudit extends ListAudit {
  /** Absent: the cursor, or the newest. */
  readonly from?: number | undefined;
  /** How many entries are looked at, whatever fits: meanwhile others wait. */
  readonly reach: number;
}

/** One step of a list. */
export async function look(db: Db, args: LookAudit): Promise<AuditStep> {
  const ahead = args.before !== undefined;
  const start = args.from ?? (await startOf(db, args));
  if (start === null) return { rows: [], next: null };
  // These are found by an index, however many there are.
  const reach = args.request_id === undefined ? args.reach - 1 : Number.MAX_SAFE_INTEGER;
  const end = ahead ? start + reach : start - reach;
  let query = db
    .selectFrom("audit_entry")
    .selectAll()
    .where("sequence", ">=", ahead ? start : end)
    .where("sequence", "<=", ahead ? end : start);
  const { environment, request_id, outcome, identity, action, since, until } = args;
  if (environment !== undefined) query = query.where("environment", "=", environment);
  if (request_id !== undefined) query = query.where("request_id", "=", request_id);
  if (outcome !== undefined) query = query.where("outcome", "=", outcome);
  if (action !== undefined) query = query.where("action", "=", action);
  if (since !== undefined) query = query.where("timestamp", ">=", since);
  if (until !== undefined) query = query.where("timestamp", "<=", until);
  if (identity !== undefined)
    query = query.where((where) =>
      where.or([where("identity_id", "=", identity), where("identity_type", "=", identity)]),
    );
  const rows = await query
    .orderBy("sequence", ahead ? "asc" : "desc")
    .limit(args.limit + 1)
    .execute();
  return { rows, next: ahead ? await nearest(db, ">", end) : await nearest(db, "<", end) };
}

async function startOf(db: Db, { after, before }: Page): Promise<number | null> {
  if (before !== undefined) return nearest(db, ">", await sequenceOf(db, before));
  return nearest(db, "<", after === undefined ? Number.MAX_SAFE_INTEGER : await sequenceOf(db, after));
}

// The entry next to a place: over a gap too, however wide.
async function nearest(db: Db, side: "<" | ">", place: number): Promise<number | null> {
  const row = await db
    .selectFrom("audit_entry")
    .select("sequence")
    .where("sequence", side, place)
    .where("sequence", "<=", FURTHEST)
    .orderBy("sequence", side === "<" ? "desc" : "asc")
    .limit(1)
    .executeTakeFirst();
  return row?.sequence ?? null;
}

/** Deletes the entries up to a checkpoint, at most `limit` at a time; answers how many went. */
export async function prune(db: Db, { upTo, limit }: { upTo: number; limit: number }): Promise<number> {
  const rows = await db
    .selectFrom("audit_entry")
    .select("sequence")
    .where("sequence", "<=", upTo)
    .orderBy("sequence", "asc")
    .limit(limit)
    .execute();
  const last = rows.at(-1);
  if (!last) return 0;
  await db.deleteFrom("audit_entry").where("sequence", "<=", last.sequence).execute();
  return rows.length;
}

/**
 * Where retention puts its checkpoint: the last entry before the first that is not older than `before`, looking at `limit` entries behind
 * `after`; and whether to look on behind it. Nothing younger lies before it, whatever the clock did. The last of all stays, by which whoever
 * appends knows where it is.
 */
export async function lastBefore(
  db: Db,
  { before, after, limit }: { before: string; after: number; limit: number },
): Promise<{ readonly last: AuditHead | undefined; readonly more: boolean }> {
  const seen = await db
    .selectFrom("audit_entry")
    .select(["sequence", "mac", "timestamp"])
    .where("sequence", ">", after)
    .where("sequence", "<=", reachOf(after))
    .orderBy("sequence")
    .limit(limit + 1)
    .execute();
  const young = seen.findIndex(({ timestamp }) => timestamp >= before);
  const found = seen[(young < 0 ? seen.length - 1 : young) - 1];
  const last = found && { sequence: found.sequence, mac: found.mac };
  return { last, more: young < 0 && seen.length > limit };
}

// A cursor whose entry is gone (retention) lies before everything that is left.
async function sequenceOf(db: Db, id: string): Promise<number> {
  const row = await db.selectFrom("audit_entry").select("sequence").where("id", "=", id).executeTakeFirst();
  return row?.sequence ?? 0;
}
