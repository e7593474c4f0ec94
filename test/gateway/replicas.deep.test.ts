// Three daemons on one Postgres under load: whatever their calls cost and however long they take, they never overspend together.
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openStorage } from "#daemon/storage/open.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { completion, principal, type TestGateway, testGateway } from "./pipeline.ts";
import { upstreamOfFile } from "./upstream.ts";

const noPostgres = postgresMissing();
const upstream = upstreamOfFile();
let server: TestPostgres | undefined;
beforeAll(async () => {
  if (!noPostgres) server = await startPostgres();
});
afterAll(async () => {
  await server?.stop();
});

test.skipIf(noPostgres).each([1, 2, 3])("round %i", async (round) => {
  let seed = round;
  const random = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed / 0x7fffffff;
  };
  upstream.answer = (response) =>
    void setTimeout(() => response.end(completion(10, 20 + Math.floor(random() * 80))), random() * 60);
  const databaseUrl = await server?.createDatabase();
  const daemon = async () => {
    const storage = await openStorage({ root: "", databaseUrl });
    onTestFinished(() => storage.close());
    const config = {
      providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
      prices: { "openai/m": { input: 0, output: 10 } },
      budgets: [
        { scope: "engagement" as const, usd: 0.25, per: "month" as const },
        { scope: "user" as const, usd: 0.2, per: "month" as const },
      ],
    };
    return await testGateway(config, { storage });
  };
  const daemons = [await daemon(), await daemon(), await daemon()];
  const who = principal({}, { user: "u" });
  const codes = new Set<string>();
  const call = async ({ chat }: TestGateway) => {
    for (let i = 0; i < 10; i++)
      codes.add(
        await chat({ model: "openai/m", max_tokens: 100 }, { principal: who }).then(
          ({ status }) => String(status),
          ({ code }) => code,
        ),
      );
  };
  await Promise.all(daemons.flatMap((one) => Array.from({ length: 20 }, () => call(one))));
  expect([...codes].sort()).toEqual(["200", "insufficient_quota"]);
  for (const { gateway } of [...daemons, ...daemons]) await gateway.flush();
  const key = `user:u:month:${new Date().toISOString().slice(0, 7)}`;
  const [account] = (await daemons[0]?.storage.units.budget.load({ keys: [key], process: "" })) ?? [];
  expect(account?.elsewhere).toBe(0);
  // The dearest call costs a tenth of a cent.
  expect(account?.spent).toBeGreaterThan(0.19e12);
  expect(account?.spent).toBeLessThanOrEqual(0.2e12);
  const [sum] = (await daemons[1]?.gateway.usage({ by: "user" })) ?? [];
  expect(Number(sum?.cost_pico)).toBe(account?.spent);
});
