// The calls that rate limits remember.
import type { Db } from "../schema.ts";
import { sharedNow } from "../shared-clock.ts";

export async function load(db: Db, { name }: { name: string }): Promise<string | undefined> {
  const row = await db.selectFrom("rate_window").select("value").where("name", "=", name).executeTakeFirst();
  return row?.value;
}

export async function save(db: Db, { name, value }: { name: string; value: string }): Promise<void> {
  await db
    .insertInto("rate_window")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}

export interface TakeCalls {
  readonly name: string;
  readonly limit: number;
  readonly windowMs: number;
  /** How many want to be admitted. */
  readonly calls: number;
}

export interface TakenCalls {
  readonly admitted: number;
  /** Calls that would be admitted after these. */
  readonly remaining: number;
  /** Milliseconds until the oldest call leaves the window; the whole window where it is empty. */
  readonly resetMs: number;
}

/** Admits what the window has room for; on Postgres, where several daemons count together, by the database's clock. */
export async function take(db: Db, { name, limit, windowMs, calls }: TakeCalls): Promise<TakenCalls> {
  const now = await sharedNow(db, Date.now());
  const groups = groupsOf(await load(db, { name }), now).filter(([time]) => now - time < windowMs);
  const used = groups.reduce((sum, [, count]) => sum + count, 0);
  const admitted = Math.max(0, Math.min(calls, limit - used));
  if (admitted > 0) {
    // Calls of a 600th of the window are one group, as old as its youngest: it stays a moment too long, never too short.
    const width = windowMs / 600;
    const last = groups.at(-1);
    if (last !== undefined && Math.floor(last[0] / width) === Math.floor(now / width))
      groups[groups.length - 1] = [now, last[1] + admitted];
    else groups.push([now, admitted]);
    const stored = { times: groups.map(([time]) => time), counts: groups.map(([, count]) => count), ahead: 0 };
    await save(db, { name, value: JSON.stringify(stored) });
  }
  const [oldest] = groups;
  return {
    admitted,
    remaining: Math.max(0, limit - used - admitted),
    resetMs: oldest === undefined ? windowMs : oldest[0] + windowMs - now,
  };
}

// Times and counts, oldest first. A time to come is that of a clock that was wrong: it counts as now.
function groupsOf(value: string | undefined, now: number): [number, number][] {
  if (value === undefined) return [];
  const { times, counts } = JSON.parse(value) as { times: number[]; counts?: number[] };
  return times.map((time, at) => [Math.min(time, now), counts?.[at] ?? 1]);
}
