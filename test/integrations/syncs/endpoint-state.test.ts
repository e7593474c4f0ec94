// What an HTTP endpoint is sent, by whichever daemon goes on: how far a sync has come stands in the store.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openDestination } from "#daemon/integrations/connectors/open.ts";
import { sharedPostgres } from "#test/dialects.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon, type TestDaemon } from "../daemon.ts";
import { ended, live, trigger } from "../runs.ts";
import { specOf } from "./harness.ts";

const postgres = sharedPostgres();
const { missing: noPostgres } = postgres;

const got: string[] = [];
const receiver = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  if (request.method === "POST")
    got.push(...JSON.parse(Buffer.concat(chunks).toString()).records.map(({ id }: { id: string }) => id));
  response.end();
});
let listening: Awaited<ReturnType<typeof listen>>;
beforeAll(async () => {
  listening = await listen(receiver);
});
afterAll(() => listening.close());

async function open(root: string, env: NodeJS.ProcessEnv): Promise<TestDaemon> {
  const egress = { allow_private: [listening.address] };
  writeFileSync(join(root, "magic.yaml"), JSON.stringify({ version: 1, egress }));
  return startDaemon({ root, env });
}

/** From a CSV file with the column `id`. */
async function intoEndpoint({ call }: TestDaemon, file: string): Promise<string> {
  const made = async (provider: string, config: object) =>
    (await call("POST", "/v1/connections", { provider, config }, live)).body.id;
  const [source, destination] = [await made("csv", { path: file }), await made("http", { url: listening.origin })];
  const ends = { source: { connection: source, object: "rows" }, destination: { connection: destination, table: "t" } };
  const { body } = await call("POST", "/v1/syncs", { ...ends, mode: "incremental", cursor_field: "id" }, live);
  return body.id;
}

const run = async (daemon: TestDaemon, sync: string, body: object = {}) =>
  ended(daemon, await trigger(daemon, sync, body));

const write = (path: string, ids: readonly number[]) => writeFileSync(path, ["id", ...ids, ""].join("\n"));

test.skipIf(noPostgres)("daemons on one Postgres that run a sync by turns send each record once", async () => {
  const [folder, home] = [temporaryFolder(), temporaryFolder()];
  const from = join(folder, "from.csv");
  const env = { MAGIC_HOME: home, MAGIC_DATABASE_URL: await postgres.server.createDatabase() };
  const roots = [temporaryFolder(), temporaryFolder()];
  let sync: string | undefined;
  got.length = 0;
  for (const turn of [0, 1, 2]) {
    const daemon = await open(roots[turn % 2] ?? "", env);
    write(from, [1, 2, 3].slice(0, turn + 1));
    sync ??= await intoEndpoint(daemon, from);
    expect(await run(daemon, sync)).toMatchObject({ status: "completed", records_synced: 1 });
    await daemon.close();
  }
  expect(got).toEqual(["1", "2", "3"]);
});

test("what a root's file says of a sync goes on in the store; a full refresh sends everything again", async () => {
  const from = join(temporaryFolder(), "from.csv");
  const [root, env] = [temporaryFolder(), { MAGIC_HOME: temporaryFolder() }];
  write(from, [1]);
  let daemon = await open(root, env);
  const [other, sync] = [await intoEndpoint(daemon, from), await intoEndpoint(daemon, from)];
  await run(daemon, other);
  const kept = await daemon.app.storage.units.sync.state({ sync_id: other, stream: "rows" });
  await daemon.close();
  const folder = join(root, ".magic", "syncs");
  mkdirSync(folder);
  const streams = { rows: JSON.parse(kept?.body ?? "") };
  writeFileSync(join(folder, `${sync}.json`), JSON.stringify({ version: 1, sync_id: sync, streams }));
  writeFileSync(join(folder, `${other}.json`), "{");
  writeFileSync(join(folder, "sync_elsewhere.json"), "{}");
  write(from, [1, 2]);
  got.length = 0;
  daemon = await open(root, env);
  expect(readdirSync(folder).sort()).toEqual([`${other}.json`, "sync_elsewhere.json"].sort());
  for (const records_synced of [1, 0]) expect(await run(daemon, sync)).toMatchObject({ records_synced });
  await daemon.close();
  daemon = await open(root, env);
  expect(await run(daemon, sync)).toMatchObject({ records_synced: 0 });
  expect(await run(daemon, sync, { full_refresh: true })).toMatchObject({ records_synced: 2 });
  expect(got).toEqual(["2", "1", "2"]);
});

test("batches for an HTTP endpoint have the same ids however their records come in", async () => {
  const ids: string[] = [];
  const receiver = createServer((request, response) => {
    ids.push(String(request.headers["webhook-id"]));
    request.resume().on("end", () => response.end());
  });
  const { origin, close } = await listen(receiver);
  const ends = { from: "", object: "late", to: origin, table: "late" };
  const columns = [{ name: "id", type: { kind: "int", bits: 32 }, nullable: false }];
  const sent = async (sizes: readonly number[]) => {
    const { run_id, destination } = specOf(ends);
    const end = await openDestination(destination);
    const { signal } = new AbortController();
    const request = { ...{ syncId: "sync_1", runId: run_id, stream: "late", stateFile: null }, signal, waiting() {} };
    const session = await end.open({ ...request, table: { schema: null, name: "late" } } as never);
    await session.begin({ kind: "append", columns, primaryKey: [], cursorField: null, deletes: "ignore" } as never);
    let id = 0;
    for (const size of sizes) await session.write(Array.from({ length: size }, () => [String(id++)]));
    await session.merge();
    expect(await session.count()).toBe(1200);
    await session.commit(null);
    await end.close();
    return ids.splice(0);
  };
  const whole = await sent([1200]);
  expect(whole).toHaveLength(3);
  for (const sizes of [
    [300, 900],
    [700, 1, 499],
  ])
    expect(await sent(sizes)).toEqual(whole);
  await close();
});
