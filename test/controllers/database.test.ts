import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, linkSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Driver, Session } from "#daemon/controllers/broker/db/driver.ts";
import { openMysql } from "#daemon/controllers/broker/db/mysql.ts";
import { databaseOperations } from "#daemon/controllers/broker/db/operations.ts";
import { openPostgres } from "#daemon/controllers/broker/db/postgres.ts";
import { openReaper } from "#daemon/controllers/broker/db/reaper.ts";
import { openSlots } from "#daemon/controllers/broker/db/slots.ts";
import { openSqlite } from "#daemon/controllers/broker/db/sqlite.ts";
import { checkStatement, questionMarks } from "#daemon/controllers/broker/db/statement.ts";
import type { DatabaseTarget } from "#daemon/controllers/ports.ts";
import { databaseFile, stateFolder } from "#shared/paths.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { mysqlMissing, startMysql, type TestMysql } from "../mysql.ts";
import { within } from "../patience.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "../postgres.ts";
import { type Bench, openBench } from "./harness.ts";

const targets: Record<string, DatabaseTarget> = {};
const databases = { get: (name: string) => targets[name] ?? null };

// The handler runs what the test sends: one statement, or several in a transaction.
const handler = `export default async ({ input, db }) => {
  const run = async () => {
    const params = input.params?.map((one) => (one?.ms === undefined ? one : new Date(one.ms)));
    if (input.sql) return (await db.query(input.db, input.sql, params)).rows;
    if (input.together)
      return await db.transaction(input.db, async (tx) =>
        (await Promise.all(input.together.map((sql) => tx.query(sql)))).map(({ rows }) => rows[0].a.length));
    return await db.transaction(input.db, async (tx) => {
      const out = [];
      for (const sql of input.transaction) out.push((await tx.query(sql)).rows);
      if (input.fail) throw new Error("changed my mind");
      return out;
    });
  };
  try { return { rows: await run() }; } catch (error) { return { code: error.code ?? error.message, message: error.message }; }
};`;

async function deployed(name: string, grants: { name: string; mode?: "read" | "write" }[]): Promise<Bench> {
  const bench = await openBench({ ports: { databases } });
  const deploy = (as: string, timeout_ms: number) =>
    bench.deploy(as, handler, { capabilities: ["db:query"], scopes: { db: grants }, limits: { timeout_ms } });
  await deploy(name, 30_000);
  // For statements that have no end of their own.
  await deploy(`${name}-hasty`, 2_000);
  return bench;
}

/** The drivers alone, without the look at the statement's text. */
async function endsWithItsTransaction(driver: Driver): Promise<void> {
  for (const ending of ["commit", "rollback"]) {
    const session = await driver.begin(new AbortController().signal);
    expect((await session.query("select 1 as one", [])).row_count).toBe(1);
    await expect(session.query(ending, [])).rejects.toMatchObject({ code: "invalid_request" });
    await expect(session.query("insert into t (id) values (7)", [])).rejects.toThrow();
    session.destroy();
  }
  await driver.close();
}

/** A session that is given up while its statement runs: `running` sees it in the server's list, then no more. */
async function endsWhatItLeft(
  driver: Driver,
  statement: string,
  running: () => Promise<unknown>,
  failedBefore: readonly string[] = [],
): Promise<void> {
  const session = await driver.begin(new AbortController().signal);
  for (const failing of failedBefore) await expect(session.query(failing, [])).rejects.toThrow();
  session.query(statement, []).catch(() => {});
  await vi.waitFor(async () => expect(await running()).toBe(1));
  session.destroy();
  await vi.waitFor(async () => expect(await running()).toBe(0), 5_000);
  await driver.close();
}

/** A server that is frozen keeps no session's place: `open` gets a driver that reaches `server` by way of the port. */
async function outlivesItsFreeze(open: (port: number) => Driver, server: NetConnectOpts): Promise<void> {
  const sockets: Socket[] = [];
  const between = createServer((near) => {
    const far = connect(server);
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on("error", () => {});
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(between, "listening");
  const driver = open((between.address() as AddressInfo).port);
  const one = async (): Promise<void> => await (await driver.begin(AbortSignal.timeout(3_000))).release();
  try {
    await one();
    const kept = sockets.splice(0);
    for (const socket of kept) socket.unpipe().pause();
    const leaving = new AbortController();
    const begun = Array.from({ length: 8 }, () => driver.begin(leaving.signal));
    leaving.abort();
    await Promise.all(begun.map((one) => expect(one).rejects.toThrow()));
    await one();
    sockets.push(...kept);
  } finally {
    for (const socket of sockets) socket.destroy();
    await driver.close();
    between.close();
  }
}

function processesNaming(text: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
    } catch {
      return false;
    }
  });
}

describe("sqlite", () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await deployed("q", [
      { name: "lite" },
      { name: "writable", mode: "write" },
      { name: "locked", mode: "write" },
      { name: "absent" },
    ]);
    const file = join(bench.root, "data.sqlite");
    const seed = new DatabaseSync(file);
    seed.exec("create table t (id integer primary key, big integer, name text, bytes blob)");
    seed.exec("insert into t values (1, 9007199254740993, 'one', x'0102'), (2, 5, null, null)");
    seed.exec("create virtual table words using fts5(body); create virtual table boxes using rtree(id, a, b)");
    seed.close();
    targets["lite"] = { url: "sqlite:data.sqlite", mode: "read" };
    targets["writable"] = { url: `sqlite:${file}`, mode: "write" };
    targets["locked"] = { url: `sqlite:${file}`, mode: "read" };
  });
  const ask = (input: object): Promise<unknown> => bench.invoke("q", input);

  test("rows are objects, large integers text, bytes base64", async () => {
    expect(await ask({ db: "lite", sql: "select * from t where id >= $1 order by id", params: [1] })).toEqual({
      rows: [
        { id: 1, big: "9007199254740993", name: "one", bytes: "AQI=" },
        { id: 2, big: 5, name: null, bytes: null },
      ],
    });
  });

  test.each([
    ["insert into t values (3, 1, 'x', null)", "capability_denied"],
    ["attach database '/tmp/x.db' as other", "invalid_request"],
    ["/* hidden */ attach database '/tmp/x.db' as other", "invalid_request"],
    ["explain attach database '/tmp/x.db' as other", "upstream_error"],
    ["pragma journal_mode = delete", "invalid_request"],
    ["select load_extension('/tmp/x.so')", "upstream_error"],
    ["select * from pragma_database_list", "upstream_error"],
    ["select 1; drop table t", "invalid_request"],
    ["commit", "invalid_request"],
  ])("a read grant refuses %s", async (sql, code) => {
    expect(await ask({ db: "lite", sql })).toMatchObject({ code });
  });

  test("a write that the contract does not declare is told which line declares it, in a transaction as well", async () => {
    const refused = { code: "capability_denied", message: expect.stringContaining("{ name: lite, mode: write }") };
    expect(await ask({ db: "lite", sql: "delete from t" })).toMatchObject(refused);
    expect(await ask({ db: "lite", transaction: ["delete from t"] })).toMatchObject(refused);
  });

  test("a whole number is one, and a parameter without a value is no null", async () => {
    const sql = "select typeof(?) as kind, cast(? as text) as text";
    expect(await ask({ db: "lite", sql, params: [true, 42] })).toMatchObject({
      rows: [{ kind: "integer", text: "42" }],
    });
    const less = { code: "invalid_request", message: expect.stringContaining("parameters") };
    expect(await ask({ db: "lite", sql, params: [1] })).toMatchObject(less);
    expect(await ask({ db: "lite", sql: "select $1, $2", params: [1] })).toMatchObject(less);
  });

  test("a JSON parameter is what it is, also where it looks like the mark of a time or of bytes", async () => {
    const params = [{ $time: "now" }, { $bytes: "AQI=", more: 1 }, { $json: null }];
    expect(await ask({ db: "lite", sql: "select ? as a, ? as b, ? as c", params })).toEqual({
      rows: [{ a: '{"$time":"now"}', b: '{"$bytes":"AQI=","more":1}', c: '{"$json":null}' }],
    });
  });

  test("a backslash is a character like any other", async () => {
    const sql = "select '\\' as mark, $1 as value, 'x' as rest";
    expect(await ask({ db: "lite", sql, params: [7] })).toEqual({ rows: [{ mark: "\\", value: 7, rest: "x" }] });
  });

  test("a transaction commits whole or not at all", async () => {
    await ask({
      db: "writable",
      transaction: ["insert into t values (10, 1, 'a', null)", "insert into t values (11, 1, 'b', null)"],
      fail: true,
    });
    expect(await ask({ db: "lite", sql: "select count(*) as n from t" })).toEqual({ rows: [{ n: 2 }] });
    await ask({
      db: "writable",
      transaction: ["insert into t values (10, 1, 'a', null)", "insert into t values (11, 1, 'b', null)"],
    });
    expect(await ask({ db: "lite", sql: "select count(*) as n from t" })).toEqual({ rows: [{ n: 4 }] });
  });

  test("tables of FTS5 and R-Tree are read and written, and open no setting to a handler", async () => {
    for (const sql of ["insert into words values ('one two')", "insert into boxes values (1, 2, 3)"])
      expect(await ask({ db: "writable", sql })).toEqual({ rows: [] });
    const search = "select w.body, b.a from words('two') w join boxes b on b.a < 5";
    expect(await ask({ db: "lite", sql: search })).toEqual({ rows: [{ body: "one two", a: 2 }] });
    for (const sql of ["select * from pragma_user_version", "select * from pragma_database_list"])
      expect(await ask({ db: "lite", sql })).toMatchObject({ code: "upstream_error" });
  });

  test("a statement without end is stopped when its caller leaves, and the one session that writes is free again", async () => {
    const endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    const input = { db: "writable", sql: endless };
    const left = bench.failure(bench.invoke("q", input, { signal: AbortSignal.timeout(500) }));
    expect((await left).code).toBe("client_closed");
    expect(await ask({ db: "writable", sql: "select 1 as a" })).toEqual({ rows: [{ a: 1 }] });
  });

  test("a write needs both the contract and magic.yaml to say write", async () => {
    expect(await ask({ db: "locked", sql: "delete from t" })).toMatchObject({ code: "capability_denied" });
  });

  test("undeclared databases are denied, declared ones that magic.yaml lacks are not found", async () => {
    expect(await ask({ db: "other", sql: "select 1" })).toMatchObject({ code: "capability_denied" });
    expect(await ask({ db: "absent", sql: "select 1" })).toMatchObject({ code: "not_found" });
  });

  test("too many rows are refused, and a statement without end is stopped with its invocation", async () => {
    const many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select i from n";
    expect(await ask({ db: "lite", sql: many })).toMatchObject({ code: "limit_exceeded" });
    const endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    expect(await bench.outcome("q-hasty", { db: "lite", sql: endless })).toBe("timeout");
    expect(await ask({ db: "lite", sql: "select 1 as one" })).toEqual({ rows: [{ one: 1 }] });
    // One that ran on would hold the lock of a writer, and a core for ever.
    expect(await bench.outcome("q-hasty", { db: "writable", sql: endless })).toBe("timeout");
    expect(await ask({ db: "writable", sql: "delete from t where id = 99" })).toEqual({ rows: [] });
  });

  test("what follows the first statement is refused, not left out", async () => {
    const sql = "insert into t (id) values (50); delete from t";
    expect(await ask({ db: "writable", sql })).toMatchObject({ code: "invalid_request" });
    expect(await ask({ db: "writable", sql: "select 1 as one; -- that is all\n" })).toEqual({ rows: [{ one: 1 }] });
    const commented = `select 1 as one; ${"/**/ ".repeat(50)}`;
    expect(await ask({ db: "writable", sql: commented })).toEqual({ rows: [{ one: 1 }] });
    expect(await ask({ db: "writable", sql: `${commented} x` })).toMatchObject({ code: "invalid_request" });
  });

  test.skipIf(!existsSync("/proc/self"))(
    "a database's process is killed with whatever it does when its daemon is gone",
    async () => {
      const program = `import { openSqlite } from "#daemon/controllers/broker/db/sqlite.ts";
      setInterval(() => {}, 1000);
      const session = await openSqlite(process.argv[1], "read").begin(new AbortController().signal);
      session.query("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n", []);
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 300);`;
      const file = join(bench.root, "orphan.sqlite");
      new DatabaseSync(file).close();
      const daemon = spawnSync(process.execPath, ["--input-type=module", "-e", program, file]);
      expect(daemon.signal).toBe("SIGKILL");
      await vi.waitFor(() => expect(processesNaming(file)).toEqual([]), 30_000);
    },
  );
});

test.skipIf(!existsSync("/proc/self"))(
  "sqlite: a process comes after the daemon and its cells, in a session of its own",
  async () => {
    const folder = temporaryFolder();
    const file = join(folder, "behind.sqlite");
    new DatabaseSync(file).close();
    const driver = openSqlite(file, "read");
    try {
      await (await driver.begin(new AbortController().signal)).release();
      const [pid = ""] = processesNaming(file);
      // proc_pid_stat(5): behind the name the state, and as its fourth the session, as its seventeenth the nice value.
      await vi.waitFor(() => {
        const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ");
        expect([fields?.[3], fields?.[16]]).toEqual([pid, "10"]);
      }, 30_000);
    } finally {
      await driver.close();
    }
  },
);

test("sqlite: a process ends where nobody used it for a minute, and where its database was given up while it was in use", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "idle.sqlite");
  new DatabaseSync(file).close();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const driver = openSqlite(file, "read");
    const session = () => driver.begin(new AbortController().signal);
    const gone = () => vi.waitUntil(() => processesNaming(file).length === 0);
    await (await session()).release();
    expect(processesNaming(file)).toHaveLength(1);
    vi.advanceTimersByTime(60_000);
    await gone();
    // One that two calls at once needed ends, however often one call at a time comes.
    for (const one of await Promise.all([session(), session()])) await one.release();
    for (let used = 0; used < 4; used++) {
      vi.advanceTimersByTime(20_000);
      await (await session()).release();
    }
    await vi.waitUntil(() => processesNaming(file).length === 1);
    const held = await session();
    await driver.close();
    await held.release();
    await gone();
  } finally {
    vi.useRealTimers();
  }
});

test("an invocation has four transactions at most, also where it begins them all at once", async () => {
  const session: Session = { query: vi.fn(), commit: vi.fn(), release: vi.fn(), destroy: vi.fn() };
  const began = Promise.withResolvers<Session>();
  const driver = { begin: () => began.promise, close: vi.fn() };
  const operations = new Map(databaseOperations({ driver: () => driver } as never));
  const begin = operations.get("db.begin");
  const broker = {
    ...{ ports: { databases: { get: () => ({ url: "", mode: "read" }) } }, grants: { need() {}, mode: () => "read" } },
    caller: { signal: new AbortController().signal },
  } as never;
  const one = () => begin?.(broker, { database: "d" }, null, new AbortController().signal, {} as never);
  const all = Array.from({ length: 6 }, () => Promise.resolve(one()).catch(({ code }: { code: string }) => code));
  setTimeout(began.resolve, 5, session);
  expect(await Promise.all(all)).toEqual([
    ...[1, 2, 3, 4].map((value) => ({ value })),
    ...["limit_exceeded", "limit_exceeded"],
  ]);
  // The number of one that is over is nobody else's: what its handler kept of it does not reach the next.
  await operations.get("db.commit")?.(broker, { tx: 4 }, null, new AbortController().signal, {} as never);
  expect(await one()).toEqual({ value: 5 });
});

test("a call that is over takes no session from others", async () => {
  await expect(openSlots(1).take(AbortSignal.abort())).rejects.toMatchObject({ code: "timeout" });
});

test("a session that becomes free goes to those who wait by turns, whoever asks for many", async () => {
  const slots = openSlots(1);
  const { signal } = new AbortController();
  const leaving = new AbortController();
  const order: string[] = [];
  await slots.take(signal, "greedy");
  const taken = ["greedy", "greedy", "greedy", "other", "third"].map((whose) =>
    slots.take(whose === "third" ? leaving.signal : signal, whose).then(() => order.push(whose)),
  );
  leaving.abort();
  await expect(taken.pop()).rejects.toMatchObject({ code: "timeout" });
  for (const _ of taken) {
    slots.give();
    await new Promise(setImmediate);
  }
  expect(order).toEqual(["greedy", "other", "greedy", "greedy"]);
  slots.give();
  await slots.take(signal, "greedy");
});

test("sqlite: where no descriptor is left a statement is refused, and the one session that writes is free again", () => {
  const run = `
    import { closeSync, openSync } from "node:fs";
    import { openSqlite } from "#daemon/controllers/broker/db/sqlite.ts";
    const driver = openSqlite(":memory:", "write");
    const { signal } = new AbortController();
    const alive = setInterval(() => {}, 1_000);
    (await driver.begin(signal)).destroy();
    const held = [];
    try { for (;;) held.push(openSync("/dev/null")); } catch {}
    const refused = await driver.begin(signal).catch(({ code }) => code);
    await new Promise(setImmediate);
    for (const one of held) closeSync(one);
    const session = await driver.begin(signal);
    console.log(refused, (await session.query("select 1 as one", [])).row_count);
    session.destroy();
    clearInterval(alive);`;
  const limited = ["-c", 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', process.execPath, run];
  const { stdout, stderr } = spawnSync("sh", limited, { encoding: "utf8", timeout: 60_000 });
  expect([stdout, stderr]).toEqual(["upstream_error 1\n", ""]);
});

test("sqlite: statements of one transaction that are sent together are answered each with its own rows", async () => {
  const driver = openSqlite(":memory:", "write");
  const session = await driver.begin(new AbortController().signal);
  const ask = async (sql: string): Promise<unknown> => (await session.query(sql, [])).rows;
  expect(await Promise.all([ask("select 1 as a"), ask("select 2 as a"), ask("select 3 as a")])).toEqual([
    [{ a: 1 }],
    [{ a: 2 }],
    [{ a: 3 }],
  ]);
  await expect(ask("select zeroblob(900000000)")).rejects.toThrow("too big");
  const row = Array.from({ length: 1_500 }, (_, at) => `zeroblob(8000000) as c${at}`).join(", ");
  if (process.platform === "linux")
    await expect(ask(`select ${row}`)).rejects.toThrow("the database answered: out of memory");
  session.destroy();
  await driver.close();
});

test("sqlite: the daemon's own database is refused, under whatever name a link gives it", async () => {
  const bench = await deployed("own", [{ name: "own", mode: "write" }]);
  const own = databaseFile(stateFolder(bench.root));
  symlinkSync(own, join(bench.root, "soft.db"));
  linkSync(own, join(bench.root, "hard.db"));
  for (const path of [".magic/magic.db", "soft.db", "hard.db"]) {
    targets["own"] = { url: `sqlite:${path}`, mode: "write" };
    expect(await bench.invoke("own", { db: "own", sql: "create table mine (x)" })).toMatchObject({
      code: "capability_denied",
      message: expect.stringContaining("the daemon's own"),
    });
  }
});

test("sqlite: a parameter that nests by the thousand is the text that it is", async () => {
  const driver = openSqlite(":memory:", "write");
  const session = await driver.begin(AbortSignal.timeout(60_000));
  const nested = "[".repeat(4_000) + "]".repeat(4_000);
  expect((await session.query("select length($1) as length", [JSON.parse(nested)])).rows).toEqual([{ length: 8_000 }]);
  await session.release();
  await driver.close();
});

test("sqlite: what follows a statement that undid the transaction is not committed by itself", async () => {
  const driver = openSqlite(":memory:", "write");
  const session = await driver.begin(new AbortController().signal);
  await session.query("create table t (id integer primary key)", []);
  await session.query("insert into t values (1)", []);
  await expect(session.query("insert or rollback into t values (1)", [])).rejects.toThrow("UNIQUE");
  await expect(session.query("create table t (id)", [])).rejects.toMatchObject({ code: "invalid_request" });
  await expect(session.commit()).rejects.toThrow("no transaction");
  await session.release();
  await driver.close();
});

test("sqlite: a statement that changes no rows does not answer with the count of the one before it", async () => {
  const driver = openSqlite(join(temporaryFolder(), "data.sqlite"), "write");
  const session = await driver.begin(new AbortController().signal);
  const counts: number[] = [];
  for (const sql of [
    "create table t (a)",
    "insert into t values (1), (2), (3)",
    "create index i on t (a)",
    "update t set a = 5 where a = 9",
    "delete from t",
    "drop table t",
  ])
    counts.push((await session.query(sql, [])).row_count);
  expect(counts).toEqual([0, 3, 0, 0, 3, 0]);
  await session.release();
  await driver.close();
});

test("sqlite: a temporary view or trigger of one caller is not there for the next", async () => {
  const folder = temporaryFolder();
  const driver = openSqlite(join(folder, "a.db"), "write");
  const run = async (...statements: string[]): Promise<unknown> => {
    const session = await driver.begin(new AbortController().signal);
    let rows: unknown;
    for (const sql of statements) ({ rows } = await session.query(sql, []));
    await session.commit();
    await session.release();
    return rows;
  };
  await run("create table t (a)", "insert into t values ('true')");
  await run(
    "create temp table seen (a)",
    "create temp trigger spy after insert on main.t begin insert into seen values (new.a); end",
    "create temp view v as select 1",
    "create temp table t as select 'forged' as a",
  );
  expect(await run("select a from t")).toEqual([{ a: "true" }]);
  await run("insert into t values ('more')");
  await expect(run("select * from seen")).rejects.toThrow("no such table");
  await driver.close();
});

describe.skipIf(postgresMissing())("postgres", () => {
  let server: TestPostgres;
  let bench: Bench;
  beforeAll(async () => {
    server = await startPostgres();
    const url = await server.createDatabase();
    const owner = new pg.Client({ connectionString: url });
    await owner.connect();
    await owner.query(
      "create role plain login; create table t (id int primary key, big bigint, price numeric(12,2), at timestamptz, doc jsonb, list text[], bytes bytea)",
    );
    await owner.query(
      "insert into t values (1, 9007199254740993, 12.30, '2026-01-02T03:04:05Z', '{\"a\": 1}', '{x,y}', '\\x0102')",
    );
    await owner.query("grant all on t to plain; grant create on schema public to plain");
    await owner.end();
    const plain = url.replace(/\/\/[^@]*@/, "//plain@").replace("user=postgres", "user=plain");
    targets["pg"] = { url: plain, mode: "write" };
    targets["super"] = { url, mode: "read" };
    bench = await deployed("p", [{ name: "pg", mode: "read" }, { name: "super" }]);
    await bench.deploy("w", handler, { capabilities: ["db:query"], scopes: { db: [{ name: "pg", mode: "write" }] } });
  });
  afterAll(() => server?.stop());
  const ask = (input: object): Promise<unknown> => bench.invoke("p", { db: "pg", ...input });

  test("bigint and numeric are text, times RFC 3339, JSON and arrays as such", async () => {
    expect(await ask({ sql: "select * from t where id = $1", params: [1] })).toEqual({
      rows: [
        {
          id: 1,
          big: "9007199254740993",
          price: "12.30",
          at: "2026-01-02T03:04:05.000Z",
          doc: { a: 1 },
          list: ["x", "y"],
          bytes: "AQI=",
        },
      ],
    });
  });

  test("whole numbers in json that no double holds are text, as bigint is", async () => {
    const sql = `select json '[9007199254740993, 1.5, "x"]' as a, jsonb '{"id": -12345678901234567890, "n": 7}' as b`;
    expect(await ask({ sql })).toEqual({
      rows: [{ a: ["9007199254740993", 1.5, "x"], b: { id: "-12345678901234567890", n: 7 } }],
    });
  });

  test("a number in json that no double holds is text, and not null", async () => {
    expect(await ask({ sql: `select json '{"a": [1e400, -1E+999, 1e5, 1e100]}' as a` })).toEqual({
      rows: [{ a: { a: ["1e400", "-1E+999", 100_000, 1e100] } }],
    });
  });

  test("a list that is meant for json is refused with what to send instead", async () => {
    const message = expect.stringContaining("send JSON.stringify(list) as json");
    expect(await ask({ sql: "select $1::json as v", params: [[1, 2]] })).toMatchObject({
      code: "upstream_error",
      message,
    });
    expect(await ask({ sql: "select $1::json as v", params: ["[1, 2]"] })).toEqual({ rows: [{ v: [1, 2] }] });
  });

  test("members of a list are sent as parameters are: bytes as bytes, and what would become null not at all", async () => {
    const contract = { capabilities: ["db:query" as const], scopes: { db: [{ name: "pg" }] } };
    const source = `export default async ({ db }) => {
      const ask = (type, value) => db.query("pg", "select $1::" + type + " as v", [value]).then(({ rows }) => rows[0].v, ({ code }) => code);
      return [
        await ask("bytea[]", [new Uint8Array([1, 255]), null]), await ask("int8[]", [[10n ** 18n], [1n]]),
        await ask("float8[]", [1, NaN]), await ask("jsonb[]", [{ $bytes: "AA==" }, { $json: 1 }]),
      ];
    };`;
    await bench.deploy("lists", source, contract);
    expect(await bench.invoke("lists")).toEqual([
      ["Af8=", null],
      [["1000000000000000000"], ["1"]],
      "invalid_request",
      [{ $bytes: "AA==" }, { $json: 1 }],
    ]);
  });

  test.each([
    ["-000043-03-15T00:00:00.000Z", "0044-03-15 BC"],
    ["0000-12-31T00:00:00.000Z", "0001-12-31 BC"],
    ["+012026-01-02T00:00:00.000Z", "12026-01-02"],
  ])("a Date is one before the first year and after 9999, too: %s", async (time, date) => {
    const params = [{ ms: Date.parse(time) }];
    expect(await ask({ sql: "select $1::timestamptz::date as date", params })).toEqual({ rows: [{ date }] });
  });

  test.each([
    ["int4range '[1,3)', null", ["[1,3)", null]],
    ["point '(1,2)', '(3,4)'", ["(1,2)", "(3,4)"]],
    ["bit '101'", ["101"]],
    ["row(1, 'a,b')", ['(1,"a,b")']],
    ["numeric '1.10', numeric 'NaN'", ["1.10", "NaN"]],
    ["float8 'NaN', null", ["NaN", null]],
    ["date '2024-02-29'", ["2024-02-29"]],
    ["timestamptz '2024-02-29 12:34:56.789123+00'", ["2024-02-29T12:34:56.789123Z"]],
    ["'\\x01'::bytea", ["AQ=="]],
    [`json '{"a":1}'`, [{ a: 1 }]],
    ["uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]],
  ])("members of an array are what they are outside of one: %s", async (members, list) => {
    expect(await ask({ sql: `select array[${members}] as list` })).toMatchObject({ rows: [{ list }] });
  });

  test.each([
    ["insert into t (id) values (2)", "capability_denied"],
    ["with x as (insert into t (id) values (3) returning id) select * from x", "capability_denied"],
    ["create table u (a int)", "capability_denied"],
    ["select setval('s', 1)", "upstream_error"],
    ["do $$ begin insert into t (id) values (4); end $$", "capability_denied"],
    ["do $$ begin commit; insert into t (id) values (4); end $$", "upstream_error"],
    ["select set_config('transaction_read_only', 'off', false)", "upstream_error"],
    ["select 1; insert into t (id) values (5)", "upstream_error"],
    ["select pg_read_file('/etc/passwd')", "upstream_error"],
  ])("a read grant refuses %s", async (sql, code) => {
    expect(await ask({ sql })).toMatchObject({ code });
  });

  test.each([
    "commit",
    "begin",
    "set transaction read write",
    "/* a /* b */ */ rollback",
    "-- x\nreset all",
    "copy t to program 'id'",
  ])("the transaction is the broker's: %s is refused", async (sql) => {
    expect(await ask({ sql })).toMatchObject({ code: "invalid_request" });
  });

  test("a comment that the database ends earlier than another one would hides no end of the transaction", async () => {
    const statements = ["--a\rcommit", "--a\rset default_transaction_read_only = off", "insert into t (id) values (6)"];
    expect(await ask({ transaction: statements })).toMatchObject({ code: "invalid_request" });
    expect(await ask({ sql: "select id from t where id = 6" })).toEqual({ rows: [] });
    await endsWithItsTransaction(openPostgres(targets["pg"]?.url ?? "", "read"));
  });

  test("a setting that a statement changes does not reach the next caller", async () => {
    await bench.invoke("w", { db: "pg", sql: "select set_config('application_name', 'mine', false)" });
    expect(await bench.invoke("w", { db: "pg", sql: "select current_setting('application_name') as name" })).toEqual({
      rows: [{ name: "magic db:query" }],
    });
  });

  test("a superuser login is refused, and says why", async () => {
    const answer = (await bench.invoke("p", { db: "super", sql: "select 1" })) as { code: string; message: string };
    expect(answer.code).toBe("capability_denied");
    expect(answer.message).toContain("superuser");
  });

  test("a login that can become a superuser is refused like one", async () => {
    const owner = new pg.Client({ connectionString: targets["super"]?.url });
    await owner.connect();
    await owner.query("create role boss superuser; create role sly login; grant boss to sly");
    await owner.query("create role disguised superuser login; alter role disguised set role = 'plain'");
    await owner.end();
    for (const name of ["sly", "disguised"]) {
      const driver = openPostgres((targets["pg"]?.url ?? "").replaceAll("plain", name), "read");
      await expect(driver.begin(new AbortController().signal)).rejects.toMatchObject({ code: "capability_denied" });
      await driver.close();
    }
  });

  test("one cell that no text could hold is refused, and the daemon lives", async () => {
    // Beyond half a gigabyte the driver throws where nobody can catch it: what comes is counted before it is put together.
    const tooMuch = { code: "limit_exceeded", message: expect.stringContaining("the query's answer has more than") };
    for (const sql of ["select repeat('x', 40000000)", "select ('\"' || repeat('x', 40000000) || '\"')::json"])
      expect(await ask({ sql })).toMatchObject(tooMuch);
    expect(await ask({ sql: "select length(repeat('x', 4000000)) as n" })).toEqual({ rows: [{ n: 4_000_000 }] });
  });

  test("what a read grant's transaction may do all the same is undone: large objects, notifications", async () => {
    const owner = new pg.Client({ connectionString: targets["super"]?.url });
    await owner.connect();
    const heard: unknown[] = [];
    owner.on("notification", ({ payload }) => heard.push(payload));
    await owner.query("listen c");
    await ask({ transaction: ["select lo_from_bytea(4711, 'x')", "select pg_notify('c', 'x')"] });
    expect((await owner.query("select from pg_largeobject_metadata where oid = 4711")).rows).toEqual([]);
    expect(heard).toEqual([]);
    expect(await ask({ transaction: ["select 1 as one"] })).toEqual({ rows: [[{ one: 1 }]] });
    await owner.end();
  });

  test("a transaction whose failure its handler passed over is not said to be committed", async () => {
    const driver = openPostgres(targets["pg"]?.url ?? "", "write");
    const session = await driver.begin(new AbortController().signal);
    await session.query("insert into t (id) values (30)", []);
    await expect(session.query("select 1 / 0", [])).rejects.toThrow("division");
    await expect(session.commit()).rejects.toMatchObject({ code: "upstream_error" });
    await session.release();
    await driver.close();
    expect(await ask({ sql: "select id from t where id = 30" })).toEqual({ rows: [] });
  });

  test("statements of one transaction that are sent together are counted each by itself", async () => {
    const together = Array.from({ length: 3 }, () => "select repeat('x', 6000000) as a");
    expect(await ask({ together })).toEqual({ rows: [6_000_000, 6_000_000, 6_000_000] });
  });

  test("a statement whose caller has gone is ended at the server, also one that would not be cancelled", async () => {
    const owner = new pg.Client({ connectionString: targets["super"]?.url ?? "" });
    await owner.connect();
    const stubborn = `do $$ begin loop begin perform pg_sleep(60); exception when query_canceled then null; end; end loop; end $$`;
    await endsWhatItLeft(openPostgres(targets["pg"]?.url ?? "", "read"), stubborn, async () => {
      const { rows } = await owner.query(
        "select count(*)::int as n from pg_stat_activity where query like 'do %' and state = 'active'",
      );
      return rows[0].n;
    });
    await owner.end();
  });

  test("what the login's own settings make of a value as text does not change it", async () => {
    const owner = new pg.Client({ connectionString: targets["super"]?.url ?? "" });
    await owner.connect();
    const settings = ["bytea_output = 'escape'", "extra_float_digits = 0", "datestyle = 'SQL, DMY'"];
    for (const one of settings) await owner.query(`alter role plain set ${one}`);
    await owner.end();
    for (const mode of ["read", "write"] as const) {
      const driver = openPostgres(targets["pg"]?.url ?? "", mode);
      const session = await driver.begin(new AbortController().signal);
      const sql =
        "select '\\x0102'::bytea as bytes, 0.1::float8 + 0.2 as float, date '2026-02-01' as day, to_timestamp(0) as at";
      const { rows } = await session.query(sql, []);
      expect(rows).toEqual([{ bytes: "AQI=", float: 0.1 + 0.2, day: "2026-02-01", at: "1970-01-01T00:00:00.000Z" }]);
      await session.release();
      await driver.close();
    }
  });

  test("sessions that the server has ended while nobody used them fail nobody", async () => {
    expect(await ask({ sql: "select 1 as one" })).toEqual({ rows: [{ one: 1 }] });
    const owner = new pg.Client({ connectionString: targets["super"]?.url ?? "" });
    await owner.connect();
    await owner.query("select pg_terminate_backend(pid, 1000) from pg_stat_activity where usename = 'plain'");
    await owner.end();
    expect(await ask({ sql: "select 1 as one" })).toEqual({ rows: [{ one: 1 }] });
  });

  test("a frozen server keeps no session's place", async () => {
    const url = new URL(targets["pg"]?.url ?? "");
    const open = (port: number) => openPostgres(`postgres://plain@127.0.0.1:${port}${url.pathname}`, "read");
    await outlivesItsFreeze(open, { path: join(server.socketFolder, ".s.PGSQL.5432") });
  });

  test("a write grant writes, in a transaction whole or not at all", async () => {
    await bench.invoke("w", { db: "pg", transaction: ["insert into t (id) values (20)"], fail: true });
    await bench.invoke("w", { db: "pg", sql: "insert into t (id) values ($1)", params: [21] });
    expect(await ask({ sql: "select id from t where id >= 20" })).toEqual({ rows: [{ id: 21 }] });
  });

  test("too many rows are refused, a statement without end is stopped, and the sessions go on", async () => {
    expect(await ask({ sql: "select i from generate_series(1, 20000) i" })).toMatchObject({ code: "limit_exceeded" });
    expect(await bench.outcome("p-hasty", { db: "pg", sql: "select pg_sleep(60)" })).toBe("timeout");
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => ask({ sql: `select ${i} as i` })));
    expect(all).toEqual(Array.from({ length: 20 }, (_, i) => ({ rows: [{ i }] })));
  });
});

describe.skipIf(mysqlMissing())("mysql", () => {
  let server: TestMysql;
  let bench: Bench;
  beforeAll(async () => {
    server = await startMysql();
    const url = await server.createDatabase();
    const root = await createConnection({ uri: url, multipleStatements: true });
    const database = new URL(url).pathname.slice(1);
    await root.query(
      "create table t (id int primary key, big bigint, price decimal(12,2), at datetime(3), doc json, bytes varbinary(10))",
    );
    await root.query(
      "insert into t values (1, 9007199254740993, 12.30, '2026-01-02 03:04:05.678', '{\"a\": 1}', x'0102')",
    );
    await root.query(`create user plain@'%' identified by 'pw'; grant all on \`${database}\`.* to plain@'%'`);
    await root.query(
      `create user plain@localhost identified by 'pw'; grant all on \`${database}\`.* to plain@localhost`,
    );
    await root.end();
    const plain = new URL(url);
    plain.username = "plain";
    plain.password = "pw";
    targets["my"] = { url: plain.href, mode: "write" };
    targets["myroot"] = { url, mode: "read" };
    bench = await deployed("m", [{ name: "my", mode: "read" }, { name: "myroot" }]);
    await bench.deploy("mw", handler, { capabilities: ["db:query"], scopes: { db: [{ name: "my", mode: "write" }] } });
  });
  afterAll(() => server?.stop());
  const ask = (input: object): Promise<unknown> => bench.invoke("m", { db: "my", ...input });

  test("bigint and decimal are text, numbered placeholders work", async () => {
    expect(await ask({ sql: "select id, big, price, bytes from t where id = $1", params: [1] })).toEqual({
      rows: [{ id: 1, big: "9007199254740993", price: "12.30", bytes: "AQI=" }],
    });
  });

  test("whole numbers in json that no double holds are text, as bigint is", async () => {
    const sql = `select json_extract('{"id": -12345678901234567890, "n": 7}', '$') as b`;
    expect(await ask({ sql })).toEqual({ rows: [{ b: { id: "-12345678901234567890", n: 7 } }] });
  });

  test("a parameter without a placeholder is refused, and its bytes are not taken for another's value", async () => {
    const code = "invalid_request";
    expect(await ask({ sql: "select ? as a", params: [1, 2] })).toMatchObject({ code });
    expect(await ask({ sql: "select ? as a, ? as b", params: [1] })).toMatchObject({ code });
    expect(await ask({ sql: "select '?' as a, ? as b", params: [2] })).toEqual({ rows: [{ a: "?", b: 2 }] });
  });

  test("a statement that nobody waited for is undone with its transaction, and not done behind it", async () => {
    const source = `export default async ({ db }) => {
      await db.transaction("my", (tx) => {
        tx.query("insert into t (id) values (?)", [99]).catch(() => {});
        throw new Error("changed my mind");
      }).catch(() => {});
      await new Promise((done) => setTimeout(done, 100));
      return (await db.query("my", "select id from t where id = 99")).rows;
    };`;
    const contract = { capabilities: ["db:query" as const], scopes: { db: [{ name: "my", mode: "write" as const }] } };
    await bench.deploy("hasty", source, contract);
    expect(await bench.invoke("hasty")).toEqual([]);
  });

  test("a login that the server lets in and answers nothing keeps no connection", async () => {
    const root = await createConnection({ uri: targets["myroot"]?.url ?? "" });
    await root.query("create user expired@'%' identified by 'x' password expire");
    const url = new URL(targets["my"]?.url ?? "");
    Object.assign(url, { username: "expired", password: "x" });
    url.pathname = "";
    const driver = openMysql(url.href, "read");
    const begin = driver.begin(new AbortController().signal);
    await expect(begin).rejects.toMatchObject({ message: expect.stringContaining("SET PASSWORD") });
    const left = async () => {
      const [rows] = await root.query("select id from information_schema.processlist where user = 'expired'");
      return rows;
    };
    await expect.poll(left).toEqual([]);
    await root.end();
  });

  test("a transaction is whole or not at all: what would commit it, or what a deadlock undid, is refused", async () => {
    const root = await createConnection({ uri: targets["myroot"]?.url ?? "", multipleStatements: true });
    await root.query(
      "create table pairs (id int primary key, n int); insert into pairs values (1, 0), (2, 0); create procedure ends() begin commit; insert into pairs values (9, 9); end",
    );
    const write = (input: object): Promise<unknown> => bench.invoke("mw", { db: "my", ...input });
    const first = "insert into pairs values (3, 3)";
    for (const second of [
      "/**/ Create table u (a int)",
      "-- drop temporary rows\ntruncate t",
      "alter table pairs add m int",
    ])
      expect(await write({ transaction: [first, second, first] })).toMatchObject({
        code: "invalid_request",
        message: expect.stringContaining("commits a transaction"),
      });
    expect(await ask({ sql: "select id from pairs where id = 3" })).toEqual({ rows: [] });
    expect(await write({ transaction: [first, "call ends()", "insert into pairs values (4, 4)"] })).toMatchObject({
      code: "invalid_request",
    });
    expect(await ask({ sql: "select id from pairs where id > 3" })).toEqual({ rows: [{ id: 9 }] });
    expect(
      await write({ transaction: ["/* new */ create temporary table u (a int)", "insert into u values (1)"] }),
    ).toEqual({
      rows: [[], []],
    });
    expect(await write({ sql: "create table v (a int)" })).toEqual({ rows: [] });

    const driver = openMysql(targets["my"]?.url ?? "", "write");
    const { signal } = new AbortController();
    const [one, other] = await Promise.all([driver.begin(signal, "many"), driver.begin(signal, "many")]);
    const set = (id: number): string => `update pairs set n = n + 1 where id = ${id}`;
    await Promise.all([one.query(set(1), []), other.query(set(2), [])]);
    const ends = await Promise.all(
      [one.query(set(2), []), other.query(set(1), [])].map((asked) => asked.then(() => "ok").catch(() => "lost")),
    );
    expect(ends.toSorted()).toEqual(["lost", "ok"]);
    const [lost, kept] = ends[0] === "lost" ? [one, other] : [other, one];
    await expect(lost.query("insert into pairs values (5, 5)", [])).rejects.toMatchObject({ code: "upstream_error" });
    await expect(lost.commit()).rejects.toMatchObject({ code: "upstream_error" });
    await kept.commit();
    await kept.release();

    const late = await driver.begin(signal, "many");
    await late.query("set session innodb_snapshot_isolation = on", []);
    await late.query("insert into pairs values (6, 6)", []);
    await late.query("select * from pairs", []);
    await root.query("update pairs set n = 0 where id = 9");
    await expect(late.query("update pairs set n = 8 where id = 9", [])).rejects.toMatchObject({
      code: "upstream_error",
    });
    await expect(late.query("insert into pairs values (5, 5)", [])).rejects.toMatchObject({ code: "upstream_error" });
    const whole = await driver.begin(signal, "many");
    await whole.query("update pairs set n = n where id = 1", []);
    await expect(whole.query("insert into pairs values (1, 1)", [])).rejects.toMatchObject({ code: "upstream_error" });
    expect(await whole.query("select 1 as one", [])).toMatchObject({ row_count: 1 });
    await whole.release();
    await driver.close();
    const [rows] = await root.query("select id, n from pairs where id in (1, 2, 5) order by id");
    expect(rows).toEqual([1, 2].map((id) => ({ id, n: 1 })));
    await root.end();
  });

  test("a server ends a statement by itself in the end, in a session that was reset too", async () => {
    for (let times = 0; times < 2; times++)
      expect(await ask({ sql: "select @@max_statement_time as s" })).toEqual({ rows: [{ s: 60 }] });
  });

  test("a statement whose caller has gone is ended at the server, after others that failed too", async () => {
    const root = await createConnection(targets["myroot"]?.url ?? "");
    const running = async (): Promise<number | undefined> => {
      const [rows] = await root.query(
        "select count(*) as n from information_schema.processlist where info like 'select sleep%'",
      );
      return (rows as { n: number }[])[0]?.n;
    };
    const open = () => openMysql(targets["my"]?.url ?? "", "read");
    await endsWhatItLeft(open(), "select sleep(60)", running);
    await endsWhatItLeft(open(), "select sleep(60)", running, ["select absent", "insert into t (id) values (1)"]);
    await root.end();
  });

  test("a frozen server keeps no session's place", async () => {
    const url = new URL(targets["my"]?.url ?? "");
    const behind = { host: url.hostname, port: Number(url.port) };
    const open = (port: number) => openMysql(Object.assign(new URL(url), { host: `127.0.0.1:${port}` }).href, "read");
    await outlivesItsFreeze(open, behind);
  });

  test("an answer that the driver cannot read is refused at once", async () => {
    expect(await ask({ sql: "select 1 as `__proto__`" })).toMatchObject({ code: "upstream_error" });
  });

  test.each([
    ["insert into t (id) values (2)", "capability_denied"],
    ["create table u (a int)", "capability_denied"],
    ["delete from t", "capability_denied"],
    ["select 1; delete from t", "upstream_error"],
  ])("a read grant refuses %s", async (sql, code) => {
    expect(await ask({ sql })).toMatchObject({ code });
  });

  test.each([
    "commit",
    "set session transaction read write",
    "/*!50000 commit */",
    "# x\nrollback",
    "prepare s from 'commit'",
    "if 1 then set session transaction read write; commit; insert into t (id) values (8); end if",
    "(/**/for i in 1..1 do commit; insert into t (id) values (8); end for)",
    "declare x int; begin commit; insert into t (id) values (8); end",
  ])("the transaction is the broker's: %s is refused", async (sql) => {
    expect(await ask({ sql })).toMatchObject({ code: "invalid_request" });
    expect(await ask({ sql: "select id from t where id = 8" })).toEqual({ rows: [] });
  });

  test("a comment that the database ends earlier than another one would hides no end of the transaction", async () => {
    for (const hidden of ["/* /* */ ", "-- a\rselect 1\n"]) {
      const statements = [
        `${hidden}commit`,
        `${hidden}set session transaction read write`,
        "insert into t (id) values (6)",
      ];
      expect(await ask({ transaction: statements })).toMatchObject({ code: "invalid_request" });
    }
    expect(await ask({ sql: "select id from t where id = 6" })).toEqual({ rows: [] });
    await endsWithItsTransaction(openMysql(targets["my"]?.url ?? "", "read"));
  });

  test("nothing of a session is left for the next caller that gets it", async () => {
    const use = (...transaction: string[]) => bench.invoke("mw", { db: "my", transaction });
    await use(
      "create temporary table mine (id int)",
      "select @x := 5, get_lock('l', 0)",
      "insert into t (id) values (30)",
    );
    await bench.invoke("mw", { db: "my", transaction: ["insert into t (id) values (31)"], fail: true });
    const left =
      "select @x as x, is_free_lock('l') as free, @@session.time_zone as zone, @@character_set_client as charset";
    expect(await use(left, "select id from t where id >= 30", "delete from t where id = 30")).toEqual({
      rows: [[{ x: null, free: expect.anything(), zone: "+00:00", charset: "utf8mb4" }], [{ id: 30 }], []],
    });
    expect(await use("select * from mine")).toMatchObject({ code: "upstream_error" });
    expect(await use("select 'é日' as text")).toEqual({ rows: [[{ text: "é日" }]] });
  });

  test("an account with all privileges is refused, and says why", async () => {
    expect(await bench.invoke("m", { db: "myroot", sql: "select 1" })).toMatchObject({ code: "capability_denied" });
  });

  test("a date can be written, and asked for; a float of four bytes is as short as it was", async () => {
    const root = await createConnection({ uri: targets["myroot"]?.url ?? "" });
    await root.query("create table times (at timestamp(3) null, f float default 0.1, g float default 1.20327564e24)");
    await root.end();
    const write = (sql: string) => bench.invoke("mw", { db: "my", sql, params: [{ ms: 1e12 + 7 }] });
    expect(await write("insert into times (at) values (?)")).toEqual({ rows: [] });
    const rows = [{ at: "2001-09-09 01:46:40.007", f: 0.1, g: 1.20327564e24 }];
    expect(await write("select at, f, g from times where at = $1")).toEqual({ rows });
  });

  test("a write grant writes, in a transaction whole or not at all", async () => {
    await bench.invoke("mw", { db: "my", transaction: ["insert into t (id) values (20)"], fail: true });
    await bench.invoke("mw", { db: "my", sql: "insert into t (id) values ($1)", params: [21] });
    expect(await ask({ sql: "select id from t where id >= 20" })).toEqual({ rows: [{ id: 21 }] });
  });
});

test("a server that does not answer keeps nobody waiting for the end of what was left there", async () => {
  const asked: (readonly number[])[] = [];
  const reap = openReaper<number>((ids, signal) => {
    asked.push(ids);
    return new Promise((_, reject) => signal.addEventListener("abort", () => asked.push([]) && reject(new Error())));
  }, 5);
  await Promise.all([reap(1), reap(2)]);
  await reap(3);
  expect(asked).toEqual([[1, 2], [], [3], []]);
  // Nor one that does not hear of its time.
  await openReaper(() => new Promise(() => {}), 5)(1);
});

test.each([
  ["an authentication that the driver does not know", "520000000800000007"],
  ["a row of minus two columns", "520000000800000000" + "4400000006fffe"],
])("a server that sends %s is refused, and the daemon lives", async (_, answer) => {
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.end(Buffer.from(answer, "hex")));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const driver = openPostgres(`postgres://plain@127.0.0.1:${(server.address() as AddressInfo).port}/x`, "read");
  await expect(driver.begin(new AbortController().signal)).rejects.toMatchObject({ code: "upstream_error" });
  await driver.close();
  server.close();
});

test("statements that would hide transaction control are seen through", () => {
  for (const sql of [
    " ;;\n COMMIT",
    "/*x*/--y\nRollback",
    "((end",
    "/*!50000 commit */",
    "--a\rcommit",
    "/*/**/commit",
    "/*/*x*/*/commit",
  ])
    expect(() => checkStatement(sql)).toThrow();
  for (const sql of ["select 1", "-- begin\nselect 1", "insert into commit values (1)"])
    expect(() => checkStatement(sql)).not.toThrow();
  // Whoever asks inside of a transaction is not sent into one.
  expect(() => checkStatement("begin")).toThrow("BEGIN cannot be sent through db:query; use request.db.transaction");
  for (const sql of ["set local search_path to other", "savepoint here", "copy t to stdout"])
    expect(() => checkStatement(sql)).toThrow(/^[A-Z]+ cannot be sent through db:query$/);
});

test("numbered placeholders become question marks, in quotes they stay", () => {
  const quoted = "'it''s $1', \"$1\"\"$1\", `$1` /* $1 */ -- it's $1\n";
  for (const dialect of ["mysql", "sqlite"] as const)
    expect(questionMarks(dialect, `select $2, ${quoted} where a = $1`, ["a", "b"])).toEqual({
      sql: `select ?, ${quoted} where a = ?`,
      params: ["b", "a"],
    });
  expect(questionMarks("mysql", "select '\\', $1, ', $1 # it's $1\n", ["a"])).toEqual({
    sql: "select '\\', $1, ', ? # it's $1\n",
    params: ["a"],
  });
  expect(questionMarks("mysql", "select 1--$1, a$1", ["a"]).sql).toBe("select 1--?, a$1");
  expect(questionMarks("sqlite", "select [it's], a$1, $1", ["a"]).sql).toBe("select [it's], a$1, ?");
});

test.each([":a", "@a", "$a", "$1a", "$0", ":1"])(
  "sqlite: a placeholder that nothing is put for (%s) is refused, not null",
  (mark) => {
    const refused = () => questionMarks("sqlite", `update t set a = ${mark}`, ["a"]);
    expect(refused).toThrow(expect.objectContaining({ code: "invalid_request" }));
    expect(questionMarks("sqlite", `select '${mark}' -- ${mark}`, []).params).toEqual([]);
  },
);

test.each(["'\\", '"\\', "/*", "`"])(
  "a long statement of %s that nothing closes is not looked through at each of them",
  (mark) => {
    const began = performance.now();
    for (const dialect of ["mysql", "sqlite"] as const) questionMarks(dialect, `select ${mark.repeat(100_001)}`, []);
    expect(performance.now() - began).toBeLessThan(within(1_000));
  },
);
