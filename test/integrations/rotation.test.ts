// Vendors that replace the refresh token at every use and refuse the old one for ever (Xero, QuickBooks): nothing may lose the grant.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "#test/temporary.ts";
import { rotatingManifest, rotatingVendor, startRotating, storedConnections } from "./rotation.ts";
import { ended, live, trigger } from "./runs.ts";

test("a rotated token is kept with the connection: shared by runs at the same time, found by the next run, and sealed", async () => {
  const { vendor, root, daemon, newSync } = await startRotating(true);
  const [one, two] = [await newSync("one"), await newSync("two")];
  const runs = await Promise.all([trigger(daemon, one), trigger(daemon, two)]);
  for (const run of runs) expect(await ended(daemon, run)).toMatchObject({ status: "completed", records_synced: 3 });
  expect(vendor).toMatchObject({ granted: 1, reused: 0 });
  vendor.expire();
  expect(await ended(daemon, await trigger(daemon, one))).toMatchObject({ status: "completed" });
  expect(vendor).toMatchObject({ granted: 2, reused: 0 });
  await daemon.close();
  expect(JSON.stringify(storedConnections(root))).not.toContain("canary");
}, 120_000);

test("a connection that was authorized in a browser outlives its access token, however its connector sends it", async () => {
  const { vendor, root, daemon, made, newSync } = await startRotating(true);
  const { origin } = vendor;
  const manifest = JSON.parse(rotatingManifest(origin, false));
  const api_token = "{{ config['access_token'] }}";
  const ways = {
    bearer: { type: "BearerAuthenticator", api_token },
    // It was not authorized there.
    oauth: { type: "OAuthAuthenticator", token_refresh_endpoint: `${origin}/elsewhere`, refresh_token: "none" },
  };
  for (const [provider, authenticator] of Object.entries(ways)) {
    manifest.streams[0].retriever.requester.authenticator = authenticator;
    writeFileSync(join(root, "connectors", `${provider}.yaml`), JSON.stringify(manifest));
    vendor.restart();
    const source = await made("/v1/connections", {
      provider,
      config: { client_id: "magic", authorize_url: `${origin}/authorize`, token_url: `${origin}/token` },
      credentials: { oauth: true, refresh_token: "refresh-canary-0", access_token: "refused", expires_at: 4e12 },
    });
    const [one, two] = [await newSync(`${provider}-one`, source), await newSync(`${provider}-two`, source)];
    for (const run of await Promise.all([trigger(daemon, one), trigger(daemon, two)]))
      expect(await ended(daemon, run), provider).toMatchObject({ status: "completed", records_synced: 3 });
    expect(vendor, provider).toMatchObject({ granted: 1, reused: 0 });
    vendor.expire();
    expect((await daemon.call("POST", `/v1/connections/${source}/check`, {}, live)).body.status).toBe("connected");
    expect(vendor, provider).toMatchObject({ granted: 2, reused: 0 });
  }
}, 120_000);

test("without a daemon the same configuration goes on working: the rotated token is kept, sealed, in the user's state folder", async () => {
  const vendor = await rotatingVendor();
  const home = temporaryFolder();
  const file = join(temporaryFolder(), "rotating.yaml");
  writeFileSync(file, rotatingManifest(vendor.origin, false));
  const read = async () => {
    const args = ["bin/magic.js", "connector", "read", file, "items", "--output", "ndjson"];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...args, "--config", '{"refresh_token": "refresh-canary-0"}'],
      { env: { ...process.env, MAGIC_HOME: home, MAGIC_HTTP_REWRITE: `*=${vendor.origin}`, CI: "1" } },
    );
    return stdout;
  };
  const first = await read();
  expect(first.match(/"type":"record"/g)).toHaveLength(3);
  vendor.expire();
  expect(await read()).toBe(first);
  expect(vendor).toMatchObject({ granted: 2, reused: 0 });

  // The vendor has forgotten what it gave: the token of the configuration is tried once more.
  vendor.restart();
  expect(await read()).toBe(first);
  expect(vendor).toMatchObject({ granted: 1, reused: 1 });
  const folder = join(home, "connector-tokens");
  const [grant, ...rest] = readdirSync(folder);
  expect(rest).toEqual(["master-key-fingerprint"]);
  expect(first + readFileSync(join(folder, String(grant)), "latin1")).not.toContain("canary");

  // Under another key the kept token would not be found, and the used-up one would be sent instead.
  rmSync(join(home, "master.key"));
  const { granted, reused } = vendor;
  await expect(read()).rejects.toThrow(/master_key_mismatch/);
  expect(vendor).toMatchObject({ granted, reused });
}, 120_000);
