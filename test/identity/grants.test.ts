// Every operation of the document x every kind of caller: who has its scope gets past the guard, nobody else does, and what
// belongs to the other environment is not there.
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Scope, scopes } from "#contract/identity.ts";
import { type Answer, startDaemon, type TestDaemon } from "./daemon.ts";
import { type Operation, operationsOf } from "./operations.ts";

let daemon: TestDaemon;
let operations: Operation[];
const callers: { name: string; token: string | null; has: (scope: string) => boolean }[] = [];

beforeAll(async () => {
  daemon = await startDaemon();
  operations = operationsOf((await daemon.call("GET", "/openapi.json", { token: null })).body);
  const { api_key, admin_key, local_token, gateway_token } = daemon.app.credentials;
  const ordinary = (scope: string) => !/^(keys|clients|tokens|audit):/.test(scope);
  callers.push(
    { name: "nobody", token: null, has: () => false },
    { name: "a wrong key", token: "sk_live_wrong", has: () => false },
    { name: "the api key", token: api_key, has: ordinary },
    { name: "the admin key", token: admin_key, has: () => true },
    { name: "the local token", token: local_token, has: () => true },
    { name: "the gateway token", token: gateway_token, has: (scope) => scope === "gateway:use" },
  );
  const make = async (path: string, body: object) => (await daemon.call("POST", path, { body })).body;
  for (const environment of ["sandbox", "live"] as const) {
    for (const one of scopes) {
      const key = await make("/v1/keys", { scopes: [one], environment, tier: "enterprise" });
      callers.push({ name: `a ${environment} key of ${one}`, token: key.secret, has: (scope) => scope === one });
      const rest = scopes.filter((scope) => scope !== one) as Scope[];
      const but = await make("/v1/keys", { scopes: rest, environment, tier: "enterprise" });
      callers.push({
        name: `a ${environment} key of all but ${one}`,
        token: but.secret,
        has: (scope) => scope !== one,
      });
    }
    const client = await make("/v1/clients", { scopes: ["syncs:read", "keys:read"], environment, tier: "enterprise" });
    const { access_token } = await make("/v1/auth/token", client);
    callers.push({
      name: `a ${environment} access token`,
      token: access_token,
      has: (scope) => scope === "syncs:read" || scope === "keys:read",
    });
    const token = await make("/v1/gateway-tokens", { environment });
    callers.push({
      name: `a ${environment} gateway token`,
      token: token.secret,
      has: (scope) => scope === "gateway:use",
    });
  }
  const revoked = await make("/v1/keys", { scopes: [...scopes] });
  await daemon.call("DELETE", `/v1/keys/${revoked.id}`);
  callers.push({ name: "a revoked key", token: revoked.secret, has: () => false });
});
afterAll(() => daemon.close());

// An id that exists nowhere and a body that fits nothing: whoever passes the guard fails behind it and changes nothing. What
// would do something nevertheless is called with its environment's limit in mind.
async function probe({ method, path, parameters }: Operation, token: string | null): Promise<Answer> {
  let address = path;
  for (const name of parameters) address = address.replace(`{${name}}`, "none_00000000000000000000000000");
  const body = method === "POST" || method === "PATCH" || method === "PUT" ? { "\u0000unknown": true } : undefined;
  return daemon.call(method, address, { token, body, headers: { accept: "*/*" } });
}

test("scopes are granted to whom they belong, and to nobody else", async () => {
  const wrong: string[] = [];
  let checked = 0;
  for (const operation of operations) {
    if (operation.scope === null) continue;
    await Promise.all(
      callers.map(async ({ name, token, has }) => {
        const answer = await probe(operation, token);
        const code = answer.body?.code ?? answer.body?.error?.code;
        const where = `${name}: ${operation.method} ${operation.path} answered ${answer.status} ${code}`;
        checked++;
        if (answer.status >= 500) wrong.push(where);
        const known = token !== null && name !== "a wrong key" && name !== "a revoked key";
        if (!known && answer.status !== 401) wrong.push(where);
        const lacking = answer.status === 403 && code === "insufficient_scope";
        if (known && lacking === has(operation.scope ?? "")) wrong.push(where);
      }),
    );
  }
  expect(wrong).toEqual([]);
  expect(checked).toBeGreaterThan(1_000);
});

test("who may not ask for an id is refused, and who may is told that there is none, however long it is", async () => {
  const { api_key, local_token } = daemon.app.credentials;
  for (const length of [513, 15_000])
    for (const path of ["/v1/keys/", "/v1/traces/", "/v1/controllers/"]) {
      const ask = async (token: string | null) =>
        (await daemon.call("GET", path + "x".repeat(length), { token })).status;
      expect([path, await ask(null), await ask(local_token)]).toEqual([path, 401, 404]);
      if (path === "/v1/keys/") expect(await ask(api_key)).toBe(403);
    }
});

test("public operations are public, whatever credential comes along", async () => {
  for (const operation of operations.filter(({ scope }) => scope === null))
    for (const token of [null, "sk_live_wrong"]) {
      const { status } = await probe(operation, token);
      if (!operation.path.endsWith("/auth/token")) expect([401, 403, 500], operation.path).not.toContain(status);
    }
});

test("a resource of the other environment is 404, by every way to it", async () => {
  // Of its own: the sandbox of the other one has been called as often as it may.
  const own = await startDaemon();
  onTestFinished(() => own.close());
  const make = async (path: string, body: object, environment: string) =>
    (await own.call("POST", path, { body, headers: { "magic-environment": environment } })).body;
  const environments = ["sandbox", "live"] as const;
  for (const environment of environments) {
    const key = await make("/v1/keys", { scopes: [...scopes], tier: "enterprise" }, environment);
    const other = environment === "sandbox" ? "live" : "sandbox";
    const { data: catalogue } = (await own.call("GET", "/v1/connectors?limit=1")).body;
    const connection = await make("/v1/connections", { provider: catalogue[0].id }, other);
    const ends = {
      source: { connection: connection.id, object: "o" },
      destination: { connection: connection.id, table: "t" },
    };
    const ids: Readonly<Record<string, string>> = {
      connections: connection.id,
      syncs: (await make("/v1/syncs", ends, other)).id ?? "sync_none",
      webhooks:
        (await make("/v1/webhooks", { url: "https://example.com/hook", events: ["sync.failed"] }, other)).id ??
        "wh_none",
      keys: (await make("/v1/keys", { scopes: ["keys:read"] }, other)).id,
      clients: (await make("/v1/clients", { scopes: ["keys:read"] }, other)).id,
      "gateway-tokens": (await make("/v1/gateway-tokens", {}, other)).id,
    };
    for (const { method, path, parameters } of operations) {
      const noun = path.split("/")[2] ?? "";
      if (parameters.length !== 1 || !ids[noun]) continue;
      // To the sandbox there are no webhooks at all.
      if (environment === "sandbox" && noun === "webhooks") continue;
      const answer = await own.call(method, path.replace(/\{.*\}/, ids[noun]), {
        token: key.secret,
        ...((method === "POST" || method === "PATCH") && { body: {} }),
      });
      expect([answer.status, answer.body.code], `${method} ${path}`).toEqual([404, "not_found"]);
    }
    // Callers choose request ids: the same one leads each to its own trace.
    await own.call("GET", "/v1/keys", { token: key.secret, headers: { "x-request-id": "order-1" } });
    const trace = () => own.call("GET", "/v1/traces/order-1", { token: key.secret });
    await expect.poll(async () => (await trace()).status).toBe(200);
    expect((await trace()).body.spans).toMatchObject([{ attributes: { environment } }]);
  }
});

test("who sent no credential is not told that it is wrong, and who lacks a scope is told which", async () => {
  const challenge = async (token: string | null, headers = {}) =>
    (await daemon.call("GET", "/v1/keys", { token, headers })).headers.get("www-authenticate");
  expect(await challenge(null)).toBe('Bearer realm="magic"');
  expect(await challenge(null, { authorization: "Basic YTpi" })).toBe('Bearer realm="magic"');
  expect(await challenge("sk_live_wrong")).toBe('Bearer realm="magic", error="invalid_token"');
  expect(await challenge(daemon.app.credentials.api_key)).toBe(
    'Bearer realm="magic", error="insufficient_scope", scope="keys:read"',
  );
});
