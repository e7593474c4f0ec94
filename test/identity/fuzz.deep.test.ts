// 10,000 generated requests.
import { expect, onTestFinished, test } from "vitest";
import { scopes } from "#contract/identity.ts";
import { startDaemon } from "./daemon.ts";
import { fuzz } from "./fuzz.ts";
import { someResources } from "./some-resources.ts";

test.each([1, 2, 3, 4, 5])("2,000 generated requests, seed %i", async (seed) => {
  const daemon = await startDaemon();
  onTestFinished(() => daemon.close());
  const made = await daemon.call("POST", "/v1/keys", {
    body: { scopes: [...scopes], environment: "live", tier: "enterprise" },
  });
  const token = seed % 2 === 0 ? daemon.app.credentials.local_token : made.body.secret;
  const { faults } = await fuzz(daemon, {
    token,
    requests: 2_000,
    seed,
    batch: 50,
    ids: [made.body.id, ...(await someResources(daemon, token))],
  });
  expect(faults).toEqual([]);
});
