// What was used, summed by one key. Whole days are summed over what was gathered of the ledger, days that the query cuts over the calls
// themselves; each in steps, between which others have the storage, and one query at a time, since its sums are held in memory.
import { setImmediate as breathe } from "node:timers/promises";
import { MagicError } from "#contract/errors.ts";
import { DAY_MS, LAST_MS, rfc3339 } from "#shared/clock.ts";
import { createTurns, inTurn } from "#shared/turns.ts";
import type { UsageQuery, UsageSum } from "./row.ts";

type Step = Pick<UsageQuery, "by" | "environment" | "where">;

/** daemon/storage/repositories/ledger.ts satisfies it. */
export interface UsageStore {
  gather(args: { readonly limit: number }): Promise<boolean>;
  gathered(
    query: Step & {
      readonly after: number;
      readonly limit: number;
      readonly fromDay?: string | undefined;
      readonly toDay?: string | undefined;
    },
  ): Promise<{ readonly sums: readonly UsageSum[]; readonly next: number | null }>;
  keptFrom(args: Record<string, never>): Promise<string | null>;
  forget(args: { readonly before: string; readonly limit: number }): Promise<boolean>;
  between(query: Step & { readonly since: string; readonly until: string }): Promise<readonly UsageSum[]>;
}

/** Calls that are gathered, and gathered rows that are summed, in one step: some 20 ms. */
const GATHERED = 1_000;
const STEP = 5_000;
/** A cut day is read in spans of ten minutes. */
const SPAN_MS = 600_000;
/** Of different keys, some 200 bytes each. */
const MOST_KEYS = 500_000;
/** Sums that are put in order at a time. */
const SLICE = 10_000;

export function createUsage(store: UsageStore) {
  const turns = createTurns();
  const gatherAll = async (): Promise<void> => {
    while (await store.gather({ limit: GATHERED }));
  };

  const sumUp = async (query: UsageQuery): Promise<readonly UsageSum[]> => {
    await gatherAll();
    const { by, environment, where } = query;
    const step: Step = { by, environment, where };
    const sums = new Map<string | null, UsageSum>();
    const { days, spans } = partsOf(query);
    if (days)
      for (let after: number | null = 0; after !== null; ) {
        const found = await store.gathered({ ...step, ...days, after, limit: STEP });
        addTo(sums, found.sums);
        after = found.next;
      }
    for (const [since, until] of spans)
      for (let at = since; at < until; at += SPAN_MS)
        addTo(
          sums,
          await store.between({ ...step, since: rfc3339(at), until: rfc3339(Math.min(until, at + SPAN_MS)) }),
        );
    // Asked last: what has gone meanwhile is missing as well.
    const cut = spans.filter(([since, until]) => since < until);
    const from = cut.length > 0 ? await store.keptFrom({}) : null;
    if (from !== null && cut.some(([since]) => since < Date.parse(from))) throw cutTooFarBack(from);
    return first(sums, query);
  };

  return {
    /** Brings what was gathered up to the newest call. */
    gather: () => inTurn(turns, "usage", gatherAll),
    /** Removes some of the calls of before that day, which sums over whole days go on to count; true while there may be more. */
    forget: (before: string) => inTurn(turns, "usage", () => store.forget({ before, limit: GATHERED })),
    /** The dearest first; days in their order. */
    usage: (query: UsageQuery) => inTurn(turns, "usage", () => sumUp(query)),
  };
}

function cutTooFarBack(from: string): MagicError {
  const detail = `Calls of before ${from} are kept by day alone (gateway.retention_days): since and until must be at midnight UTC there.`;
  return new MagicError("validation_failed", detail, { problems: [{ pointer: "/since", code: "not_kept", detail }] });
}

type Span = readonly [from: number, to: number];

/** Whole days of a query (null: none; undefined: without an end), and what of its first and last day is cut. */
function partsOf({ since, until }: UsageQuery) {
  const from = since === undefined ? undefined : Date.parse(since);
  const to = until === undefined ? undefined : Date.parse(until);
  const firstDay = from === undefined ? undefined : Math.ceil(from / DAY_MS) * DAY_MS;
  const endDay = to === undefined ? undefined : Math.floor(to / DAY_MS) * DAY_MS;
  const spans: Span[] = [];
  if (firstDay !== undefined && endDay !== undefined && firstDay > endDay)
    return { days: null, spans: [[from as number, to as number]] satisfies Span[] };
  if (from !== undefined && firstDay !== undefined) spans.push([from, firstDay]);
  if (to !== undefined && endDay !== undefined) spans.push([endDay, to]);
  return { days: { fromDay: dayOf(firstDay), toDay: dayOf(endDay) }, spans };
}

// Days are compared as texts: one of five digits for its year would stand before all others.
function dayOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : rfc3339(Math.min(ms, LAST_MS)).slice(0, 10);
}

function addTo(sums: Map<string | null, UsageSum>, found: readonly UsageSum[]): void {
  for (const sum of found) {
    const known = sums.get(sum.key);
    if (known)
      sums.set(sum.key, {
        key: sum.key,
        requests: Number(known.requests) + Number(sum.requests),
        prompt_tokens: Number(known.prompt_tokens) + Number(sum.prompt_tokens),
        completion_tokens: Number(known.completion_tokens) + Number(sum.completion_tokens),
        cached_tokens: Number(known.cached_tokens) + Number(sum.cached_tokens),
        reasoning_tokens: Number(known.reasoning_tokens) + Number(sum.reasoning_tokens),
        cost_pico: String(BigInt(known.cost_pico) + BigInt(sum.cost_pico)),
        unpriced: Number(known.unpriced) + Number(sum.unpriced),
      });
    else if (sums.size < MOST_KEYS) sums.set(sum.key, sum);
    else
      throw new MagicError(
        "validation_failed",
        `There are more than ${MOST_KEYS.toLocaleString("en-US")} keys to sum by: narrow it with since and until, or to a team, a project or a model.`,
        { problems: [{ pointer: "/by", code: "too_many", detail: "has too many values in this span" }] },
      );
  }
}

// Slice by slice, since to put a million in order at once takes a second.
async function first(sums: Map<string | null, UsageSum>, { by, limit, after }: UsageQuery): Promise<UsageSum[]> {
  const order = by === "day" ? byKey : byCost;
  const behind = after && { ...nothing, ...after };
  let best: UsageSum[] = [];
  let slice: UsageSum[] = [];
  const merge = () => {
    best = [...best, ...slice].sort(order).slice(0, limit);
    slice = [];
  };
  for (const sum of sums.values()) {
    if (behind && order(behind, sum) >= 0) continue;
    if (slice.push(sum) < SLICE) continue;
    merge();
    await breathe();
  }
  merge();
  return best;
}

const nothing: UsageSum = {
  key: null,
  requests: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
  cost_pico: "0",
  unpriced: 0,
};

function byCost(a: UsageSum, b: UsageSum): number {
  // Digits without a sign: the longer is the larger.
  if (a.cost_pico !== b.cost_pico)
    return b.cost_pico.length - a.cost_pico.length || (a.cost_pico < b.cost_pico ? 1 : -1);
  return byKey(a, b);
}

// Calls that name none come last.
function byKey({ key: a }: UsageSum, { key: b }: UsageSum): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}
