// The gateway's limits where several daemons share a database: of each caller the calls and tokens of the last minute, and the calls that
// every daemon has under way. By the database's clock, one daemon at a time.
import { rfc3339 } from "#shared/clock.ts";
import { type CallLimits, type CallRefusal, type LastMinute, refusalOf } from "../call-limits.ts";
import { enter, ROUND } from "../gate.ts";
import { insertValues } from "../insert-rows.ts";
import type { Db } from "../schema.ts";
import { sharedNow } from "../shared-clock.ts";
import { isAlive } from "./idempotency.ts";

/** What a daemon has to say of one caller. */
export interface CallerRound {
  readonly caller: string;
  /** Its calls under way. */
  readonly underWay: number;
  /** Calls that want to begin, in the order in which they came. */
  readonly calls: readonly { readonly tokens: number; readonly limits: CallLimits }[];
  /** Of calls that ended: what they took too little (counts from now on) or too much (negative; taken back from when they began). */
  readonly corrections: readonly { readonly second: number; readonly tokens: number }[];
}

export interface CallOutcome {
  readonly refused: CallRefusal | null;
  /** What the last minute holds with it. */
  readonly requests: number;
  readonly tokens: number;
}

export interface RoundOutcome {
  /** In whose name corrections of the calls that began now are to be made. */
  readonly second: number;
  /** Of each caller its calls' outcomes, in the order in which they were asked for. */
  readonly callers: readonly (readonly CallOutcome[])[];
}

const WINDOW_MS = 60_000;

/** A second with something in it, when its last came, and how much it is: it counts whole until a minute after its last. */
type Bucket = [second: number, last: number, amount: number];

interface Counts {
  readonly requests: Bucket[];
  readonly tokens: Bucket[];
  /** Of each process; one that died has none any more. */
  readonly underWay: Record<string, number>;
}

/** Lets calls begin or refuses them, and notes which ended. */
export async function round(
  db: Db,
  args: { readonly process: string; readonly now: string; readonly callers: readonly CallerRound[] },
): Promise<RoundOutcome> {
  await enter(db, ROUND);
  const now = await sharedNow(db, Date.parse(args.now));
  const second = Math.floor(now / 1_000);
  const names = args.callers.map(({ caller }) => caller);
  const stored = await db.selectFrom("gateway_limit").selectAll().where("caller", "in", names).execute();
  const known = new Map(stored.map(({ caller, counts }) => [caller, JSON.parse(counts) as Counts]));
  const alive = new Map<string, boolean>();
  const rows: [caller: string, counts: string][] = [];
  const callers: CallOutcome[][] = [];
  for (const { caller, underWay, calls, corrections } of args.callers) {
    const counts = known.get(caller) ?? { requests: [], tokens: [], underWay: {} };
    const requests = windowOf(counts.requests, now);
    const tokens = windowOf(counts.tokens, now);
    for (const correction of corrections) tokens.correct(correction.second, correction.tokens);
    const elsewhere: Record<string, number> = {};
    for (const [process, count] of Object.entries(counts.underWay)) {
      if (process === args.process) continue;
      if (!alive.has(process)) alive.set(process, await isAlive(db, process, rfc3339(now)));
      if (alive.get(process)) elsewhere[process] = count;
    }
    const others = Object.values(elsewhere).reduce((sum, count) => sum + count, 0);
    let own = underWay;
    const outcomes = calls.map(({ tokens: size, limits }) => {
      const refused = refusalOf(limits, own + others, requests, tokens, size);
      if (!refused) {
        own++;
        requests.add(1);
        tokens.add(size);
      }
      return { refused, requests: requests.sum(), tokens: tokens.sum() };
    });
    callers.push(outcomes);
    const all = own > 0 ? { ...elsewhere, [args.process]: own } : elsewhere;
    rows.push([caller, JSON.stringify({ requests: requests.buckets, tokens: tokens.buckets, underWay: all })]);
  }
  await insertValues(
    db,
    "gateway_limit",
    ["caller", "counts"],
    rows,
    "on conflict (caller) do update set counts = excluded.counts",
  );
  return { second, callers };
}

interface DatabaseWindow extends LastMinute {
  readonly buckets: readonly Bucket[];
  add(amount: number): void;
  correct(second: number, amount: number): void;
}

// Times to come are those of a clock that was set back since: they count as now.
function windowOf(stored: readonly Bucket[], now: number): DatabaseWindow {
  const buckets = stored
    .map(([second, last, amount]): Bucket => [second, Math.min(last, now), amount])
    .filter(([, last, amount]) => amount > 0 && now - last < WINDOW_MS);
  const current = Math.floor(now / 1_000);
  const add = (amount: number) => {
    const newest = buckets.at(-1);
    if (newest?.[0] === current) {
      newest[1] = now;
      newest[2] += amount;
    } else buckets.push([current, now, amount]);
  };
  return {
    buckets,
    sum: () => buckets.reduce((sum, [, , amount]) => sum + amount, 0),
    add,
    correct(second, amount) {
      const bucket = buckets.find(([at]) => at === second);
      if (amount > 0) add(amount);
      else if (bucket) bucket[2] = Math.max(0, bucket[2] + amount);
    },
    untilBelow(room) {
      let left = this.sum();
      let wait = 0;
      for (const [, last, amount] of buckets) {
        if (left <= room) break;
        if (amount > 0) wait = last + WINDOW_MS - now;
        left -= amount;
      }
      return Math.max(0, wait);
    },
  };
}
