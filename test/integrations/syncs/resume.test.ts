// Runs that go on where they were: what they tell in the end is of all attempts, and a state is of one cursor only.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SyncSpec } from "#contract/sync.ts";
import { openDestination } from "#daemon/integrations/connectors/open.ts";
import { runSync } from "#daemon/integrations/engine/run.ts";
import type { Batch, Source } from "#daemon/integrations/engine/source.ts";
import { postgresMissing } from "#test/postgres.ts";
import { openPair, type Pair, specOf, sync } from "./harness.ts";

const BATCH = 60_000;
const BATCHES = 5;
const TOTAL = BATCH * BATCHES;

// Without a snapshot, as an API: its batches carry a state, so the run commits on the way. It fails before batch `dies`.
function pages(dies: number): Source {
  return {
    check: async () => {},
    discover: async () => [],
    close: async () => {},
    open: async ({ state }) => ({
      schema: { columns: [{ name: "id", type: { kind: "int", bits: 64 }, nullable: true }], primaryKey: ["id"] },
      snapshot: false,
      changed: true,
      warnings: [],
      partitions: [{ id: "all", records: null }],
      rawFormats: [],
      async *read(): AsyncGenerator<Batch> {
        for (let page = Number(state?.cursor ?? 0); page < BATCHES; page++) {
          if (page === dies) throw new Error("the source died");
          const rows = Array.from({ length: BATCH }, (_, at) => [String(page * BATCH + at)]);
          yield { rows, bytes: BATCH, state: { cursor: String(page + 1) } };
        }
      },
      endState: () => ({ cursor: String(BATCHES) }),
      close: async () => {},
    }),
  };
}

describe.skipIf(postgresMissing())("runs that go on", () => {
  const folder = mkdtempSync(join(tmpdir(), "magic-resume-"));
  let pair: Pair;
  beforeAll(async () => {
    pair = await openPair();
  });
  afterAll(async () => {
    await pair?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const attempt = (spec: SyncSpec, dies = BATCHES) =>
    runSync(spec, {
      openSource: async () => pages(dies),
      openDestination: () => openDestination(spec.destination),
      onProgress: () => {},
      signal: new AbortController().signal,
    });

  test("counts and rejects of a run are those of all its attempts, and of no other run", async () => {
    await pair.target.query("CREATE TABLE pages (id bigint PRIMARY KEY CHECK (id <> 7 AND id <> 250000))");
    const file = join(folder, "pages.sqlite");
    const lite = new DatabaseSync(file);
    lite.exec("CREATE TABLE pages (id bigint PRIMARY KEY CHECK (id <> 7 AND id <> 250000))");
    lite.close();
    for (const to of [pair.to, file]) {
      const ends = { from: "pages.jsonl", object: "pages", to, table: "pages" };
      const spec = specOf(ends, { sync_id: "sync_pages", mode: "incremental" });
      // 120,000 are committed before it dies in the fourth batch.
      const committed = { records_synced: 2 * BATCH - 1, records_rejected: 1 };
      expect(await attempt(spec, 2)).toMatchObject({ status: "failed", records_read: 2 * BATCH, ...committed });
      expect(await attempt(spec, 2)).toMatchObject({ status: "failed", records_read: 2 * BATCH, ...committed });
      const whole = { status: "completed", records_read: TOTAL, records_synced: TOTAL - 2, records_rejected: 2 };
      const rejects = [{ key: "7" }, { key: "250000" }];
      expect(await attempt(spec)).toMatchObject({ ...whole, rejects, proof: { destination_count: TOTAL - 2 } });
      // Killed between its commit and the notice of it.
      expect(await attempt(spec)).toMatchObject({ ...whole, rejects });
      expect(await attempt({ ...spec, run_id: "run_next" })).toMatchObject({ records_read: 0, records_rejected: 0 });
    }
  });

  test("a run into a file that fails has synced nothing", async () => {
    const ends = { from: "pages.jsonl", object: "pages", to: join(folder, "pages.jsonl"), table: "pages" };
    const spec = specOf(ends, { mode: "incremental", state_file: join(folder, "state.json") });
    expect(await attempt(spec, 4)).toMatchObject({ status: "failed", records_synced: 0, changed: false });
    expect(await attempt(spec)).toMatchObject({ status: "completed", records_read: TOTAL, records_synced: TOTAL });
  });

  test("another cursor field reads everything again where there is a key, and is refused where rows would come twice", async () => {
    const from = join(folder, "from.sqlite");
    const db = new DatabaseSync(from);
    db.exec("CREATE TABLE t (id int PRIMARY KEY, a int, b int); INSERT INTO t VALUES (1, 1000, 1), (2, 2000, 2)");
    db.exec("CREATE TABLE log (a int, b int); INSERT INTO log VALUES (1000, 1)");
    const into = (table: string, cursor_field: string, more: Partial<SyncSpec> = {}) =>
      sync({ from, object: table, to: pair.to, table }, { mode: "incremental", cursor_field, ...more });
    expect(await into("t", "a")).toMatchObject({ records_synced: 2, error: null });
    expect(await into("log", "a")).toMatchObject({ records_synced: 1, error: null });
    db.exec("INSERT INTO t VALUES (3, 0, 3); INSERT INTO log VALUES (0, 3)");
    expect(await into("t", "b")).toMatchObject({ error: null });
    expect(await pair.target.lines("t")).toHaveLength(3);
    expect((await into("log", "b")).error).toMatchObject({ code: "validation_failed" });
    expect((await into("log", "b", { reset: true })).error).toBeNull();
    expect((await into("log", "b")).error).toBeNull();
    expect(await pair.target.lines("log")).toHaveLength(2);
    db.close();
  });

  test("what a full refresh brought does not come a second time when the next run is incremental", async () => {
    await pair.source.query("CREATE TABLE seen (n int); INSERT INTO seen VALUES (1), (2)");
    const ends = { from: pair.from, object: "seen", to: pair.to, table: "seen" };
    expect((await sync(ends)).error).toBeNull();
    const ask = { mode: "incremental", cursor_field: "n" } as const;
    expect(await sync(ends, ask)).toMatchObject({ records_synced: 2, error: null });
    await pair.source.query("INSERT INTO seen VALUES (3)");
    expect(await sync(ends, ask)).toMatchObject({ records_synced: 1, error: null });
    expect(await pair.target.lines("seen")).toHaveLength(3);
  });
});
