// A thousand things that someone who can write the database might do to the audit log: every one is proven.
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import type { Anchor } from "#daemon/identity/audit/anchor.ts";
import {
  type AuditRecord,
  type ChainedRecord,
  type ChainHead,
  chain,
  contentOf,
  GENESIS,
} from "#daemon/identity/audit/chain.ts";
import { verifyChain } from "#daemon/identity/audit/verify.ts";
import { auditColumns } from "#daemon/storage/tables/audit.ts";
import { type Random, seeded } from "./random.ts";

const key = randomBytes(32);
const LENGTH = 40;

function log(random: Random): ChainedRecord[] {
  const records = Array.from(
    { length: LENGTH },
    (_, index): AuditRecord => ({
      id: `aud_${index}`,
      timestamp: new Date(1_790_000_000_000 + index * 1_000).toISOString(),
      identity_type: random.pick(["key", "client", "admin", "anonymous"]),
      identity_id: random.pick([null, `key_${random.below(3)}`]),
      action: random.pick(["syncs.create", "syncs.list", "keys.roll"]),
      resource: random.pick([null, `sync_${random.below(5)}`]),
      outcome: random.pick(["success", "refused", "failed"]),
      status: random.pick([200, 201, 401, 404]),
      request_id: `req_${index}`,
      environment: random.pick(["sandbox", "live"]),
    }),
  );
  return chained(key, GENESIS, records);
}

function chained(by: Buffer, head: ChainHead, records: readonly AuditRecord[]): ChainedRecord[] {
  const { rows } = chain(by, head, records.map(contentOf));
  return (JSON.parse(rows) as unknown[][]).map(
    (values) => Object.fromEntries(auditColumns.map((name, at) => [name, values[at]])) as unknown as ChainedRecord,
  );
}

async function* pagesOf(rows: readonly ChainedRecord[]): AsyncGenerator<readonly ChainedRecord[]> {
  for (let index = 0; index < rows.length; index += 7) yield rows.slice(index, index + 7);
}

// What an attacker without the key can do, each over rows in ascending order of their sequence.
const mutations: Readonly<Record<string, (rows: ChainedRecord[], random: Random) => ChainedRecord[]>> = {
  edit(rows, random) {
    const at = random.below(rows.length);
    const row = { ...(rows[at] as ChainedRecord) };
    const column = random.pick(Object.keys(row).filter((name) => name !== "sequence") as (keyof AuditRecord)[]);
    const changed: unknown =
      column === "status"
        ? row.status + 1
        : row[column] === null
          ? "key_other"
          : random.pick([`${row[column]}x`, null, ""]);
    return rows.with(at, { ...row, [column]: changed } as ChainedRecord);
  },
  delete(rows, random) {
    const from = random.below(rows.length);
    return rows.toSpliced(from, 1 + random.below(3));
  },
  reorder(rows, random) {
    const [a, b] = [random.below(rows.length), random.below(rows.length - 1)];
    const other = b >= a ? b + 1 : b;
    const [first, second] = [rows[a] as ChainedRecord, rows[other] as ChainedRecord];
    return rows.with(a, { ...second, sequence: first.sequence }).with(other, { ...first, sequence: second.sequence });
  },
  truncate: (rows, random) => rows.slice(0, random.below(rows.length)),
  insert(rows, random) {
    const at = random.below(rows.length);
    const forged = { ...(rows[at] as ChainedRecord), id: "aud_forged" };
    return [...rows.slice(0, at), forged, ...rows.slice(at).map((row) => ({ ...row, sequence: row.sequence + 1 }))];
  },
  // Takes an entry out and closes the gap in the numbers.
  closeGap(rows, random) {
    const at = random.below(rows.length);
    return rows.toSpliced(at, 1).map((row, index) => ({ ...row, sequence: index + 1 }));
  },
  // Writes the chain anew from some entry on with a key of the attacker's own.
  rechain(rows, random) {
    const at = random.below(rows.length);
    const before = rows[at - 1] ?? GENESIS;
    const edited = rows.slice(at).map((row, index) => (index === 0 ? { ...row, action: "nothing.happened" } : row));
    return [...rows.slice(0, at), ...chained(randomBytes(32), before, edited)];
  },
};

test("an untouched log is valid, whatever the pages", async () => {
  const rows = log(seeded(1));
  const anchor: Anchor = { head: rows.at(-1) as ChainedRecord, base: GENESIS };
  expect(await verifyChain(key, anchor, pagesOf(rows))).toEqual({
    valid: true,
    entries: LENGTH,
    unproven: 0,
    problems: [],
  });
  // The daemon was killed between storing and anchoring: the anchor is behind, which is no offence.
  const behind: Anchor = { head: rows[LENGTH - 5] as ChainedRecord, base: GENESIS };
  expect((await verifyChain(key, behind, pagesOf(rows))).valid).toBe(true);
});

test("of 1,000 edits, deletions, reorderings, truncations, insertions and forgeries every one is detected", async () => {
  const undetected: string[] = [];
  const names = Object.keys(mutations);
  for (let seed = 0; seed < 1_000; seed++) {
    const random = seeded(seed);
    const rows = log(random);
    const anchor: Anchor = { head: rows.at(-1) as ChainedRecord, base: GENESIS };
    const name = names[seed % names.length] as string;
    const mutated = mutations[name]?.(rows, random) ?? rows;
    // Rows that are alike but for their id may be swapped into themselves: not here, ids differ.
    const { valid, problems } = await verifyChain(key, anchor, pagesOf(mutated));
    if (valid || problems.length === 0) undetected.push(`${name}, seed ${seed}`);
  }
  expect(undetected).toEqual([]);
});

test("a base that retention left is where the proof begins", async () => {
  const rows = log(seeded(2));
  const base = rows[9] as ChainedRecord;
  const anchor: Anchor = { head: rows.at(-1) as ChainedRecord, base };
  expect((await verifyChain(key, anchor, pagesOf(rows.slice(10)))).valid).toBe(true);
  expect((await verifyChain(key, anchor, pagesOf(rows.slice(11)))).problems).toEqual([
    { code: "missing", sequence: 11 },
  ]);
});

test("where the key of older entries was given up, they are counted and the proof begins behind them", async () => {
  const random = seeded(5);
  const older = chained(randomBytes(32), GENESIS, log(random));
  const lost = older.at(-1) as ChainedRecord;
  const newer = chained(
    key,
    lost,
    log(random).map((record) => ({ ...record, id: `${record.id}_` })),
  );
  const rows = [...older, ...newer];
  const anchor: Anchor = { head: rows.at(-1) as ChainedRecord, base: GENESIS, lost };
  const found = { valid: true, entries: rows.length, unproven: LENGTH, problems: [] };
  expect(await verifyChain(key, anchor, pagesOf(rows))).toEqual(found);
  const codes = async (changed: readonly ChainedRecord[]) =>
    (await verifyChain(key, anchor, pagesOf(changed))).problems.map(({ code }) => code);
  const edited = { ...(rows[LENGTH] as ChainedRecord), action: "nothing.happened" };
  expect(await codes(rows.with(LENGTH, edited))).toEqual(["altered"]);
  expect(await codes(rows.toSpliced(LENGTH, 1))).toEqual(["missing"]);
  expect(await codes(rows.toSpliced(LENGTH - 1, 1))).toEqual(["missing"]);
  expect(await codes(rows.with(LENGTH - 1, { ...lost, mac: "x" }))).toEqual(["anchor_mismatch", "altered"]);
  expect(await codes(rows.slice(0, LENGTH))).toEqual(["truncated"]);
});

test("the log of another key, a lost anchor and a forged one are named", async () => {
  const rows = log(seeded(3));
  const anchor: Anchor = { head: rows.at(-1) as ChainedRecord, base: GENESIS };
  expect((await verifyChain(randomBytes(32), anchor, pagesOf(rows))).problems).toHaveLength(LENGTH);
  expect((await verifyChain(key, undefined, pagesOf(rows))).problems.map(({ code }) => code)).toEqual([
    "anchor_missing",
  ]);
  expect((await verifyChain(key, "invalid", pagesOf(rows))).problems.map(({ code }) => code)).toEqual([
    "anchor_invalid",
  ]);
  const foreign: Anchor = { head: { sequence: LENGTH, mac: "other" }, base: GENESIS };
  expect((await verifyChain(key, foreign, pagesOf(rows))).problems).toEqual([
    { code: "anchor_mismatch", sequence: LENGTH },
  ]);
});
