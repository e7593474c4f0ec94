// Webhooks from subscription to the receiver, and what happens when the receiver does not take them.
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate as immediately } from "node:timers/promises";
import { Webhook as Verifier } from "standardwebhooks";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDeliveries, defaultSettings } from "#daemon/integrations/webhooks/deliveries.ts";
import { sign, signedHeaders } from "#daemon/integrations/webhooks/signature.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";
import { type Received, startReceiver, writeProject } from "./receiver.ts";

const live = { live: true };
const events = ["sync.completed", "connection.failed"];

async function setUp(webhooks: Record<string, unknown> = {}, config: Parameters<typeof startDaemon>[0] = {}) {
  const receiver = await startReceiver();
  const root = temporaryFolder();
  writeProject(root, {
    egress: { allow_private: [receiver.address] },
    webhooks: { retry_schedule_s: [0, 0.05, 0.05], ...webhooks },
  });
  const daemon = await startDaemon({ root, ...config });
  const call: typeof daemon.call = (method, path, body, options) =>
    daemon.call(method, path, body, { ...live, ...options });
  const { status, body: webhook } = await call("POST", "/v1/webhooks", { url: receiver.url, events });
  expect(status).toBe(201);
  const delivered = async (id: string) => {
    // biome-ignore lint/suspicious/noExplicitAny: a document, looked into by tests
    let delivery: any;
    await vi.waitFor(async () => {
      const { body } = await call("GET", `/v1/webhooks/${webhook.id}/deliveries`);
      delivery = body.data.find((one: { id: string }) => one.id === id);
      expect(delivery.status).not.toBe("pending");
    }, 20_000);
    return delivery;
  };
  const verify = ({ body, headers }: Received, secret = webhook.secret) =>
    new Verifier(secret).verify(body, headers as Record<string, string>) as Record<string, unknown>;
  return { receiver, daemon, call, webhook, delivered, verify, path: `/v1/webhooks/${webhook.id}` };
}

test("the Standard Webhooks vector", () => {
  expect(
    sign(
      "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "1614265330",
      '{"test": 2432232314}',
      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ),
  ).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

test("a test event arrives signed, is listed, and is redelivered with the same id and body", async () => {
  const { receiver, call, webhook, delivered, verify, path } = await setUp();
  expect(webhook).toMatchObject({ object: "webhook", status: "enabled", events, environment: "live" });
  expect((await call("GET", path)).body).not.toHaveProperty("secret");
  const sent = await call("POST", `${path}/test`);
  expect(sent).toMatchObject({
    status: 202,
    body: { object: "delivery", status: "pending", event_type: "webhook.test", attempts: [] },
  });
  const done = await delivered(sent.body.id);
  expect(done).toMatchObject({
    status: "succeeded",
    response_code: 200,
    next_attempt_at: null,
    attempts: [{ response_code: 200, error: null }],
  });
  const [first] = receiver.received as [Received];
  expect(first.headers["webhook-id"]).toBe(sent.body.event_id);
  expect(verify(first)).toEqual(done.payload);
  expect((await call("POST", `${path}/deliveries/${sent.body.id}/redeliver`)).status).toBe(202);
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), 20_000);
  const second = receiver.received[1] as Received;
  expect([second.body, second.headers["webhook-id"]]).toEqual([first.body, first.headers["webhook-id"]]);
  await delivered(sent.body.id);
  expect((await call("GET", `${path}/deliveries?status=succeeded`)).body.data).toHaveLength(1);
  expect((await call("GET", `${path}/deliveries?status=failed`)).body.data).toEqual([]);
});

test("after a roll both secrets sign until the overlap ends, then the new one alone", async () => {
  const { receiver, call, delivered, verify, path, webhook } = await setUp();
  const { body: rolled } = await call("POST", `${path}/roll`, { overlap_s: 3600 });
  await delivered((await call("POST", `${path}/test`)).body.id);
  verify(receiver.received[0] as Received, webhook.secret);
  verify(receiver.received[0] as Received, rolled.secret);
  const { body: last } = await call("POST", `${path}/roll`, { overlap_s: 0 });
  await delivered((await call("POST", `${path}/test`)).body.id);
  verify(receiver.received[1] as Received, last.secret);
  for (const old of [webhook.secret, rolled.secret])
    expect(() => verify(receiver.received[1] as Received, old)).toThrow();
});

test("a webhook that is rolled by the minute still has headers that a server takes", async () => {
  const { receiver, call, delivered, verify, path, webhook } = await setUp();
  const secrets = [webhook.secret];
  for (let roll = 0; roll < 11; roll++) secrets.push((await call("POST", `${path}/roll`)).body.secret);
  await delivered((await call("POST", `${path}/test`)).body.id);
  const [received] = receiver.received as [Received];
  expect(String(received.headers["webhook-signature"]).split(" ")).toHaveLength(10);
  for (const secret of secrets.slice(-10)) verify(received, secret);
});

test("a secret whose overlap has ended signs no more", () => {
  const secrets = [
    { secret: "whsec_bmV3", expires_at: null },
    { secret: "whsec_b2xk", expires_at: 2000 },
  ];
  const signatures = (at: number) => signedHeaders("evt_1", at, "{}", secrets)["webhook-signature"]?.split(" ").length;
  expect([signatures(1999), signatures(2000)]).toEqual([2, 1]);
});

test("failures are tried again by the schedule; a redirect, a hang and a refusal are failures", async () => {
  const { receiver, call, delivered, path } = await setUp({ retry_schedule_s: [0, 0.05, 0.05, 0.05], timeout_s: 0.2 });
  const answers: ReturnType<typeof receiver.answer>[] = [
    { status: 302, headers: { location: receiver.url } },
    "hang",
    { status: 503 },
    { status: 204 },
  ];
  receiver.answer = () => answers.shift() ?? { status: 500 };
  const { body } = await call("POST", `${path}/test`);
  const done = await delivered(body.id);
  expect(done).toMatchObject({ status: "succeeded", response_code: 204 });
  expect((done.attempts as { response_code: number | null }[]).map((one) => one.response_code)).toEqual([
    302,
    null,
    503,
    204,
  ]);
  expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
});

test("the status decides: an answer of a megabyte is one", async () => {
  const { receiver, call, delivered, path } = await setUp();
  receiver.answer = () => ({ status: 200, body: Buffer.alloc(1_000_000) });
  const done = await delivered((await call("POST", `${path}/test`)).body.id);
  expect(done).toMatchObject({ status: "succeeded", attempts: [{ response_code: 200, error: null }] });
});

test("a receiver that does not answer holds up its own deliveries only", async () => {
  const { receiver, daemon, call, webhook, delivered, path } = await setUp();
  const hanging = await startReceiver();
  hanging.answer = () => "hang";
  const allow_private = [receiver.address, hanging.address];
  writeProject(daemon.root, { egress: { allow_private }, webhooks: { retry_schedule_s: [0, 300], timeout_s: 60 } });
  await daemon.app.project.reload();
  const slow = (await call("POST", "/v1/webhooks", { url: hanging.url, events })).body.id;
  await Promise.all(Array.from({ length: 100 }, () => call("POST", `/v1/webhooks/${slow}/test`)));
  const sent = await call("POST", `${path}/test`);
  expect(await delivered(sent.body.id)).toMatchObject({ webhook: webhook.id, status: "succeeded" });
  expect((await call("GET", `/v1/webhooks/${slow}/deliveries?status=pending&limit=100`)).body.data).toHaveLength(100);
  // It is sent several at a time all the same.
  await vi.waitFor(() => expect(hanging.received.length).toBeGreaterThan(8), 20_000);
});

test("a webhook that always has something due leaves its place where others may wait for it, and keeps it else", async () => {
  let at = 0;
  const due = async () => [{ id: `dlv_${await immediately(at)}` }];
  const webhook = { dueDeliveries: due, get: async () => null, nextAttempt: async () => "1970-01-01T00:00:00.000Z" };
  let handle = async (_: object): Promise<unknown> => undefined;
  let places = 0;
  const jobs = {
    define: (_: string, options: { handle: typeof handle; concurrency: number }) =>
      ({ handle, concurrency: places } = options),
  };
  const tick = () => (at += 100);
  const clock = { now: tick, monotonic: tick };
  createDeliveries({ jobs, clock, storage: { units: { webhook } }, settings: () => defaultSettings } as never);
  const leaving = new AbortController();
  const begin = () => handle({ payload: { webhook: "wh_1" }, signal: leaving.signal });
  let left = false;
  const first = begin().finally(() => {
    left = true;
  });
  const until = (ms: number) => vi.waitFor(() => expect(at).toBeGreaterThan(ms), { interval: 1 });
  await until(20_000);
  expect(left).toBe(false);
  const others = Array.from({ length: places - 1 }, begin);
  expect(await first).toEqual({ runAgainAt: expect.any(Number) });
  leaving.abort();
  await Promise.all(others);
});

test("Retry-After is waited for", async () => {
  const { receiver, call, delivered, path } = await setUp();
  const answers = [{ status: 429, headers: { "retry-after": "1" } }];
  receiver.answer = () => answers.shift() ?? { status: 200 };
  await delivered((await call("POST", `${path}/test`)).body.id);
  expect((receiver.received[1]?.at ?? 0) - (receiver.received[0]?.at ?? 0)).toBeGreaterThanOrEqual(990);
});

test("410 disables at once, a delivery given up disables unless another came through, and it can be enabled again", async () => {
  const { receiver, call, delivered, path } = await setUp();
  receiver.answer = () => ({ status: 410 });
  await delivered((await call("POST", `${path}/test`)).body.id);
  expect(receiver.received).toHaveLength(1);
  expect((await call("GET", path)).body.status).toBe("disabled");
  expect((await call("PATCH", path, { status: "enabled" })).body.status).toBe("enabled");
  receiver.answer = () => ({ status: 500 });
  const { body } = await call("POST", `${path}/test`);
  expect(await delivered(body.id)).toMatchObject({ status: "failed", response_code: 500 });
  expect(receiver.received).toHaveLength(4);
  expect((await call("GET", path)).body.status).toBe("disabled");
  // Asked for, it goes out all the same, once: is the receiver well again?
  expect((await call("POST", `${path}/deliveries/${body.id}/redeliver`)).status).toBe(202);
  expect(await delivered(body.id)).toMatchObject({ status: "failed" });
  expect(receiver.received).toHaveLength(5);
  receiver.answer = () => ({ status: 200 });
  await call("POST", `${path}/deliveries/${body.id}/redeliver`);
  expect(await delivered(body.id)).toMatchObject({ status: "succeeded", event_id: body.event_id });
  expect((await call("GET", path)).body.status).toBe("disabled");
});

test("only what was subscribed to is sent: a failed check of a live connection", async () => {
  const { receiver, call, verify } = await setUp();
  const long = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, "\u{1f600}".repeat(450)]));
  const { body: connection } = await call("POST", "/v1/connections", { provider: "postgres", metadata: long });
  const { body: checked } = await call("POST", `/v1/connections/${connection.id}/check`);
  expect(checked).toMatchObject({ status: "failed", health: { status: "unhealthy" } });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), 20_000);
  expect(verify(receiver.received[0] as Received)).toMatchObject({
    type: "connection.failed",
    data: { connection: { id: connection.id } },
  });
  expect(Buffer.byteLength(receiver.received[0]?.body ?? "")).toBeLessThan(20_000);
  await call("POST", `/v1/connections/${connection.id}/check`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(receiver.received).toHaveLength(1);

  // Two at once find the same: it has failed once.
  await call("PATCH", `/v1/connections/${connection.id}`, { config: { port: 2 } });
  const check = () => call("POST", `/v1/connections/${connection.id}/check`);
  await Promise.all([check(), check(), check()]);
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), 20_000);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(receiver.received).toHaveLength(2);
});

test("an event of a connection with much to say of itself is below 20 kB, and its ids are whole", async () => {
  const { receiver, call } = await setUp();
  for (const letter of ["a", "漢", "\u0001"]) {
    const names = Array.from({ length: 50 }, (_, index) => String(index).padEnd(60, letter));
    const { body: connection } = await call("POST", "/v1/connections", {
      ...{ provider: "postgres", config: { url: "postgres://u@127.0.0.1:1/db" } },
      metadata: Object.fromEntries(names.map((name) => [name, letter.repeat(1000)])),
    });
    const before = receiver.received.length;
    await call("POST", `/v1/connections/${connection.id}/check`);
    await vi.waitFor(() => expect(receiver.received).toHaveLength(before + 1), 20_000);
    const [received] = receiver.received.slice(-1) as [Received];
    expect(Buffer.byteLength(received.body)).toBeLessThan(20_000);
    expect(JSON.parse(received.body).data.connection).toMatchObject({ id: connection.id, status: "failed" });
  }
});

test("what a check found of settings that were changed meanwhile says nothing about the new ones", async () => {
  const { call, receiver, daemon } = await setUp();
  const held = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void held.close());
  await once(held, "listening");
  const url = (port: number) => `postgres://u@127.0.0.1:${port}/db`;
  const { port } = held.address() as AddressInfo;
  writeProject(daemon.root, { egress: { allow_private: [receiver.address, `127.0.0.1:${port}`] } });
  await daemon.app.project.reload();
  const { body: made } = await call("POST", "/v1/connections", { provider: "postgres", config: { url: url(port) } });
  const connected = once(held, "connection");
  const checked = call("POST", `/v1/connections/${made.id}/check`);
  const [socket] = (await connected) as [Socket];
  const { body: changed } = await call("PATCH", `/v1/connections/${made.id}`, { config: { url: url(1) } });
  expect(changed).toMatchObject({ status: "pending", health: { status: "unknown" } });
  socket.destroy();
  expect((await checked).body).toMatchObject({ status: "pending", health: { status: "unknown" } });
  expect(receiver.received).toHaveLength(0);
});

test("private destinations are refused, sandbox callers too, and the secret is in no file", async () => {
  const { call, daemon, webhook } = await setUp();
  for (const url of [
    "http://127.0.0.1:1/",
    "http://localhost/",
    "https://[::ffff:169.254.169.254]/",
    "http://10.0.0.1/x",
  ])
    expect(await call("POST", "/v1/webhooks", { url, events })).toMatchObject({
      status: 403,
      body: { code: "egress_blocked" },
    });
  for (const url of ["ftp://example.com/", "not a url", "https://u:p@example.com/"])
    expect((await call("POST", "/v1/webhooks", { url, events })).status).toBe(422);
  expect((await call("POST", "/v1/webhooks", { url: "https://example.com", events: ["odd"] })).status).toBe(422);
  for (const [method, path] of [
    ["GET", "/v1/webhooks"],
    ["POST", "/v1/webhooks"],
    ["GET", `/v1/webhooks/${webhook.id}`],
    ["POST", `/v1/webhooks/${webhook.id}/test`],
  ])
    for (const headers of [{}, { "content-type": "text/plain" }])
      expect(
        await daemon.call(method ?? "", path ?? "", method === "POST" ? {} : undefined, { headers }),
      ).toMatchObject({ status: 403, body: { code: "not_available_in_sandbox" } });
  expect((await call("DELETE", `/v1/webhooks/${webhook.id}`)).status).toBe(200);
  expect((await call("DELETE", `/v1/webhooks/${webhook.id}`)).status).toBe(404);
});
