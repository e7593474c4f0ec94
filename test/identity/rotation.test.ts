// Keys rolled while they are in use: nobody is refused during an overlap, and the old secret is dead when it ends.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAuthenticator } from "#daemon/identity/authenticator.ts";
import { makeSecret } from "#daemon/identity/credentials/secret.ts";
import { systemClock } from "#shared/clock.ts";
import { within } from "../patience.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { rotateUnderLoad } from "./rotate-under-load.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.close());

test("60 rotations under load: no refusal in an overlap, the old secret dead at its end", async () => {
  const outcome = await rotateUnderLoad(daemon, { rotations: 60, callers: 4 });
  expect(outcome).toMatchObject({ rotations: 60, spurious: 0, zombies: 0 });
  expect(outcome.calls).toBeGreaterThan(60);
});

test("an overlap of one second ends after one second, also for a secret in the cache", async () => {
  const { body: key } = await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"], environment: "live" } });
  const use = async (token: string) => (await daemon.call("GET", `/v1/keys/${key.id}`, { token })).status;
  expect(await use(key.secret)).toBe(200);
  const started = Date.now();
  await daemon.call("POST", `/v1/keys/${key.id}/roll`, { body: { overlap_s: 1 } });
  for (;;) {
    const status = await use(key.secret);
    // Only what was answered before the end says anything about the overlap, however slow the machine is.
    if (Date.now() - started >= 1_000) break;
    expect(status).toBe(200);
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await use(key.secret)).toBe(401);
});

test("what another replica revoked is refused within a second", async () => {
  const { body: key } = await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"], environment: "live" } });
  const use = async () => (await daemon.call("GET", "/v1/keys?limit=1", { token: key.secret })).status;
  expect(await use()).toBe(200);
  // Past the authenticator's back, as another process over the same storage would.
  await daemon.app.storage.units.credential.revoke({ kind: "key", id: key.id, now: new Date().toISOString() });
  const revoked = performance.now();
  // A call that began a second later is refused; what was under way before may still be answered.
  let began = performance.now();
  while ((await use()) === 200) {
    expect(began - revoked).toBeLessThan(within(1_000));
    began = performance.now();
  }
});

test("a look-up that was under way when its key was revoked is not remembered, and nobody joins it any more", async () => {
  const { id, text, digest } = makeSecret("key", "live");
  const times = { created_at: "2026-11-21T12:00:00.000Z", expires_at: null };
  const key = { ...times, id: "key_1", kind: "key", environment: "live", tier: "starter", name: "k", scopes: "[]" };
  const asked: ((revoked_at: string | null) => void)[] = [];
  const authenticator = createAuthenticator({
    local: { local_token: "a", admin_key: "b", api_key: "c", gateway_token: "d" },
    units: {
      byId: () => Promise.reject(new Error("not asked for")),
      bySecret: async () => ({
        credential: { ...key, gateway: null, revoked_at: await new Promise((resolve) => asked.push(resolve)) },
        secret: { ...times, id, digest, credential: key.id, last_used_at: null },
      }),
    },
    accessTokens: { issue: () => Promise.reject(), verify: () => Promise.reject() },
    uses: { note: () => undefined, flush: async () => undefined, close: async () => undefined },
    clock: systemClock,
  });
  const call = async () => authenticator.authenticate({ authorization: `Bearer ${text}` }, { loopback: true });
  const before = call();
  authenticator.forget(key.id);
  const after = [call(), call()];
  asked[0]?.(null);
  expect(await before).toMatchObject({ id: key.id });
  after.push(call());
  expect(asked).toHaveLength(2);
  asked[1]?.("2026-11-21T12:00:01.000Z");
  for (const refused of await Promise.allSettled(after)) expect(refused).toMatchObject({ status: "rejected" });
});
