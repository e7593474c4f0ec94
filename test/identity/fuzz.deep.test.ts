// 10,000 generated requests, and 2,000 more to a daemon whose state lies in Postgres, which takes fewer texts than SQLite does.
import { expect, onTestFinished, test } from "vitest";
import { scopes } from "#contract/identity.ts";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { startDaemon } from "./daemon.ts";
import { fuzz } from "./fuzz.ts";
import { someResources } from "./some-resources.ts";

async function faultsOf(seed: number, requests: number, env: Record<string, string> = {}): Promise<readonly string[]> {
  const daemon = await startDaemon({ env });
  onTestFinished(() => daemon.close());
  const made = await daemon.call("POST", "/v1/keys", {
    body: { scopes: [...scopes], environment: "live", tier: "enterprise" },
  });
  const token = seed % 2 === 0 ? daemon.app.credentials.local_token : made.body.secret;
  const ids = [made.body.id, ...(await someResources(daemon, token))];
  return (await fuzz(daemon, { token, requests, seed, batch: 50, ids })).faults;
}

test.each([1, 2, 3, 4, 5])("2,000 generated requests, seed %i", async (seed) => {
  expect(await faultsOf(seed, 2_000)).toEqual([]);
});

test.skipIf(postgresMissing()).each([6, 7])("1,000 generated requests, seed %i, state in Postgres", async (seed) => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  expect(await faultsOf(seed, 1_000, { MAGIC_DATABASE_URL: await postgres.createDatabase() })).toEqual([]);
});
