// The repository test-suite: the same behaviour on SQLite and on a real Postgres.
import { mkdirSync, rmSync } from "node:fs";
import { createServer, connect as dial, type Socket } from "node:net";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSharedLimiter } from "#daemon/identity/limits/shared-limiter.ts";
import { openStorage } from "#daemon/storage/open.ts";
import { openPostgres } from "#daemon/storage/postgres/postgres.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { dialectsWith, sharedPostgres } from "#test/dialects.ts";
import { temporaryStorage } from "#test/temporary.ts";

const postgres = sharedPostgres();
const { missing: noPostgres } = postgres;

describe.each(dialectsWith(postgres))("on $name", ({ open }) => {
  test("a setting is kept, replaced and removed", async () => {
    const { setting } = (await open()).units;
    expect(await setting.get({ key: "seed" })).toBeNull();
    expect(await setting.putIfAbsent({ key: "seed", value: "1" })).toBe("1");
    expect(await setting.putIfAbsent({ key: "seed", value: "2" })).toBe("1");
    await setting.put({ key: "seed", value: "3" });
    expect(await setting.get({ key: "seed" })).toBe("3");
    await setting.remove({ key: "seed" });
    expect(await setting.get({ key: "seed" })).toBeNull();
  });

  test("of many callers that put the same absent key, one wins and all are told which", async () => {
    const { setting } = (await open()).units;
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => setting.putIfAbsent({ key: "owner", value: String(i) })),
    );
    expect(new Set(answers).size).toBe(1);
  });

  test("a unit that fails is undone alone and its neighbours are kept", async () => {
    const { setting } = (await open()).units;
    const settled = await Promise.allSettled(
      Array.from({ length: 60 }, (_, i) =>
        setting.put({ key: `k${i}`, value: i % 3 === 0 ? (null as unknown as string) : "kept" }),
      ),
    );
    for (const [i, { status }] of settled.entries()) {
      expect(status).toBe(i % 3 === 0 ? "rejected" : "fulfilled");
      expect(await setting.get({ key: `k${i}` })).toBe(i % 3 === 0 ? null : "kept");
    }
  });

  test("an unknown unit is a clear error", async () => {
    const { units } = await open();
    const { setting } = units as unknown as { setting: Record<string, (args: unknown) => Promise<unknown>> };
    await expect(setting["missing"]?.({})).rejects.toThrow("setting.missing");
  });
});

test.skipIf(noPostgres)(
  "replicas that start together migrate once, whatever the database's own isolation is",
  async () => {
    const databaseUrl = await postgres.server.createDatabase("isolated");
    const client = new pg.Client(databaseUrl);
    await client.connect();
    await client.query("alter database isolated set default_transaction_isolation = 'repeatable read'");
    await client.end();
    const replicas: Storage[] = await Promise.all(
      Array.from({ length: 4 }, () => openStorage({ root: "unused", databaseUrl })),
    );
    await replicas[0]?.units.setting.put({ key: "a", value: "1" });
    expect(await replicas[3]?.units.setting.get({ key: "a" })).toBe("1");
    await Promise.all(replicas.map((replica) => replica.close()));
  },
);

test.skipIf(noPostgres)(
  "daemons over one database count their calls together, and a new one goes on from there",
  async () => {
    const databaseUrl = await postgres.server.createDatabase();
    const limiterOf = async () => createSharedLimiter((await temporaryStorage({ databaseUrl })).units.rateWindow.take);
    const replicas = await Promise.all([limiterOf(), limiterOf()]);
    const policy = { name: "sandbox", limit: 60, windowS: 600 };
    const decisions = await Promise.all(Array.from({ length: 100 }, (_, i) => replicas[i % 2]?.admit(policy)));
    const admitted = decisions.filter((one) => one?.admitted);
    expect(admitted).toHaveLength(60);
    expect(new Set(admitted.map((one) => one?.remaining)).size).toBe(60);
    const later = await (await limiterOf()).admit(policy);
    expect(later).toMatchObject({ admitted: false, remaining: 0 });
    expect(later.resetMs).toBeGreaterThan(500_000);
    // Each on its own again once the window has passed.
    const short = { name: "short", limit: 2, windowS: 0.2 };
    const inTurn = [await replicas[0]?.admit(short)];
    await new Promise((resolve) => setTimeout(resolve, 250));
    inTurn.push(await replicas[1]?.admit(short));
    expect(inTurn).toMatchObject([
      { admitted: true, remaining: 1 },
      { admitted: true, remaining: 1 },
    ]);
  },
);

test.skipIf(noPostgres)("connections to Postgres that break, in use or not, end nothing but their units", async () => {
  const databaseUrl = await postgres.server.createDatabase();
  const { units } = await temporaryStorage({ databaseUrl });
  const operator = new pg.Client(databaseUrl);
  await operator.connect();
  onTestFinished(() => operator.end());
  const kept: string[] = [];
  const failures = new Set<unknown>();
  let over = false;
  const write = async (worker: number) => {
    for (let at = 0; !over; at++) {
      const key = `${worker} ${at}`;
      await units.setting.putIfAbsent({ key, value: key }).then(
        () => kept.push(key),
        (error: unknown) => failures.add((error as { code?: string }).code),
      );
    }
  };
  const writers = Promise.all(Array.from({ length: 8 }, (_, worker) => write(worker)));
  for (let round = 0; round < 10; round++) {
    await operator.query("SELECT pg_sleep(0.02)");
    await operator.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
  }
  over = true;
  await writers;
  expect([...failures]).toEqual(["storage_unavailable"]);
  const { rows } = await operator.query<{ key: string }>("SELECT key FROM setting");
  expect(new Set(rows.map(({ key }) => key)).isSupersetOf(new Set(kept))).toBe(true);
});

test.skipIf(noPostgres)(
  "a Postgres that holds a unit up, or says nothing at all, is waited for no longer than so",
  async () => {
    const url = new URL(await postgres.server.createDatabase());
    const between = `${postgres.server.socketFolder}/between`;
    let mute = false;
    let lateMs = 0;
    let pooler = false;
    let sent = "";
    const sockets: Socket[] = [];
    const proxy = createServer((client) => {
      const upstream = dial(`${postgres.server.socketFolder}/.s.PGSQL.5432`);
      sockets.push(client, upstream);
      client.on("error", () => {}).pipe(upstream);
      client.on("data", (data) => {
        sent += data.toString("latin1");
      });
      // A pooler gives its clients numbers of its own (BackendKeyData).
      upstream.prependListener("data", (data: Buffer) => {
        const at = data.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
        if (pooler && at !== -1) data.writeUInt32BE(1, at + 5);
      });
      upstream.on("error", () => {}).on("data", (data) => mute || setTimeout(() => client.write(data), lateMs));
    });
    mkdirSync(between);
    await new Promise<void>((resolve) => proxy.listen(`${between}/.s.PGSQL.5432`, resolve));
    url.searchParams.set("host", between);
    const { units, check, close } = await openPostgres(url.href, { connectMs: 400, statementMs: 100, heldMs: 300 });
    onTestFinished(async () => {
      await close();
      for (const socket of sockets) socket.destroy();
      proxy.close();
      rmSync(between, { recursive: true });
    });
    const operator = new pg.Client(url.href.replace("/between", "").replace("%2Fbetween", ""));
    await operator.connect();
    onTestFinished(() => operator.end());
    await operator.query("begin; lock table setting in access exclusive mode");
    const locked = await Promise.allSettled(
      Array.from({ length: 20 }, () => units.setting.put({ key: "a", value: "1" })),
    );
    expect(new Set(locked.map((each) => each.status === "rejected" && each.reason.code))).toEqual(
      new Set(["storage_unavailable"]),
    );
    await check();
    expect(sent).not.toContain("set local");
    pooler = true;
    const behind = await openPostgres(url.href, { connectMs: 400, statementMs: 100, heldMs: 10_000 });
    await expect(behind.units.setting.put({ key: "a", value: "1" })).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    expect(sent).toContain("set local statement_timeout = 100");
    await behind.close();
    pooler = false;
    await operator.query("rollback");
    await units.setting.put({ key: "a", value: "2" });
    // One that answers is not given up, however long a unit takes in all.
    lateMs = 8;
    const changes = Array.from({ length: 24 }, (_, i) => ({ key: `user:${i}:total`, spent: 1, lease: 1 }));
    await units.ledger.append({
      batch: 1,
      rows: "[]",
      budgets: changes,
      process: "a",
      now: "2026-01-01T00:00:00.000Z",
    });
    lateMs = 0;
    mute = true;
    const unheard = units.setting.put({ key: "a", value: "3" });
    await expect(unheard).rejects.toMatchObject({ code: "storage_unavailable" });
    mute = false;
    expect(await units.setting.get({ key: "a" })).toBe("2");
  },
);

test.skipIf(noPostgres)(
  "a database in which another program has tables of our names is refused, not changed",
  async () => {
    const databaseUrl = await postgres.server.createDatabase();
    const theirs = new pg.Client(databaseUrl);
    await theirs.connect();
    onTestFinished(() => theirs.end());
    await theirs.query("CREATE TABLE webhook (address text)");
    await expect(openStorage({ root: "", databaseUrl })).rejects.toMatchObject({
      code: "state_unusable",
      message: 'the database holds another program\'s tables: relation "webhook" already exists',
    });
    const { rows } = await theirs.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    expect(rows).toEqual([{ tablename: "webhook" }]);
  },
);

test.skipIf(noPostgres)("a COMMIT that Postgres says it has undone is no open question", async () => {
  const databaseUrl = await postgres.server.createDatabase();
  const { setting } = (await temporaryStorage({ databaseUrl })).units;
  const operator = new pg.Client(databaseUrl);
  await operator.connect();
  onTestFinished(() => operator.end());
  await operator.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise sqlstate '57014'; end $$;
     create constraint trigger late after insert on setting deferrable initially deferred for each row execute function refuse()`,
  );
  const refused = await setting.put({ key: "a", value: "1" }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "storage_unavailable" });
  expect(refused).not.toHaveProperty("extra.outcome");
});

test.skipIf(noPostgres)("a Postgres that lets nobody in, or nobody write, says why", async () => {
  const databaseUrl = await postgres.server.createDatabase("standby");
  const stranger = openPostgres(databaseUrl.replace("postgres@", "stranger@"));
  await expect(stranger).rejects.toMatchObject({
    code: "storage_unavailable",
    message: expect.stringMatching(/role "stranger" does not/),
  });
  await (await openPostgres(databaseUrl)).close();
  const operator = new pg.Client(databaseUrl);
  await operator.connect();
  onTestFinished(() => operator.end());
  await operator.query("alter database standby set default_transaction_read_only = on");
  const storage = await temporaryStorage({ databaseUrl });
  expect(await storage.units.setting.get({ key: "a" })).toBeNull();
  const refused = { code: "storage_unavailable", message: expect.stringMatching(/read-only transaction/) };
  await expect(storage.units.setting.put({ key: "a", value: "1" })).rejects.toMatchObject(refused);
  await expect(storage.check()).rejects.toMatchObject({ code: "storage_unavailable" });
});
