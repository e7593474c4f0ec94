// The repository test-suite: the same behaviour on SQLite and on a real Postgres.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { temporaryStorage } from "#test/temporary.ts";

let server: TestPostgres | undefined;
const noPostgres = postgresMissing();
beforeAll(async () => {
  if (!noPostgres) server = await startPostgres();
});
afterAll(() => server?.stop());

const dialects = [
  { name: "sqlite", open: () => temporaryStorage(), skip: false },
  {
    name: "postgres",
    open: async () => temporaryStorage({ databaseUrl: await server?.createDatabase() }),
    skip: noPostgres,
  },
];

describe.each(dialects.filter(({ skip }) => !skip))("on $name", ({ open }) => {
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

test.skipIf(noPostgres)("replicas that start together migrate once", async () => {
  const databaseUrl = await server?.createDatabase();
  const replicas: Storage[] = await Promise.all(
    Array.from({ length: 4 }, () => openStorage({ root: "unused", databaseUrl })),
  );
  await replicas[0]?.units.setting.put({ key: "a", value: "1" });
  expect(await replicas[3]?.units.setting.get({ key: "a" })).toBe("1");
  await Promise.all(replicas.map((replica) => replica.close()));
});
