// A file that several write: daemons on one Postgres, and syncs, or several objects whose state it is. What one has appended no other
// one appends again.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sharedPostgres } from "#test/dialects.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon, type TestDaemon } from "../daemon.ts";
import { ended, live, trigger } from "../runs.ts";
import { sync } from "./harness.ts";

const postgres = sharedPostgres();
const { missing: noPostgres } = postgres;

async function connection({ call }: TestDaemon, provider: string, path: string): Promise<string> {
  return (await call("POST", "/v1/connections", { provider, config: { path } }, live)).body.id;
}

async function appending(daemon: TestDaemon, source: string, destination: string, mode = "incremental") {
  const ends = { source: { connection: source, object: "rows" }, destination: { connection: destination, table: "t" } };
  const cursor = mode === "incremental" ? { cursor_field: "id" } : {};
  const made = await daemon.call("POST", "/v1/syncs", { ...ends, mode, ...cursor }, live);
  return made.body.id as string;
}

const run = async (daemon: TestDaemon, sync: string) => ended(daemon, await trigger(daemon, sync));

const write = (path: string, ids: readonly number[]) => writeFileSync(path, ["id", ...ids, ""].join("\n"));
const read = (path: string) => readFileSync(path, "utf8").trim().split("\n").slice(1).map(Number);

test.skipIf(noPostgres)("daemons on one Postgres that run a sync by turns append each record once", async () => {
  const [folder, home] = [temporaryFolder(), temporaryFolder()];
  const [from, to] = [join(folder, "from.csv"), join(folder, "to.csv")];
  const env = { MAGIC_HOME: home, MAGIC_DATABASE_URL: await postgres.server.createDatabase() };
  const roots = [temporaryFolder(), temporaryFolder()];
  let sync: string | undefined;
  for (const turn of [0, 1, 2]) {
    const daemon = await startDaemon({ root: roots[turn % 2], env } as Parameters<typeof startDaemon>[0]);
    const ids = [1, 2, 3].slice(0, turn + 1);
    write(from, ids);
    sync ??= await appending(daemon, await connection(daemon, "csv", from), await connection(daemon, "csv", to));
    expect(await run(daemon, sync)).toMatchObject({ status: "completed", records_synced: 1 });
    expect(read(to)).toEqual(ids);
    await daemon.close();
  }
});

test("what another sync's full refresh took away is appended again", async () => {
  const daemon = await startDaemon();
  onTestFinished(daemon.close);
  const folder = temporaryFolder();
  const [mine, other, to] = ["mine.csv", "other.csv", "to.csv"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  write(mine, [1, 2]);
  write(other, [9]);
  const [first, second, destination] = await Promise.all(
    [mine, other, to].map((path) => connection(daemon, "csv", path)),
  );
  const sync = await appending(daemon, String(first), String(destination));
  await run(daemon, sync);
  await run(daemon, await appending(daemon, String(second), String(destination), "full_refresh"));
  expect(read(to)).toEqual([9]);
  write(mine, [1, 2, 3]);
  expect(await run(daemon, sync)).toMatchObject({ status: "completed", records_synced: 3 });
  expect(read(to)).toEqual([9, 1, 2, 3]);
});

test("objects whose state is one file are synced at once, and each record comes once", async () => {
  const folder = temporaryFolder();
  const state_file = join(folder, "state.json");
  const names = ["a", "b", "c", "d"];
  const all = async () => {
    const runs = names.map((name) => {
      const [from, to] = [join(folder, `${name}.csv`), join(folder, `${name}-copy.csv`)];
      const ends = { from, object: name, to, table: name };
      return sync(ends, { mode: "incremental", cursor_field: "id", sync_id: "sync_1", state_file });
    });
    return (await Promise.all(runs)).map(({ error }) => error);
  };
  for (const ids of [
    [1, 2],
    [1, 2],
    [1, 2, 3],
  ]) {
    for (const name of names) write(join(folder, `${name}.csv`), ids);
    expect(await all()).toEqual(names.map(() => null));
    for (const name of names) expect(read(join(folder, `${name}-copy.csv`))).toEqual(ids);
  }
});
