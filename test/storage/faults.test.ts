// What happens to the embedded database when its disk, its file or its owner fails.
import { fork } from "node:child_process";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { translate } from "#daemon/storage/failure.ts";
import { openStorage } from "#daemon/storage/open.ts";
import { connect } from "#daemon/storage/sqlite/connection.ts";
import { groupCommit } from "#daemon/storage/sqlite/group-commit.ts";
import type { Reply } from "#daemon/storage/sqlite/messages.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";
import { within } from "../patience.ts";

const fileOf = (root: string): string => join(root, ".magic/magic.db");

test("the state folder is private and ignored by git", async () => {
  const root = temporaryFolder();
  await temporaryStorage({ root });
  expect(statSync(join(root, ".magic")).mode & 0o777).toBe(0o700);
  expect(statSync(fileOf(root)).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(root, ".magic/.gitignore"), "utf8")).toBe("*\n");
});

test.each([
  ["mongodb://host/x", "must begin with postgres://"],
  ["host/x", "must begin with postgres://"],
  ["postgres://user:pass/word@host/x", "is no URL"],
])("MAGIC_DATABASE_URL=%s %s", async (databaseUrl, why) => {
  const message = expect.stringContaining(`MAGIC_DATABASE_URL ${why}`);
  const opening = openStorage({ root: temporaryFolder(), databaseUrl });
  await expect(opening).rejects.toMatchObject({ code: "config_invalid", message });
});

test("a Postgres that is down is told of with the reason", async () => {
  const opening = openStorage({ root: temporaryFolder(), databaseUrl: "postgres://user@127.0.0.1:1/x" });
  const message = expect.stringContaining("cannot be reached (ECONNREFUSED)");
  await expect(opening).rejects.toMatchObject({ code: "storage_unavailable", message });
});

test("a full disk refuses the write that does not fit, is told by the check, answers reads, keeps what was acknowledged, and recovers", async () => {
  const root = temporaryFolder();
  // Room for about half of the values beside the empty tables, however many there are.
  await (await openStorage({ root })).close();
  const storage = await openStorage({ root, maxPages: Math.ceil(statSync(fileOf(root)).size / 4096) + 50 });
  const { setting } = storage.units;
  const value = "x".repeat(8000);
  const kept: string[] = [];
  const settled = await Promise.allSettled(
    Array.from({ length: 60 }, async (_, i) => {
      await setting.put({ key: `k${i}`, value });
      kept.push(`k${i}`);
    }),
  );
  const refused = settled.filter((one) => one.status === "rejected");
  expect(refused.length).toBeGreaterThan(10);
  for (const { reason } of refused) expect(reason).toMatchObject({ code: "storage_full" });
  expect(kept.length).toBeGreaterThan(15);
  for (const key of kept) expect(await setting.get({ key })).toBe(value);
  for (let look = 0; look < 2; look++) await expect(storage.check()).rejects.toMatchObject({ code: "storage_full" });
  for (const key of kept.splice(0, 12)) await setting.remove({ key });
  await storage.check();
  await setting.put({ key: "after", value });
  await storage.close();

  const reopened = await temporaryStorage({ root });
  for (const key of [...kept, "after"]) expect(await reopened.units.setting.get({ key })).toBe(value);
  expect(await reopened.units.setting.get({ key: "k59" })).toBeNull();
});

test("while another program holds the database, all that wait are refused together, and what comes later is served", async () => {
  const root = temporaryFolder();
  await (await openStorage({ root })).close();
  const connection = connect(fileOf(root), undefined);
  onTestFinished(() => connection.raw.close());
  connection.raw.exec("PRAGMA busy_timeout=600");
  const runGroup = groupCommit(connection);
  const calls = Array.from({ length: 20 }, (_, id) => ({ id, noun: "setting", unit: "get", args: { key: "" } }));
  const other = new DatabaseSync(fileOf(root));
  other.exec("BEGIN IMMEDIATE");
  const began = performance.now();
  const refused = await runGroup(calls);
  expect(performance.now() - began).toBeLessThan(within(1_000));
  expect(refused.map(({ failure }) => failure?.code)).toEqual(calls.map(() => "storage_unavailable"));
  other.close();
  // On a busy machine a group's time is over before its calls are.
  const served: Reply[] = [];
  while (served.length < calls.length) served.push(...(await runGroup(calls.slice(served.length))));
  expect(served).toEqual(calls.map(({ id }) => ({ id, value: null })));
});

test("a damaged database is refused by name and its bytes stay as they were", async () => {
  const root = temporaryFolder();
  const storage = await openStorage({ root });
  await Promise.all(
    Array.from({ length: 400 }, (_, i) => storage.units.setting.put({ key: `k${i}`, value: "v".repeat(300) })),
  );
  await storage.close();
  const sound = readFileSync(fileOf(root));
  const damages: Record<string, (bytes: Buffer) => Buffer> = {
    header: (bytes) => bytes.fill("garbage!", 0, 100),
    "another kind of file": () => Buffer.from("name,age\nx,1\n"),
    "pages in the middle": (bytes) => bytes.fill(0xa5, 4096 * 3, 4096 * 20),
    "the end is missing": (bytes) => bytes.subarray(0, 4096 * 9 + 100),
    schema: (bytes) => bytes.fill(0xff, 100, 4000),
    "all of it is missing": () => Buffer.alloc(0),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const bytes = damage(Buffer.from(sound));
    writeFileSync(fileOf(root), bytes);
    for (const side of ["-wal", "-shm"]) rmSync(fileOf(root) + side, { force: true });
    await expect(openStorage({ root }), name).rejects.toMatchObject({ code: "database_corrupt" });
    expect(readFileSync(fileOf(root)).equals(bytes), name).toBe(true);
  }
  writeFileSync(fileOf(root), sound);
  const again = await temporaryStorage({ root });
  expect(await again.units.setting.get({ key: "k399" })).toBe("v".repeat(300));
});

test("a database of a newer version is refused, not changed", async () => {
  const root = temporaryFolder();
  await (await openStorage({ root })).close();
  const raw = new DatabaseSync(fileOf(root));
  raw.exec("insert into magic_migration values ('999-from-the-future', '2030-01-01T00:00:00.000Z')");
  raw.close();
  await expect(openStorage({ root })).rejects.toMatchObject({ code: "state_unusable" });
});

test("another program's database is refused, not changed", async () => {
  const root = temporaryFolder();
  await (await openStorage({ root })).close();
  rmSync(fileOf(root));
  const theirs = new DatabaseSync(fileOf(root));
  onTestFinished(() => theirs.close());
  theirs.exec("CREATE TABLE webhook (address)");
  const tables = () => theirs.prepare("SELECT count(*) AS n FROM sqlite_schema").get();
  const before = tables();
  await expect(openStorage({ root })).rejects.toMatchObject({
    code: "state_unusable",
    message: 'the database holds another program\'s tables: table "webhook" already exists',
  });
  expect(tables()).toEqual(before);
});

test("a migration that is broken off, here by a full disk, leaves nothing behind, and the next start makes it whole", async () => {
  const root = temporaryFolder();
  for (const maxPages of [5, 15, 30])
    await expect(openStorage({ root, maxPages }), `${maxPages} pages`).rejects.toMatchObject({ code: "storage_full" });
  const { units } = await temporaryStorage({ root });
  await units.setting.put({ key: "a", value: "1" });
});

test("an address that leads to no Postgres, or to one that wants another connection, is told as that", async () => {
  const cases: [string, (socket: Socket) => void, RegExp][] = [
    [
      "",
      (socket) => socket.write(Buffer.from("J\0\0\0\x0a5.5.5-10.11-MariaDB\0", "latin1")),
      /does not speak PostgreSQL's protocol/,
    ],
    // GSSAPI, which the driver does not know.
    [
      "",
      (socket) => socket.once("data", () => socket.write(Buffer.from("520000000800000007", "hex"))),
      /Unknown authenticationOk message type 7/,
    ],
    ["?sslmode=verify-full", (socket) => socket.once("data", () => socket.write("N")), /does not support SSL/],
  ];
  for (const [parameters, serve, detail] of cases) {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on("error", () => undefined));
      serve(socket);
    });
    const { address, close } = await listen(server);
    const opened = openStorage({ root: "", databaseUrl: `postgres://owner@${address}/state${parameters}` });
    await expect(opened).rejects.toMatchObject({ code: "storage_unavailable", message: expect.stringMatching(detail) });
    for (const socket of sockets) socket.destroy();
    await close();
  }
  const certificate = openStorage({ root: "", databaseUrl: "postgres://127.0.0.1/state?sslrootcert=/nowhere.pem" });
  await expect(certificate).rejects.toMatchObject({ code: "state_unusable" });
  for (const error of [
    { message: "SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string" },
    { message: "self-signed certificate", code: "DEPTH_ZERO_SELF_SIGNED_CERT" },
    { message: "unable to verify the first certificate", code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" },
  ])
    expect(translate(error)).toMatchObject({ code: "storage_unavailable" });
});

test("a state folder that cannot be made is a clear error", async () => {
  const root = temporaryFolder();
  writeFileSync(join(root, ".magic"), "a file");
  await expect(openStorage({ root })).rejects.toMatchObject({ code: "state_unusable" });
});

test("kill -9 at random moments of writes loses nothing that was acknowledged", async () => {
  const root = temporaryFolder();
  const script = join(root, "writer.mjs");
  const open = new URL("../../daemon/storage/open.ts", import.meta.url).href;
  writeFileSync(
    script,
    `const { openStorage } = await import(${JSON.stringify(open)});
     const { units } = await openStorage({ root: ${JSON.stringify(root)} });
     const write = async (lane) => { for (let i = 0; ; i++) {
       const key = process.argv[2] + ":" + lane + ":" + i;
       await units.setting.put({ key, value: key }); process.send(key);
     } };
     for (let lane = 0; lane < 16; lane++) void write(lane);`,
  );
  const acknowledged: string[] = [];
  for (let round = 0; round < 4; round++) {
    const child = fork(script, [String(round)], { cwd: new URL("../..", import.meta.url) });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const enough = acknowledged.length + 50 + Math.random() * 300;
    child.on("message", (key: string) => {
      acknowledged.push(key);
      if (acknowledged.length > enough) child.kill("SIGKILL");
    });
    await exited;
  }
  const { units } = await temporaryStorage({ root });
  const lost = (await Promise.all(acknowledged.map((key) => units.setting.get({ key })))).filter(
    (value) => value === null,
  );
  expect(lost).toEqual([]);
});
