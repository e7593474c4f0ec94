// Hostile input from the schemas: no crash, no 5xx, the daemon answers on. The whole figure is in the deep test.
import { expect, onTestFinished, test } from "vitest";
import { scopes } from "#contract/identity.ts";
import { startDaemon } from "./daemon.ts";
import { fuzz } from "./fuzz.ts";
import { someResources } from "./some-resources.ts";

test.each(["sandbox", "live"] as const)(
  "200 generated requests, %s: 0 crashes, 0 answers of 500 and above",
  async (environment) => {
    const daemon = await startDaemon();
    onTestFinished(() => daemon.close());
    const made = await daemon.call("POST", "/v1/keys", {
      body: { scopes: [...scopes], environment, tier: "enterprise" },
    });
    // The sandbox counts everybody but the command line.
    const token = environment === "sandbox" ? daemon.app.credentials.local_token : made.body.secret;
    const { faults, statuses, requests } = await fuzz(daemon, {
      token,
      requests: 200,
      seed: 7,
      batch: 25,
      ids: [made.body.id, ...(await someResources(daemon, token))],
    });
    expect(faults).toEqual([]);
    expect(requests).toBe(200);
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(["200", "404", "422"]));
  },
);
