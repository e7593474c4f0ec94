// Keys, clients and gateway tokens over HTTP: made, rolled, revoked, and never more than their maker.
import { writeFileSync } from "node:fs";
import { Agent, get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { type Scope, scopes } from "#contract/identity.ts";
import { answerFor } from "#daemon/http/error-forms.ts";
import { publicUrlOf } from "#daemon/listening.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.close());

const admin = () => daemon.app.credentials.admin_key;
async function makeKey(body: object, token = admin()) {
  return daemon.call("POST", "/v1/keys", { token, body: { name: "test", ...body } });
}

describe("keys", () => {
  test("a new key shows its secret once, and works in its environment alone", async () => {
    const made = await makeKey({ scopes: ["keys:read"], environment: "live", tier: "enterprise" });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      object: "key",
      name: "test",
      scopes: ["keys:read"],
      environment: "live",
      tier: "enterprise",
      revoked_at: null,
      secrets: [{ last_used_at: null, expires_at: null }],
    });
    expect(made.body.secret).toMatch(/^sk_live_[0-9a-z]{26}_[0-9a-z]{52}$/);
    expect(made.headers.get("cache-control")).toBe("no-store");

    const sandbox = await makeKey({ scopes: ["keys:read"], environment: "sandbox" });
    expect(sandbox.body.secret).toMatch(/^sk_test_/);
    const own = await daemon.call("GET", `/v1/keys/${made.body.id}`, { token: made.body.secret });
    expect(own.status).toBe(200);
    expect(own.text).not.toContain(made.body.secret);
    const other = await daemon.call("GET", `/v1/keys/${sandbox.body.id}`, { token: made.body.secret });
    expect(other.status).toBe(404);
    const list = await daemon.call("GET", "/v1/keys?limit=100", { token: made.body.secret });
    expect(new Set(list.body.data.map((key: { environment: string }) => key.environment))).toEqual(new Set(["live"]));
  });

  test("callers that share a connection are told apart with every request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const statusFor = (authorization: string | undefined, path: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = authorization === undefined ? {} : { authorization };
        const answered = (answer: IncomingMessage) => {
          ports.add(answer.socket.localPort);
          answer.resume().on("end", () => resolve(answer.statusCode));
        };
        get(daemon.url + path, { agent, headers }, answered).on("error", reject);
      });
    const [{ body: one }, { body: other }] = [
      await makeKey({ scopes: ["keys:read"] }),
      await makeKey({ scopes: ["syncs:read"] }),
    ];
    const keys = "/v1/keys";
    for (let round = 0; round < 3; round++) {
      expect(await statusFor(`Bearer ${one.secret}`, keys)).toBe(200);
      expect(await statusFor(`bearer   ${one.secret}`, keys)).toBe(200);
      expect(await statusFor(`Bearer ${one.secret.slice(0, -1)}`, keys)).toBe(401);
      expect(await statusFor(`Bearer ${other.secret}`, keys)).toBe(403);
      expect(await statusFor(undefined, keys)).toBe(401);
      expect(await statusFor("Bearer ", keys)).toBe(401);
      expect(await statusFor(`Basic ${one.secret}`, keys)).toBe(401);
    }
    expect(await statusFor(`Bearer ${one.secret}`, keys)).toBe(200);
    await daemon.call("DELETE", `${keys}/${one.id}`);
    expect(await statusFor(`Bearer ${one.secret}`, keys)).toBe(401);
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  test("last_used_at says which secret is in use", async () => {
    const { body: key } = await makeKey({ scopes: ["keys:read"] });
    await daemon.call("GET", "/v1/keys", { token: key.secret });
    const { body } = await daemon.call("GET", `/v1/keys/${key.id}`, { token: admin() });
    expect(Date.parse(body.secrets[0].last_used_at)).toBeGreaterThan(Date.now() - 60_000);
  });

  test("a rolled key has two secrets until the overlap ends; an overlap of 0 ends the old one at once", async () => {
    const { body: key } = await makeKey({ scopes: ["keys:read"] });
    const use = (token: string) => daemon.call("GET", `/v1/keys/${key.id}`, { token });
    expect((await use(key.secret)).status).toBe(200);
    const rolled = await daemon.call("POST", `/v1/keys/${key.id}/roll`, { token: admin(), body: { overlap_s: 3600 } });
    expect(rolled.status).toBe(200);
    expect(rolled.body.secrets).toHaveLength(2);
    expect((await use(key.secret)).status).toBe(200);
    expect((await use(rolled.body.secret)).status).toBe(200);
    const again = await daemon.call("POST", `/v1/keys/${key.id}/roll`, { token: admin(), body: { overlap_s: 0 } });
    expect(again.body.secrets).toHaveLength(1);
    for (const old of [key.secret, rolled.body.secret]) {
      const refused = await use(old);
      expect(refused.status).toBe(401);
      expect(refused.body.code).toBe("expired");
      expect(refused.headers.get("www-authenticate")).toContain("Bearer");
    }
    expect((await use(again.body.secret)).status).toBe(200);
  });

  test("a roll without a body overlaps for a day, and one whose body is null is refused", async () => {
    const { body: key } = await makeKey({ scopes: ["keys:read"] });
    const rolled = await daemon.call("POST", `/v1/keys/${key.id}/roll`, { token: admin() });
    expect(rolled.status).toBe(200);
    const ends = rolled.body.secrets.map((secret: { expires_at: string | null }) => secret.expires_at);
    expect(ends[0]).toBeNull();
    expect(Date.parse(ends[1]) - Date.now()).toBeGreaterThan(86_000_000);
    const headers = { "content-type": "application/json" };
    const refused = await daemon.call("POST", `/v1/keys/${key.id}/roll`, { token: admin(), headers, body: "null" });
    expect([refused.status, refused.body.code]).toEqual([422, "validation_failed"]);
  });

  test("a revoked key is refused at once, and a second revocation finds nothing", async () => {
    const { body: key } = await makeKey({ scopes: ["keys:read"] });
    expect((await daemon.call("GET", "/v1/keys", { token: key.secret })).status).toBe(200);
    expect((await daemon.call("DELETE", `/v1/keys/${key.id}`)).status).toBe(204);
    const refused = await daemon.call("GET", "/v1/keys", { token: key.secret });
    expect([refused.status, refused.body.code]).toEqual([401, "invalid_key"]);
    expect((await daemon.call("DELETE", `/v1/keys/${key.id}`)).status).toBe(404);
    expect((await daemon.call("POST", `/v1/keys/${key.id}/roll`)).status).toBe(409);
    expect((await daemon.call("GET", `/v1/keys/${key.id}`)).body.revoked_at).not.toBeNull();
  });

  test("a key with an end is refused from then on", async () => {
    const soon = new Date(Date.now() + 1_000).toISOString();
    const { body: key } = await makeKey({ scopes: ["keys:read"], expires_at: soon });
    const use = async () => (await daemon.call("GET", "/v1/keys", { token: key.secret })).body.code;
    await expect.poll(use, { timeout: 20_000, interval: 100 }).toBe("expired");
  });

  test("an end that is over already is refused, for all three kinds", async () => {
    const expires_at = new Date(Date.now() - 1_000).toISOString();
    for (const [path, body] of [
      ["/v1/keys", { scopes: ["keys:read"] }],
      ["/v1/clients", { scopes: ["keys:read"] }],
      ["/v1/gateway-tokens", {}],
    ] as const) {
      const refused = await daemon.call("POST", path, { body: { ...body, expires_at } });
      expect([refused.status, refused.body.errors?.[0]?.pointer], path).toEqual([422, "/expires_at"]);
    }
  });

  test("pages go forwards and backwards, and a bad limit is refused", async () => {
    for (let i = 0; i < 5; i++) await makeKey({ scopes: ["keys:read"], name: `page ${i}` });
    const all = (await daemon.call("GET", "/v1/keys?limit=100")).body.data.map((key: { id: string }) => key.id);
    const first = (await daemon.call("GET", "/v1/keys?limit=2")).body;
    expect(first.data.map((key: { id: string }) => key.id)).toEqual(all.slice(0, 2));
    expect(first).toMatchObject({ object: "list", has_more: true, next_cursor: all[1] });
    const second = (await daemon.call("GET", `/v1/keys?limit=2&starting_after=${first.next_cursor}`)).body;
    expect(second.data.map((key: { id: string }) => key.id)).toEqual(all.slice(2, 4));
    const back = (await daemon.call("GET", `/v1/keys?limit=2&ending_before=${all[4]}`)).body;
    expect(back.data.map((key: { id: string }) => key.id)).toEqual(all.slice(2, 4));
    const further = (await daemon.call("GET", `/v1/keys?limit=2&ending_before=${back.next_cursor}`)).body;
    expect(further.data.map((key: { id: string }) => key.id)).toEqual(all.slice(0, 2));
    expect(further).toMatchObject({ has_more: false, next_cursor: null });
    const last = (await daemon.call("GET", `/v1/keys?limit=100&starting_after=${all.at(-1)}`)).body;
    expect(last).toMatchObject({ data: [], has_more: false, next_cursor: null });
    for (const limit of ["0", "101", "x", "Infinity", "-Infinity", "NaN", "1e400"])
      expect([400, 422]).toContain((await daemon.call("GET", `/v1/keys?limit=${limit}`)).status);
  });

  test("an end is a moment that can be reckoned with, and is shown in one form", async () => {
    for (const expires_at of ["2026-12-31T23:59:60Z", "2026-12-31 12:00:00Z", "tomorrow", "2026-02-30T00:00:00Z"])
      expect((await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"], expires_at } })).status).toBe(422);
    expect((await daemon.call("GET", "/v1/audit?since=2026-12-31T23:59:60Z")).status).toBe(422);
    const key = (
      await daemon.call("POST", "/v1/keys", {
        body: { scopes: ["keys:read"], expires_at: "2098-12-31t23:00:00+02:00" },
      })
    ).body;
    expect(key.expires_at).toBe("2098-12-31T21:00:00.000Z");
    // Which is in the year 10000 of UTC, and no text that sorts behind the others.
    const last = "9999-12-31T23:59:59-01:00";
    const { body: lasting } = await daemon.call("POST", "/v1/keys", {
      body: { scopes: ["keys:read"], expires_at: last },
    });
    expect(lasting.expires_at).toBe("9999-12-31T23:59:59.999Z");
    expect((await daemon.call("GET", `/v1/audit?since=${last}`)).body.data).toEqual([]);
    expect((await daemon.call("GET", "/v1/keys", { token: key.secret })).status).toBe(200);
  });
});

describe("a child never exceeds its maker", () => {
  const every: Scope[] = [...scopes];
  test.each([
    ["a scope more", { scopes: ["keys:write", "audit:read"] }],
    ["the other environment", { scopes: ["keys:write"], environment: "live" }],
    ["a higher tier", { scopes: ["keys:write"], tier: "enterprise" }],
  ])("%s is refused", async (_what, body) => {
    const { body: maker } = await makeKey({
      scopes: ["keys:read", "keys:write"],
      environment: "sandbox",
      tier: "starter",
    });
    const refused = await makeKey(body, maker.secret);
    expect([refused.status, refused.body.code]).toEqual([403, "insufficient_scope"]);
  });

  test("the same or less is made, with the maker's environment and tier by default", async () => {
    const { body: maker } = await makeKey({
      scopes: ["keys:read", "keys:write"],
      environment: "live",
      tier: "professional",
    });
    const child = await makeKey({ scopes: ["keys:read"] }, maker.secret);
    expect(child.status).toBe(201);
    expect(child.body).toMatchObject({ environment: "live", tier: "professional", scopes: ["keys:read"] });
  });

  test("a key with an end makes and rolls none that outlives it, and hands its end on", async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const scopes = ["keys:read", "keys:write"];
    const { body: maker } = await makeKey({ scopes, expires_at });
    expect((await makeKey({ scopes }, maker.secret)).body).toMatchObject({ expires_at });
    const sooner = new Date(Date.now() + 60_000).toISOString();
    expect((await makeKey({ scopes, expires_at: sooner }, maker.secret)).body).toMatchObject({ expires_at: sooner });
    const later = await makeKey({ scopes, expires_at: "2099-01-01T00:00:00Z" }, maker.secret);
    expect([later.status, later.body.code]).toEqual([403, "insufficient_scope"]);
    const { body: endless } = await makeKey({ scopes });
    const roll = (id: string) => daemon.call("POST", `/v1/keys/${id}/roll`, { token: maker.secret });
    expect([(await roll(endless.id)).status, (await roll(maker.id)).status]).toEqual([403, 200]);
  });

  test("a key that would roll a stronger one is refused, and one of the other environment is not found", async () => {
    const { body: weak } = await makeKey({ scopes: ["keys:read", "keys:write"], environment: "live", tier: "starter" });
    const { body: strong } = await makeKey({ scopes: ["audit:read"], environment: "live", tier: "starter" });
    const { body: high } = await makeKey({ scopes: ["keys:read"], environment: "live", tier: "enterprise" });
    const { body: sandbox } = await makeKey({ scopes: ["keys:read"] });
    const roll = (id: string) => daemon.call("POST", `/v1/keys/${id}/roll`, { token: weak.secret });
    expect((await roll(strong.id)).status).toBe(403);
    expect((await roll(high.id)).status).toBe(403);
    expect((await roll(sandbox.id)).status).toBe(404);
    expect((await roll(weak.id)).status).toBe(200);
  });

  test("the api key makes nothing; the admin key makes everything", async () => {
    const refused = await makeKey({ scopes: ["syncs:read"] }, daemon.app.credentials.api_key);
    expect([refused.status, refused.body.scope]).toEqual([403, "keys:write"]);
    expect((await makeKey({ scopes: every, environment: "live", tier: "enterprise" })).status).toBe(201);
  });
});

describe("clients and access tokens", () => {
  const token = (body: unknown, headers: Record<string, string> = {}) =>
    daemon.call("POST", "/v1/auth/token", { token: null, body, headers });

  test("JSON, a form and a Basic header give a token that works until its client is revoked", async () => {
    const { body: client } = await daemon.call("POST", "/v1/clients", {
      body: { name: "c", scopes: ["keys:read", "clients:read"], environment: "live", tier: "enterprise" },
    });
    expect(client).toMatchObject({ object: "client", client_id: client.id, environment: "live" });
    const { client_id, client_secret } = client;
    const json = await token({ client_id, client_secret });
    expect(json.status).toBe(200);
    expect(json.body).toMatchObject({ token_type: "Bearer", expires_in: 900, scope: "keys:read clients:read" });
    const form = await token(new URLSearchParams({ client_id, client_secret, scope: "keys:read" }).toString(), {
      "content-type": "application/x-www-form-urlencoded",
    });
    expect(form.body.scope).toBe("keys:read");
    const basic = await token(undefined, {
      authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`,
    });
    expect(basic.status).toBe(200);

    const use = (jwt: string, path = "/v1/keys") => daemon.call("GET", path, { token: jwt });
    expect((await use(json.body.access_token)).status).toBe(200);
    expect((await use(form.body.access_token, "/v1/clients")).body.code).toBe("insufficient_scope");
    await daemon.call("DELETE", `/v1/clients/${client.id}`);
    expect((await use(json.body.access_token)).status).toBe(401);
    expect((await token({ client_id, client_secret })).body.error).toBe("invalid_client");
  });

  test("a token does not outlive its client, and blanks ask for no scope", async () => {
    const expires_at = new Date(Date.now() + 120_000).toISOString();
    const { body } = await daemon.call("POST", "/v1/clients", { body: { scopes: ["syncs:read"], expires_at } });
    const { client_id, client_secret } = body;
    const answer = await daemon.call("POST", "/v1/auth/token", { body: { client_id, client_secret, scope: "  " } });
    expect(answer.body).toMatchObject({ scope: "syncs:read" });
    expect(answer.body.expires_in).toBeLessThanOrEqual(120);
  });

  test("the errors of the token endpoint are RFC 6749's", async () => {
    const { body: client } = await daemon.call("POST", "/v1/clients", { body: { name: "c", scopes: ["keys:read"] } });
    const { client_id, client_secret } = client;
    const cases: [unknown, number, string][] = [
      [{ client_id, client_secret: "cs_test_wrong" }, 401, "invalid_client"],
      [{ client_id: "client_other", client_secret }, 401, "invalid_client"],
      [{ client_id }, 401, "invalid_client"],
      [{}, 401, "invalid_client"],
      [{ client_id, client_secret, grant_type: "password" }, 400, "unsupported_grant_type"],
      [{ client_id, client_secret, scope: "keys:write" }, 400, "invalid_scope"],
      [{ client_id, client_secret, scope: '\\"é\u{1f4a5}\n' }, 400, "invalid_scope"],
      [{ client_id, client_secret: 5 }, 400, "invalid_request"],
      ["{broken", 400, "invalid_request"],
      [[1], 400, "invalid_request"],
    ];
    for (const [body, status, error] of cases) {
      const answer = await token(body);
      expect([answer.status, answer.body.error], JSON.stringify(body)).toEqual([status, error]);
      expect(answer.body.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/);
    }
    const basic = { authorization: `Basic ${btoa(`${client_id}:${client_secret}`)}` };
    expect((await token({ client_id }, basic)).status).toBe(200);
    expect((await token({ client_id: "client_other" }, basic)).body.error).toBe("invalid_request");
    expect(
      (await token(`client_id=${client_id}&client_id=x`, { "content-type": "application/x-www-form-urlencoded" }))
        .status,
    ).toBe(400);
    const text = await token(`client_id=${client_id}`, { "content-type": "text/plain" });
    expect([text.status, text.body.error]).toEqual([415, "invalid_request"]);
    expect(text.body.error_description).toMatch("application/json or application/x-www-form-urlencoded");
    // Told that its request is wrong, a client would give up.
    const unavailable = answerFor(new MagicError("storage_unavailable"), "oauth", "req_1");
    expect([unavailable.status, unavailable.body["error"]]).toEqual([503, "temporarily_unavailable"]);
  });

  test("the metadata names the token endpoint and the keys", async () => {
    const metadata = (await daemon.call("GET", "/.well-known/oauth-authorization-server", { token: null })).body;
    expect(metadata).toMatchObject({ issuer: daemon.url, token_endpoint: `${daemon.url}/v1/auth/token` });
    const jwks = (await daemon.call("GET", new URL(metadata.jwks_uri).pathname, { token: null })).body;
    expect(jwks.keys[0]).toMatchObject({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig" });
    expect(jwks.keys[0]).not.toHaveProperty("d");
  });
});

test("a public address of magic.yaml is the daemon's everywhere, and ends no token", async () => {
  const client = (await daemon.call("POST", "/v1/clients", { body: { scopes: ["syncs:read"] } })).body;
  const { access_token: before } = (await daemon.call("POST", "/v1/auth/token", { token: null, body: client })).body;
  const called = (path: string, host: string) =>
    new Promise<number | undefined>((resolve, reject) =>
      get(daemon.url + path, { headers: { host } }, (answer) => resolve(answer.resume().statusCode)).on(
        "error",
        reject,
      ),
    );
  const configure = async (settings: object) => {
    writeFileSync(join(daemon.root, "magic.yaml"), JSON.stringify({ version: 1, ...settings }));
    expect(await daemon.app.project.reload()).toBe(true);
  };
  expect(await called("/health", "magic.example.com")).toBe(403);

  await configure({ daemon: { public_url: "https://magic.example.com/" } });
  const metadata = (await daemon.call("GET", "/.well-known/oauth-authorization-server", { token: null })).body;
  expect(metadata).toMatchObject({
    issuer: "https://magic.example.com",
    token_endpoint: "https://magic.example.com/v1/auth/token",
  });
  const started = await daemon.call("POST", "/v1/connections/oauth/start", {
    headers: { "magic-environment": "live" },
    body: { provider: "hubspot", callback_url: "https://app.example.com/", config: { client_id: "c" } },
  });
  expect(new URL(started.body.authorization_url).searchParams.get("redirect_uri")).toBe(
    "https://magic.example.com/v1/connections/oauth/callback",
  );
  expect(await called("/health", "magic.example.com:443")).toBe(200);
  // A proxy on this machine is no caller of this machine.
  expect(await called("/metrics", "magic.example.com")).toBe(403);
  const { access_token: meanwhile } = (await daemon.call("POST", "/v1/auth/token", { token: null, body: client })).body;
  // Where the public name is this machine's own, its callers are.
  await configure({ daemon: { public_url: "http://localhost:8080" } });
  expect(await called("/metrics", "localhost:8080")).toBe(200);

  await configure({ daemon: { public_url: "https://[2001:DB8::1]" } });
  expect(await called("/health", "[2001:db8::1]:443")).toBe(200);
  expect(await called("/metrics", "[2001:db8::1]")).toBe(403);

  await configure({ auth: { issuer: "https://other.example.com" } });
  expect(await called("/health", "magic.example.com")).toBe(403);
  for (const token of [before, meanwhile]) expect((await daemon.call("GET", "/v1/syncs", { token })).status).toBe(200);
  await configure({});
});

test("a public address that a variable makes none is none", () => {
  const origin = (public_url: string) =>
    publicUrlOf({ current: () => ({ version: 1, daemon: { public_url } }) })?.origin;
  expect(origin("http://Magic.example.com:8080")).toBe("http://magic.example.com:8080");
  for (const value of ["", "magic.example.com:443", "https://h/magic", "https://u:p@h", "https://h:99999"])
    expect(origin(value)).toBeUndefined();
});

test("a gateway token carries its identity and reaches the gateway alone", async () => {
  const made = await daemon.call("POST", "/v1/gateway-tokens", {
    body: { user: "ada", team: "research", models: ["sandbox/*"], budget_usd: 5 },
  });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({ object: "gateway_token", user: "ada", project: null, budget_usd: 5 });
  expect(made.body.secret).toMatch(/^gt_test_/);
  expect((await daemon.call("GET", "/v1/models", { token: made.body.secret })).status).toBe(200);
  expect((await daemon.call("GET", "/v1/keys", { token: made.body.secret })).status).toBe(403);
  // Its id is no secret: messages and the audit log say which token it was.
  const { id } = made.body;
  expect((await daemon.call("DELETE", `/v1/gateway-tokens/${id}`)).status).toBe(204);
  expect((await daemon.call("POST", `/v1/gateway-tokens/${id}/roll`)).body.detail).toContain(id);
  const audit = await daemon.call("GET", "/v1/audit?action=gateway-tokens.delete");
  expect(audit.body.data[0]).toMatchObject({ resource: id });
});

test("credentials outlive a restart, access tokens too", async () => {
  const { body: key } = await makeKey({ scopes: ["keys:read"] });
  const { body: client } = await daemon.call("POST", "/v1/clients", { body: { scopes: ["keys:read"] } });
  const { body: jwt } = await daemon.call("POST", "/v1/auth/token", { token: null, body: client });
  const before = daemon.app.credentials;
  await daemon.restart();
  expect(daemon.app.credentials).toEqual(before);
  for (const token of [key.secret, jwt.access_token])
    expect((await daemon.call("GET", "/v1/keys", { token })).status).toBe(200);
});
