// The TypeScript SDK against a running daemon, and against its OpenAPI document.
import { createServer } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient, type Magic, MagicApiError, verifyWebhook, WebhookVerificationError } from "#client/index.ts";
import { sign } from "#daemon/integrations/webhooks/signature.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";
import { startReceiver, writeProject } from "./receiver.ts";

async function clients() {
  const receiver = await startReceiver();
  const root = temporaryFolder();
  writeProject(root, { egress: { allow_private: [receiver.address] } });
  const daemon = await startDaemon({ root });
  const seen = new Set<string>();
  const record: typeof fetch = (url, init) => {
    const path = new URL(String(url)).pathname.replace(/\/(conn|sync|run|wh|dlv)_[a-z0-9]+/g, "/{id}");
    seen.add(`${init?.method} ${path.replace("/connectors/salesforce", "/connectors/{id}")}`);
    return fetch(url, init);
  };
  const { body: key } = await daemon.call("POST", "/v1/keys", {
    ...{ name: "sdk", environment: "live", tier: "enterprise" },
    scopes: [
      "connectors:read",
      "connections:read",
      "connections:write",
      "syncs:read",
      "syncs:write",
      "syncs:trigger",
      "webhooks:read",
      "webhooks:write",
    ],
  });
  const baseUrl = daemon.app.url ?? "";
  const sandbox = createClient({ baseUrl, apiKey: daemon.app.credentials.api_key, fetch: record });
  const live = createClient({ baseUrl, apiKey: key.secret, fetch: record });
  return { daemon, receiver, sandbox, live, seen, baseUrl };
}

async function sync(magic: Magic, metadata = {}) {
  const [source, destination] = await Promise.all([
    magic.connections.create({ provider: "salesforce", metadata: { snake_case: 1, camelCase: 2, ...metadata } }),
    magic.connections.create({ provider: "postgres", config: { ssl_mode: "require" } }),
  ]);
  return magic.syncs.create({
    source: { connection: source.id, object: "Account" },
    destination: { connection: destination.id, table: "public.accounts" },
    onBadRecord: "fail",
  });
}

test("every operation of the API has a method, and every method an operation", async () => {
  const { daemon, receiver, sandbox, live, seen } = await clients();
  expect((await sandbox.connectors.get("salesforce")).configSchema).toHaveProperty("properties.instance_url");
  const made = await sync(sandbox);
  const run = await sandbox.runs.wait((await sandbox.syncs.trigger(made.id, { fullRefresh: true })).id);
  expect(run.recordsSynced).toBeGreaterThan(0);
  expect(await sandbox.syncs.get(made.id)).toMatchObject({
    recordsSynced: run.recordsSynced,
    onBadRecord: "fail",
    lastRun: { id: run.id },
  });
  const source = await sandbox.connections.get(made.source.connection);
  expect(source.metadata).toEqual({ snake_case: 1, camelCase: 2 });
  expect((await sandbox.connections.check(source.id)).health.latencyMs).toBeGreaterThan(0);
  expect((await sandbox.connections.objects(source.id)).data[0]).toMatchObject({
    primaryKey: ["Id"],
    cursorCandidates: ["SystemModstamp"],
  });
  expect((await sandbox.connections.update(source.id, { metadata: { camelCase: null } })).metadata).toEqual({
    snake_case: 1,
  });
  expect((await sandbox.syncs.runs(made.id)).data).toHaveLength(1);
  expect((await sandbox.runs.rejects(run.id)).data).toHaveLength(run.recordsRejected);
  expect((await sandbox.syncs.pause(made.id)).status).toBe("paused");
  expect((await sandbox.syncs.resume(made.id)).status).toBe("active");
  await expect(sandbox.runs.cancel(run.id)).rejects.toMatchObject({ status: 409, code: "conflict" });
  expect((await sandbox.syncs.list({ status: "active" })).hasMore).toBe(false);
  await sandbox.syncs.delete(made.id);
  await sandbox.connections.delete(source.id);

  const webhook = await live.webhooks.create({ url: receiver.url, events: ["sync.failed"] });
  const delivery = await live.webhooks.test(webhook.id);
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), 20_000);
  const { body, headers } = receiver.received[0] as (typeof receiver.received)[0];
  expect(verifyWebhook(body, headers, webhook.secret)).toMatchObject({ id: delivery.eventId, type: "webhook.test" });
  expect(() => verifyWebhook(`${body} `, headers, webhook.secret)).toThrow(WebhookVerificationError);
  await vi.waitFor(
    async () => expect((await live.webhooks.deliveries(webhook.id, { status: "succeeded" })).data).toHaveLength(1),
    20_000,
  );
  await live.webhooks.redeliver(webhook.id, delivery.id);
  expect((await live.webhooks.roll(webhook.id, { overlapS: 60 })).secret).not.toBe(webhook.secret);
  expect((await live.webhooks.get(webhook.id)).status).toBe("enabled");
  expect((await live.webhooks.update(webhook.id, { description: "x" })).description).toBe("x");
  expect((await live.webhooks.list()).data).toHaveLength(1);
  await live.webhooks.delete(webhook.id);
  const begun = await live.connections.startOAuth({
    ...{ provider: "salesforce", callbackUrl: "https://app.example.com/done" },
    config: { client_id: "x" },
  });
  expect(new URL(begun.authorizationUrl).searchParams.get("state")).toBe(begun.state);
  expect((await sandbox.connectors.list({ category: "crm" })).data.length).toBeGreaterThanOrEqual(3);
  await sandbox.connections.list();

  const document = await (await fetch(new URL("/openapi.json", daemon.app.url))).json();
  const { paths } = document as { paths: unknown };
  const operations = Object.entries(paths as Record<string, Record<string, { tags?: string[] }>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods)
        .filter(([, { tags }]) =>
          tags?.some((tag) => ["connectors", "connections", "syncs", "runs", "webhooks"].includes(tag)),
        )
        .map(([method]) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, "{id}")}`),
  );
  expect([...seen].sort()).toEqual(operations.filter((one) => !one.endsWith("/oauth/callback")).sort());
});

test("iterators walk through every page", async () => {
  const { sandbox } = await clients();
  for (let i = 0; i < 7; i++) await sandbox.connections.create({ provider: "postgres", name: `c${i}` });
  const names = [];
  for await (const { name } of sandbox.connections.iterate({ limit: 3 })) names.push(name);
  expect(names).toEqual(["c6", "c5", "c4", "c3", "c2", "c1", "c0"]);
  const [first] = (await sandbox.connections.list()).data.slice(-1);
  const ahead = [];
  for await (const one of sandbox.connections.iterate({ limit: 2, endingBefore: first?.id ?? "" }))
    ahead.push(one.name);
  expect(ahead).toEqual(["c1", "c2", "c3", "c4", "c5", "c6"]);
});

test("a refusal is a typed error with every wrong field", async () => {
  const { sandbox } = await clients();
  const error = await sandbox.syncs.create({ source: {}, destination: {} } as never).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(MagicApiError);
  expect(error).toMatchObject({
    status: 422,
    code: "validation_failed",
    retryable: false,
    requestId: expect.stringMatching(/^req_/),
  });
  expect((error as MagicApiError).errors.map(({ pointer }) => pointer)).toContain("/source/connection");
  await expect(sandbox.webhooks.list()).rejects.toMatchObject({ status: 403, code: "not_available_in_sandbox" });
});

test("a lost answer is asked for again under the same key, so that the call happens once", async () => {
  const { sandbox, baseUrl, daemon } = await clients();
  const keys: unknown[] = [];
  let attempts = 0;
  const lossy: typeof fetch = async (url, init) => {
    keys.push(new Headers(init?.headers).get("idempotency-key"));
    const answer = await fetch(url, init);
    if (++attempts < 3) throw new TypeError("connection reset");
    return answer;
  };
  const client = createClient({ baseUrl, apiKey: daemon.app.credentials.api_key, fetch: lossy });
  await client.connections.create({ provider: "postgres", name: "once" });
  expect(new Set(keys).size).toBe(1);
  expect(attempts).toBe(3);
  expect((await sandbox.connections.list()).data.filter(({ name }) => name === "once")).toHaveLength(1);
});

test("503 is retried after Retry-After, 500 is not, an absent daemon is connection_failed", async () => {
  let calls = 0;
  const server = createServer((request, response) => {
    calls++;
    if (request.url?.includes("broken")) response.writeHead(500).end("{}");
    else if (calls < 3) response.writeHead(503, { "retry-after": "0" }).end("{}");
    else response.end('{"id": "sync_x", "records_synced": 5}');
  });
  const { origin: baseUrl, close } = await listen(server);
  onTestFinished(close);
  const client = createClient({ baseUrl, apiKey: "k" });
  expect((await client.syncs.get("sync_x")).recordsSynced).toBe(5);
  expect(calls).toBe(3);
  await expect(client.syncs.get("broken")).rejects.toMatchObject({ status: 500 });
  expect(calls).toBe(4);
  const absent = createClient({ baseUrl: "http://127.0.0.1:9", apiKey: "k", maxRetries: 1 });
  await expect(absent.syncs.get("x")).rejects.toMatchObject({ status: 0, code: "connection_failed" });
});

test("a removal whose answer was lost has happened; a page of another server is an error; a key is needed; who waits can leave", async () => {
  const answers: [number, string][] = [
    [502, ""],
    [404, "{}"],
    [404, "{}"],
    [200, "<html>"],
  ];
  const answered: typeof fetch = async () => {
    const [status, body] = answers.shift() ?? [200, '{"id": "run_1", "status": "running"}'];
    return new Response(body, { status, headers: { "retry-after": "0" } });
  };
  const client = createClient({ baseUrl: "http://127.0.0.1:9", apiKey: "k", fetch: answered });
  await client.syncs.delete("sync_1");
  await expect(client.syncs.delete("sync_1")).rejects.toMatchObject({ status: 404 });
  await expect(client.syncs.get("sync_1")).rejects.toThrow("not of this API");
  const leave = new AbortController();
  const waiting = client.runs.wait("run_1", { intervalMs: 60_000, signal: leave.signal });
  setTimeout(() => leave.abort(new Error("enough")), 20);
  await expect(waiting).rejects.toThrow("enough");
  expect(() => createClient({ baseUrl: "http://127.0.0.1:9", apiKey: undefined })).toThrow("apiKey is missing");
});

test("without a secret nothing is trusted", () => {
  const headers = {
    "webhook-id": "m",
    "webhook-timestamp": "1000",
    "webhook-signature": sign("m", "1000", "{}", "whsec_"),
  };
  for (const secret of ["", "whsec_", undefined])
    expect(() => verifyWebhook("{}", headers, secret, 1_000_000)).toThrow("no secret");
});

test("an old, a future and an unsigned message are refused", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const body = '{"type": "x"}';
  const at = (seconds: number, signature = sign("msg_1", String(seconds), body, secret)) => ({
    "webhook-id": "msg_1",
    "webhook-timestamp": String(seconds),
    "webhook-signature": signature,
  });
  expect(verifyWebhook(body, at(1000), secret, 1_000_000)).toMatchObject({ id: "msg_1", type: "x" });
  expect(verifyWebhook(new TextEncoder().encode(body), new Headers(at(1000)), secret, 1_000_000).type).toBe("x");
  for (const headers of [at(600), at(1400), at(1000, "v1,AAAA"), at(1000, "v1a,x v2,y"), {}])
    expect(() => verifyWebhook(body, headers, secret, 1_000_000)).toThrow(WebhookVerificationError);
});
