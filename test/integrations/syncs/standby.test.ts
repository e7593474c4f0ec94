// A hot standby as a source: it may lag behind the server that an earlier run read.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { type Client, connect, openPair, type Pair, sync } from "./harness.ts";

describe.skipIf(postgresMissing())("a hot standby", () => {
  let pair: Pair;
  let server: TestPostgres | undefined;
  let standby: Client | undefined;
  let { from, to, source, target } = {} as Pair;
  let behind: string;

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
    server = await startPostgres([], pair.server);
    behind = from.replace(pair.server.socketFolder, server.socketFolder);
    standby = await connect(behind);
  });
  afterAll(async () => {
    await standby?.end();
    await server?.stop();
    await pair?.close();
  });

  test("one that lags brings no row twice to who has read more of its primary, and loses none that was late there", async () => {
    await source.query("CREATE TABLE log (n int); INSERT INTO log VALUES (1)");
    await vi.waitFor(() => standby?.query("SELECT FROM log"), { timeout: 30_000 });
    const run = (at: string) =>
      sync({ from: at, object: "log", to, table: "log" }, { sync_id: "log", mode: "incremental", cursor_field: "n" });
    const late = await connect(from);
    await late.query("BEGIN; INSERT INTO log VALUES (2)");
    await source.query("INSERT INTO log VALUES (3)");
    await standby?.query("SELECT pg_wal_replay_pause()");
    await source.query("INSERT INTO log VALUES (4)");
    const read = [await run(from), await run(behind)];
    await source.query("INSERT INTO log VALUES (5)");
    await late.query("COMMIT");
    await late.end();
    read.push(await run(behind), await run(from), await run(from));
    expect(read.map(({ error, records_read }) => error ?? records_read)).toEqual([3, 0, 0, 2, 0]);
    expect(await target.lines("log")).toEqual(await source.lines("log"));
    await standby?.query("SELECT pg_wal_replay_resume()");
  });
});
