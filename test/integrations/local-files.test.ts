// Whose connections may name which files.
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeDataFolder } from "#daemon/integrations/live/local-files.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";

test("a live key names files below the data folder only, by whatever way; the person at the machine any", async () => {
  const daemon = await startDaemon();
  const elsewhere = temporaryFolder();
  const outside = join(elsewhere, "people.csv");
  writeFileSync(outside, "id\n1\n");
  mkdirSync(join(daemon.root, "data"));
  writeFileSync(join(daemon.root, "data", "people.csv"), "id\n1\n");
  symlinkSync(elsewhere, join(daemon.root, "data", "link"));
  const scopes = ["connections:read", "connections:write"];
  const made = await daemon.call("POST", "/v1/keys", { name: "k", scopes, environment: "live", tier: "enterprise" });
  const token = made.body.secret;
  const create = (provider: string, config: object, as?: string) =>
    daemon.call("POST", "/v1/connections", { provider, config }, { live: true, ...(as ? { token: as } : {}) });
  for (const [provider, config] of [
    ["csv", { path: outside }],
    ["csv", { url: `file://${outside}` }],
    ["csv", { path: "data/../../people.csv" }],
    ["csv", { path: "data/link/people.csv" }],
    ["sqlite", { path: ".magic/magic.db" }],
    ["sqlite", { url: `sqlite:${daemon.root}/.magic/magic.db` }],
    ["postgres", { url: `sqlite://${daemon.root}/.magic/magic.db` }],
  ] as const)
    expect([config, await create(provider, config, token)]).toMatchObject([
      config,
      { status: 403, body: { code: "egress_blocked" } },
    ]);
  const own = await create("csv", { path: "data/people.csv" }, token);
  expect(own.status).toBe(201);
  const path = `/v1/connections/${own.body.id}`;
  expect((await daemon.call("POST", `${path}/check`, {}, { live: true, token })).body).toMatchObject({
    status: "connected",
  });
  // What lies there may lead elsewhere later.
  rmSync(join(daemon.root, "data", "people.csv"));
  symlinkSync(outside, join(daemon.root, "data", "people.csv"));
  const led = await daemon.call("POST", `${path}/check`, {}, { live: true, token });
  expect(led.body.health.message).toMatch(/is not below the project's data folder/);
  const moved = await daemon.call("PATCH", path, { config: { path: outside } }, { live: true, token });
  expect(moved.status).toBe(403);
  const local = await create("csv", { path: outside });
  expect((await daemon.call("POST", `/v1/connections/${local.body.id}/check`, {}, { live: true })).body).toMatchObject({
    status: "connected",
  });
});

test("what is missing of the data folder is made for a run, and nothing elsewhere", () => {
  const [root, elsewhere] = [temporaryFolder(), temporaryFolder()];
  makeDataFolder("data/new/orders.parquet", root);
  expect(existsSync(join(root, "data/new"))).toBe(true);
  symlinkSync(elsewhere, join(root, "data/link"));
  for (const url of [
    "other/orders.csv",
    "data/link/new/orders.csv",
    "data/../new/orders.csv",
    "postgres://h/data/new/x",
  ])
    makeDataFolder(url, root);
  for (const folder of [join(root, "other"), join(root, "new"), join(elsewhere, "new")])
    expect(existsSync(folder)).toBe(false);
});
