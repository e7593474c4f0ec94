// Idempotency-Key on the core API: one effect a key, the same answer again, and honesty after a crash.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { canonicalJson } from "#contract/canonical-json.ts";
import { MagicError } from "#contract/errors.ts";
import { createIdempotency } from "#daemon/identity/idempotency/idempotency.ts";
import { fingerprintOf } from "#daemon/identity/idempotency/state.ts";
import { openMasterKey } from "#daemon/secrets/master-key.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { createPresence } from "#daemon/storage/presence.ts";
import { systemClock } from "#shared/clock.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.close());

const body = { name: "once", scopes: ["keys:read"] };
const post = (key: string, sent: unknown = body, options: { token?: string; path?: string } = {}) =>
  daemon.call("POST", options.path ?? "/v1/keys", {
    body: sent,
    headers: { "idempotency-key": key },
    ...(options.token && { token: options.token }),
  });
const keysNamed = async (name: string) =>
  (await daemon.call("GET", "/v1/keys?limit=100")).body.data.filter((one: { name: string }) => one.name === name)
    .length;

test("the second answer is the first, byte for byte, secret included, and nothing is made twice", async () => {
  const first = await post("twice", { ...body, name: "made twice" });
  const second = await post("twice", { ...body, name: "made twice" });
  expect([first.status, second.status]).toEqual([201, 201]);
  expect(second.text).toBe(first.text);
  expect(first.headers.has("idempotent-replayed")).toBe(false);
  expect(second.headers.get("idempotent-replayed")).toBe("true");
  for (const name of ["content-type", "cache-control"])
    expect(second.headers.get(name), name).toBe(first.headers.get(name));
  expect(second.headers.get("cache-control")).toBe("no-store");
  expect(await keysNamed("made twice")).toBe(1);
  const { data } = (await daemon.call("GET", `/v1/audit?request_id=${second.headers.get("x-request-id")}`)).body;
  expect(data).toMatchObject([{ action: "keys.create", resource: first.body.id, status: 201 }]);
});

test("the members' order makes no difference; another body, path or query does", async () => {
  await post("order");
  expect((await post("order", { scopes: ["keys:read"], name: "once" })).headers.get("idempotent-replayed")).toBe(
    "true",
  );
  const reused = await post("order", { ...body, name: "other" });
  expect([reused.status, reused.body.code]).toEqual([422, "idempotency_key_reused"]);
  expect((await post("order", body, { path: "/v1/clients" })).body.code).toBe("idempotency_key_reused");
});

test("what cannot be a key is refused before the body is looked at", async () => {
  const refused = await post("a b", {});
  expect([refused.status, refused.body.code]).toEqual([400, "idempotency_key_invalid"]);
});

test("a key belongs to its credential and its environment", async () => {
  await post("mine");
  const other = await post("mine", body, { token: daemon.app.credentials.admin_key });
  expect(other.headers.has("idempotent-replayed")).toBe(false);
  const live = await daemon.call("POST", "/v1/keys", {
    body,
    headers: { "idempotency-key": "mine", "magic-environment": "live" },
  });
  expect(live.headers.has("idempotent-replayed")).toBe(false);
});

test("of 50 at once one takes effect; the others get its answer or are told to wait", async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => post("crowd", { ...body, name: "crowd" })));
  expect(await keysNamed("crowd")).toBe(1);
  const ids = new Set<string>();
  for (const { status, body: answer } of answers)
    if (status === 201) ids.add(answer.id);
    else expect([status, answer.code, answer.retryable]).toEqual([409, "idempotency_in_progress", true]);
  expect(ids.size).toBe(1);
});

test("an answer outlives a restart", async () => {
  const first = await post("restart");
  await daemon.restart();
  const second = await post("restart");
  expect(second.text).toBe(first.text);
  expect(second.headers.get("idempotent-replayed")).toBe("true");
});

test("a request whose daemon died under it is reported as unknown, never done again", async () => {
  const { digest } = createSealer(openMasterKey(daemon.home), "idempotency");
  const fingerprint = digest(fingerprintOf("POST", "/v1/keys", { ...body, name: "crashed" }));
  const owner = "local - sandbox";
  const reserved = await daemon.app.storage.units.idempotency.reserve({
    id: "idem_crashed",
    owner,
    key: "crashed",
    fingerprint,
    process: "proc_dead",
    now: new Date().toISOString(),
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  });
  expect(reserved.state).toBe("reserved");
  const answer = await post("crashed", { ...body, name: "crashed" });
  expect([answer.status, answer.body.code]).toEqual([409, "idempotency_outcome_unknown"]);
  expect(await keysNamed("crashed")).toBe(0);
});

test("a refused request uses up no key; a handler's refusal is repeated", async () => {
  expect((await post("first-wrong", { scopes: [] })).status).toBe(422);
  expect((await post("first-wrong")).status).toBe(201);
  const forbidden = (token?: string) => post("refused", body, { token: token ?? daemon.app.credentials.api_key });
  expect((await forbidden()).status).toBe(403);
  const missing = () => post("missing", {}, { path: "/v1/keys/none/roll" });
  const [first, second] = [await missing(), await missing()];
  expect([first.status, second.status]).toEqual([404, 404]);
  expect(second.text).toBe(first.text);
  expect(second.headers.get("content-type")).toContain("application/problem+json");
});

test.each([
  ["", false],
  ["a".repeat(255), true],
  ["a".repeat(256), false],
  ["with space", false],
  ["tab\there", false],
  ["ümlaut", false],
  ["!~", true],
])("the key %j is valid: %s", async (key, valid) => {
  const answer = await post(key).catch(() => undefined);
  if (answer === undefined) return expect(valid).toBe(false);
  if (valid) expect(answer.status).toBe(201);
  else expect([answer.status, answer.body.code]).toEqual([400, "idempotency_key_invalid"]);
});

test("controllers take keys as well", async () => {
  const invoke = () => post("invoke", { input: {} }, { path: "/v1/controllers/none/invoke" });
  const [first, second] = [await invoke(), await invoke()];
  expect([first.status, second.status]).toEqual([404, 404]);
  expect(second.text).toBe(first.text);
  expect(second.headers.get("idempotent-replayed")).toBe("true");
});

test("answers are kept sealed: no secret stands in the database, and nothing to try one on", async () => {
  const { body: made } = await post("sealed");
  await daemon.app.close();
  const files = ["magic.db", "magic.db-wal"].map((name) => {
    try {
      return readFileSync(join(daemon.root, ".magic", name), "latin1");
    } catch {
      return "";
    }
  });
  expect(files.join("")).toContain(made.id);
  expect(files.join("")).not.toContain(made.secret.slice(-52));
  expect(files.join("")).not.toContain(fingerprintOf("POST", "/v1/keys", body));
  await daemon.restart();
});

test("a key that storage could not be told about is not taken for a day", async () => {
  const { idempotency: units } = daemon.app.storage.units;
  let away = true;
  const lost = () => new MagicError("storage_unavailable");
  const unlessAway =
    <A, R>(work: (args: A) => Promise<R>) =>
    async (args: A) => {
      if (away) throw lost();
      return work(args);
    };
  const idempotency = createIdempotency({
    units: {
      ...{ reserve: units.reserve, live: units.live, isAlive: units.isAlive, sweep: units.sweep },
      ...{ complete: unlessAway(units.complete), release: unlessAway(units.release) },
      abandon: unlessAway(units.abandon),
    },
    sealer: { seal: String, open: String, digest: String },
    clock: systemClock,
    presence: createPresence(daemon.app.storage, systemClock),
  });
  onTestFinished(() => idempotency.close());
  const begin = (key: string) =>
    idempotency.begin("key k live", key, "f").catch((error: MagicError) => error.code as string);
  const idOf = async (key: string) => ((await begin(key)) as { id: string }).id;
  const [done, refused, open] = [await idOf("done"), await idOf("refused"), await idOf("open")];
  await idempotency.complete(done, { status: 201, headers: {}, body: "made" });
  await idempotency.release(refused);
  await idempotency.abandon(open);
  for (const key of ["done", "refused", "open"]) expect(await begin(key), key).toBe("idempotency_in_progress");
  away = false;
  await vi.waitFor(async () => expect(await begin("open")).toBe("idempotency_outcome_unknown"), 10_000);
  expect(await begin("done")).toMatchObject({ replay: { body: "made" } });
  expect(await begin("refused")).toMatchObject({ id: expect.any(String) });
});

test("a change that storage may have kept or not is not made again by the same key; one that it has not kept is", async () => {
  const create = vi.spyOn(daemon.app.identity.credentials, "create");
  onTestFinished(() => create.mockRestore());
  create.mockRejectedValueOnce(new MagicError("storage_unavailable", "lost", { extra: { outcome: "unknown" } }));
  expect((await post("perhaps")).status).toBe(503);
  expect((await post("perhaps")).body).toMatchObject({ status: 409, code: "idempotency_outcome_unknown" });
  create.mockRejectedValueOnce(new MagicError("storage_unavailable"));
  expect((await post("surely-not")).status).toBe(503);
  expect((await post("surely-not")).status).toBe(201);
});

test("what has expired is swept as often as there is more", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const swept = vi.fn(async ({ limit }: { limit: number }) => (swept.mock.calls.length < 4 ? limit : 7));
  const units = { ...daemon.app.storage.units.idempotency, sweep: swept };
  const sealer = { seal: String, open: String, digest: String };
  const presence = createPresence(daemon.app.storage, systemClock);
  const idempotency = createIdempotency({ units, sealer, clock: systemClock, presence });
  onTestFinished(() => idempotency.close());
  vi.advanceTimersByTime(10 * 60_000);
  await vi.waitFor(() => expect(swept).toHaveBeenCalledTimes(4));
});

test("a daemon says that it lives as soon as the database is back: others charge and answer for those that do not", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let away = false;
  const live = vi.fn(async () => {
    if (away) throw new Error("away");
  });
  const units = { idempotency: { live } } as unknown as typeof daemon.app.storage.units;
  const presence = createPresence({ units, dialect: "postgres" }, systemClock);
  onTestFinished(() => presence.close());
  await presence.announce();
  away = true;
  await vi.advanceTimersByTimeAsync(60_000);
  away = false;
  live.mockClear();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(live).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(14_000);
  expect(live).toHaveBeenCalledTimes(1);
});

test("a canonical body is one text for one value", () => {
  expect(canonicalJson({ b: [{ d: 1, c: 2 }], a: null })).toBe('{"a":null,"b":[{"c":2,"d":1}]}');
  expect(fingerprintOf("POST", "/a", undefined)).not.toBe(fingerprintOf("POST", "/a", {}));
});
