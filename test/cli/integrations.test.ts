// connection, sync, webhook, key, client and audit on the command line, against a daemon of their own: documents, exit codes, what goes on in the background.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { listen } from "#test/listen.ts";
import { createSandbox, type Outcome, program, type Sandbox } from "./magic.ts";

let box: Sandbox;
let url: string;
/** A port that is free, and that the daemon may send to. */
let port: number;
let provider: string;

beforeAll(async () => {
  box = createSandbox();
  provider = await serve((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ access_token: "at", refresh_token: "rt", expires_in: 3600 }));
  });
  const free = await listen(createServer());
  port = free.port;
  await free.close();
  const yaml = { version: 1, egress: { allow_private: [`127.0.0.1:${port}`, provider] } };
  writeFileSync(join(box.folder, "magic.yaml"), JSON.stringify(yaml));
  url = document(await box.magic(["daemon", "start", "--port", "0", "--json"]))["base_url"];
});
afterAll(async () => {
  for (const close of closing) await close();
  await box.dispose();
});

const closing: (() => Promise<void>)[] = [];

async function serve(listener: RequestListener): Promise<string> {
  const { address, close } = await listen(createServer(listener));
  closing.push(close);
  return address;
}

// biome-ignore lint/suspicious/noExplicitAny: documents of many kinds
function document({ code, stdout, stderr }: Outcome): any {
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

// biome-ignore lint/suspicious/noExplicitAny: documents of many kinds
const json = async (...args: string[]): Promise<any> => document(await box.magic([...args, "--json"]));

async function refused(...args: string[]) {
  const { code, stdout, stderr } = await box.magic([...args, "--json"]);
  expect(stdout, args.join(" ")).toBe("");
  return [code, JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "").code];
}

test("connections and syncs from the first to the last verb", async () => {
  const [crm, warehouse, live] = await Promise.all([
    json("connection", "create", "--provider", "salesforce", "--name", "CRM", "--metadata", '{"team":"a"}'),
    json("connection", "create", "--provider", "postgres", "--config", '{"url":"postgres://h/db"}'),
    json("connection", "create", "--provider", "salesforce", "--live"),
  ]);
  expect(crm).toMatchObject({ object: "connection", environment: "sandbox", status: "connected" });
  expect(live).toMatchObject({ environment: "live", status: "pending" });
  const [found, objects, checked, changed, other] = await Promise.all([
    json("connection", "list", "--provider", "salesforce"),
    json("connection", "objects", crm.id, "--limit", "1"),
    json("connection", "check", crm.id),
    json("connection", "update", warehouse.id, "--name", "DWH"),
    refused("connection", "get", live.id),
  ]);
  expect(found.data.map(({ id }: { id: string }) => id)).toEqual([crm.id]);
  expect(objects).toMatchObject({ object: "list", data: [{ primary_key: ["Id"] }], has_more: true });
  expect([checked.status, changed.name, other]).toEqual(["connected", "DWH", [4, "not_found"]]);

  expect((await box.magic(["sync", "list"])).stdout).toContain("--live lists the live ones");
  const ends = ["--source", `${crm.id}:Account`, "--destination", `${warehouse.id}:public.accounts`];
  const how = ["--name", "nightly", "--schedule", "0 * * * *", "--mode", "incremental"];
  const sync = await json("sync", "create", ...ends, ...how);
  expect((await box.magic(["sync", "list"])).stdout).toMatch(/ NAME .*\n.* nightly /);
  expect(sync).toMatchObject({ object: "sync", mode: "incremental", destination: { table: "public.accounts" } });
  const run = await json("sync", "trigger", sync.id, "--wait");
  expect(run).toMatchObject({ object: "run", status: "completed", rejects: expect.any(Array), error: null });
  const [shown, runs, watched] = await Promise.all([
    json("sync", "get", sync.id),
    json("sync", "runs", sync.id),
    json("sync", "watch", sync.id),
  ]);
  expect([shown.records_synced, runs.data.length, watched.id]).toEqual([run.records_synced, 1, run.id]);
  expect((await json("sync", "pause", sync.id)).status).toBe("paused");
  expect((await json("sync", "resume", sync.id)).status).toBe("active");

  await json("connection", "update", crm.id, "--metadata", '{"simulate":"run_failed"}');
  const failing = await box.magic(["sync", "trigger", sync.id, "--wait", "--json"]);
  expect([failing.code, JSON.parse(failing.stdout).status]).toEqual([8, "failed"]);
  expect(JSON.parse(failing.stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ exit_code: 8 });
  expect(await json("sync", "trigger", sync.id)).toMatchObject({ status: "failed" });

  expect(await json("connection", "delete", crm.id)).toMatchObject({ id: crm.id, deleted: true });
  expect(await refused("sync", "trigger", sync.id, "--wait")).toEqual([7, "connection_missing"]);
  expect(await json("sync", "delete", sync.id)).toMatchObject({ deleted: true });
});

test("a run that is waited for outlasts a restart of the daemon, and a rate limit for as long as that says", async () => {
  const run = { id: "run_1", sync: "sync_1", status: "queued", records_read: 0, records_rejected: 0, errors: [] };
  const rates = { throughput: { records_per_s: 0, bytes_per_s: 0 }, waiting_for: null };
  const answers = [
    [202, { ...run, ...rates }],
    null,
    [503, { code: "draining", detail: "The daemon is stopping.", status: 503 }],
    [429, { code: "rate_limited", detail: "Too many requests.", status: 429 }],
    [200, { ...run, ...rates, status: "completed", records_synced: 3 }],
  ] as const;
  const asked: number[] = [];
  const address = await serve((request, response) => {
    const answer = answers[asked.push(performance.now()) - 1];
    if (!answer) return request.socket.destroy();
    const limited = answer[0] === 429 ? { "retry-after": "0.4" } : {};
    const headers = { "content-type": "application/json", "x-request-id": "req_1", ...limited };
    response.writeHead(answer[0], headers).end(JSON.stringify(answer[1]));
  });
  const ended = await json("sync", "trigger", "sync_1", "--wait", "--url", `http://${address}`);
  expect([ended.status, ended.records_synced, asked.length]).toEqual(["completed", 3, 5]);
  expect((asked[4] as number) - (asked[3] as number)).toBeGreaterThan(390);
});

test("what a live sync's commands tell to run next is live too", async () => {
  const followed = Promise.withResolvers<void>();
  const rates = { throughput: { records_per_s: 0, bytes_per_s: 0 } };
  const address = await serve(({ method, url = "" }, response) => {
    if (url.startsWith("/v1/runs/")) followed.resolve();
    const isSync = method === "GET" && url.startsWith("/v1/syncs/");
    const run = { id: "run_1", sync: "sync_1", status: "running", records_read: 0, ...rates };
    response.writeHead(200, { "content-type": "application/json", "x-request-id": "req_1" });
    response.end(JSON.stringify(isSync ? { last_run: null } : run));
  });
  const there = ["--live", "--url", `http://${address}`];
  const rejects = await box.magic(["sync", "rejects", "sync_1", ...there]);
  expect(rejects.stderr).toContain("`magic sync trigger sync_1 --wait --live`");
  const waiting = start("sync", "trigger", "sync_1", "--wait", ...there);
  await followed.promise;
  waiting.interrupt();
  expect(await waiting.said(/`magic sync watch .*`/)).toBe("`magic sync watch sync_1 --live`");
});

test("what is refused ends with the exit code of its kind and nothing on stdout", async () => {
  const cases: [string[], number, string][] = [
    [["connection", "create", "--provider", "nonesuch"], 3, "validation_failed"],
    [["connection", "create"], 2, "usage"],
    [["sync", "create", "--source", "x", "--destination", "y"], 2, "usage"],
    [["webhook", "create", "--url", "https://example.com/", "--events", "sync.failed"], 5, "not_available_in_sandbox"],
    [["webhook", "create", "--url", "http://10.0.0.1/", "--events", "sync.failed", "--live"], 5, "egress_blocked"],
    [["connection", "create", "--provider", "salesforce", "--oauth"], 5, "not_available_in_sandbox"],
    [["connection", "create", "--provider", "salesforce", "--oauth", "--live"], 3, "validation_failed"],
  ];
  const found = await Promise.all(cases.map(([args]) => refused(...args)));
  expect(found).toEqual(cases.map(([, code, name]) => [code, name]));
});

test("a log that is followed ends with the last line that was asked for", async () => {
  expect(await json("logs", "--follow", "--since", "1h", "--limit", "2")).toHaveLength(2);
});

test("keys and clients from the first to the last verb, each call in an audit log that is whole", async () => {
  const [key, client, ...bad] = await Promise.all([
    json("key", "create", "--scopes", "syncs:read,connections:read", "--live", "--tier", "professional"),
    json("client", "create", "--scopes", "syncs:read", "--name", "ci"),
    refused("key", "create", "--scopes", "syncs:everything"),
    refused("client", "create"),
    refused("key", "roll", "key_none"),
    refused("audit", "list", "--limit", "0"),
  ]);
  expect(bad).toEqual([
    [3, "validation_failed"],
    [2, "usage"],
    [4, "not_found"],
    [2, "usage"],
  ]);
  expect(key).toMatchObject({ object: "key", environment: "live", tier: "professional" });
  expect(client).toMatchObject({ object: "client", environment: "sandbox", name: "ci", client_id: client.id });
  const asKey = { env: { MAGIC_URL: url, MAGIC_API_KEY: key.secret } };
  const [rolled, allowed, denied] = await Promise.all([
    json("client", "roll", client.id, "--overlap", "0"),
    box.magic(["sync", "list", "--json"], asKey),
    box.magic(["key", "list", "--json"], asKey),
  ]);
  expect(rolled.client_secret).not.toBe(client.client_secret);
  expect([document(allowed).object, denied.code, denied.stdout]).toEqual(["list", 5, ""]);
  const [revoked] = await Promise.all([json("key", "revoke", key.id), json("client", "revoke", client.id)]);
  expect(revoked).toMatchObject({ id: key.id });
  expect(await refused("key", "revoke", key.id)).toEqual([4, "not_found"]);
  expect((await box.magic(["sync", "list", "--json"], asKey)).code).toBe(5);

  const [entries, proof, exported] = await Promise.all([
    json("audit", "list", "--action", "keys.create", "--limit", "2"),
    json("audit", "verify"),
    box.magic(["audit", "export", "--output", "ndjson"]),
  ]);
  expect(entries.data.map(({ outcome }: { outcome: string }) => outcome).sort()).toEqual(["failed", "success"]);
  expect(proof).toMatchObject({ valid: true, problems: [] });
  const lines = exported.stdout.trimEnd().split("\n");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ object: "audit_entry" });
  expect(lines.length).toBeGreaterThanOrEqual(proof.entries - 5);
});

/** A command that goes on: `said` resolves with the first line of a stream that fits. */
function start(...args: string[]) {
  const child = spawn(process.execPath, [program, ...args], { cwd: box.folder, env: box.env });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  const listeners = new Set<() => void>();
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
    for (const listener of listeners) listener();
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    for (const listener of listeners) listener();
  });
  const said = (pattern: RegExp) =>
    new Promise<string>((resolve) => {
      const look = () => {
        const match = pattern.exec(stdout + stderr);
        if (match) resolve(match[1] ?? match[0]);
      };
      listeners.add(look);
      look();
    });
  const ended = new Promise<Outcome>((resolve) =>
    child.once("close", (code) => resolve({ code: code ?? -1, stdout, stderr })),
  );
  return { said, ended, interrupt: () => child.kill("SIGINT") };
}

test("webhook listen subscribes, verifies and prints what comes, and unsubscribes when it ends", async () => {
  const listening = start("webhook", "listen", "--live", "--port", String(port), "--output", "ndjson");
  const id = await listening.said(/"webhook":"(wh_\w+)"/);
  const delivery = await json("webhook", "test", id, "--live");
  expect(await listening.said(/"id":"(evt_\w+)"/)).toBe(delivery.event_id);
  await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: '{"type":"forged"}' });
  await listening.said(/forged/);
  const socket = connect(port, "127.0.0.1");
  socket.end("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf");
  await listening.said(/the body was broken off/);
  await expect
    .poll(async () => (await json("webhook", "deliveries", id, "--live", "--status", "succeeded")).data.length, {
      timeout: 20_000,
    })
    .toBe(1);
  listening.interrupt();
  const { code, stdout } = await listening.ended;
  expect(code).toBe(130);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ type, verified }) => [type, verified])).toEqual([
    ["listening", undefined],
    ["event", true],
    ["event", false],
    ["event", false],
  ]);
  expect((await json("webhook", "list", "--live")).data).toEqual([]);
});

test("connection create --oauth waits for the browser; authorize does so again with what is there", async () => {
  const config = {
    client_id: "magic",
    authorize_url: `http://${provider}/auth`,
    token_url: `http://${provider}/token`,
  };
  const settings = ["--config", JSON.stringify(config), "--live", "--json"];
  const creating = start("connection", "create", "--provider", "salesforce", "--oauth", ...settings);
  const visit = async (asked: string, query: string) => {
    const { searchParams } = new URL(asked);
    expect(searchParams.get("code_challenge_method")).toBe("S256");
    // The provider's redirect, then the daemon's, to the command's own page.
    const path = `${url}/v1/connections/oauth/callback?state=${searchParams.get("state")}&${query}`;
    return (await fetch(path)).text();
  };
  expect(await visit(await creating.said(/(http:\S+\/auth\S+)/), "code=abc")).toContain("Connected");
  const connection = document(await creating.ended);
  expect(connection).toMatchObject({ provider: "salesforce", status: "connected", environment: "live" });

  const again = start("connection", "authorize", connection.id, "--live", "--json");
  expect(await visit(await again.said(/(http:\S+\/auth\S+)/), "error=access_denied")).toContain("Not connected");
  const { code, stdout, stderr } = await again.ended;
  expect([code, stdout]).toEqual([5, ""]);
  expect(JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
    code: "credentials_rejected",
    error: "access_denied",
  });

  const waiting = start("connection", "authorize", connection.id, "--live", "--json");
  await waiting.said(/http:\S+\/auth/);
  waiting.interrupt();
  expect((await waiting.ended).code).toBe(130);
});
