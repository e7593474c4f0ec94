// Provider OAuth against a real authorization server.
import { mkdirSync, symlinkSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Provider from "oidc-provider";
import { expect, onTestFinished, test, vi } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { createEgress } from "#daemon/egress/egress.ts";
import { createCatalogue } from "#daemon/integrations/catalogue/catalogue.ts";
import { connectionSecrets } from "#daemon/integrations/connections/secret.ts";
import { createSharedTurns } from "#daemon/integrations/connections/shared-turns.ts";
import { createOAuth } from "#daemon/integrations/oauth/oauth.ts";
import { mayHaveAnswered, oauthProvider } from "#daemon/integrations/oauth/provider.ts";
import { openMasterKey } from "#daemon/secrets/master-key.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { createPresence, type Presence } from "#daemon/storage/presence.ts";
import { systemClock } from "#shared/clock.ts";
import { createTurns, type Turns } from "#shared/turns.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { writeProject } from "./receiver.ts";

const live = { live: true };

interface Server {
  readonly origin: string;
  readonly address: string;
  /** Forms that the token endpoint was asked with. */
  readonly grants: URLSearchParams[];
  readonly revoked: URLSearchParams[];
}

async function authorizationServer(redirectUri: () => string, accessTokenTtlS: number): Promise<Server> {
  const server = createServer();
  const { address, origin, close } = await listen(server);
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const info = vi.spyOn(console, "info").mockImplementation(() => {});
  const provider = new Provider(origin, {
    clients: [
      {
        client_id: "magic",
        client_secret: "client-secret-canary",
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        redirect_uris: [redirectUri()],
        token_endpoint_auth_method: "client_secret_post",
        application_type: "native",
      },
    ],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    ttl: { AccessToken: accessTokenTtlS, Interaction: 600, Session: 600, Grant: 600, IdToken: 600 },
    features: { revocation: { enabled: true }, devInteractions: { enabled: true } },
    findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    cookies: { keys: ["test"] },
  });
  warn.mockRestore();
  info.mockRestore();
  const grants: URLSearchParams[] = [];
  const revoked: URLSearchParams[] = [];
  provider.use(async (context, next) => {
    await next();
    const form = new URLSearchParams((context as { oidc?: { body?: Record<string, string> } }).oidc?.body ?? {});
    if (context.path === "/token") grants.push(form);
    if (context.path === "/token/revocation") revoked.push(form);
  });
  server.on("request", provider.callback());
  onTestFinished(close);
  return { origin, address, grants, revoked };
}

// A browser that logs in and consents: follows redirects within the server, submits its forms, stops at the first other origin.
async function browse(start: string, origin: string): Promise<string> {
  const cookies = new Map<string, string>();
  let [url, form]: [string, URLSearchParams | undefined] = [start, undefined];
  for (let step = 0; step < 20; step++) {
    if (!url.startsWith(origin)) return url;
    const answer: Response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form ? { method: "POST", body: form } : {}),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    form = undefined;
    if (location !== null) url = new URL(location, url).href;
    else {
      const page = await answer.text();
      const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
      if (action === undefined) throw new Error(`no form: ${page.slice(0, 500)}`);
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? "";
      url = new URL(action, url).href;
      form = new URLSearchParams({ prompt, login: "alice", password: "x" });
    }
  }
  throw new Error("too many steps");
}

async function setUp(accessTokenTtlS = 3600) {
  const root = temporaryFolder();
  writeProject(root, {});
  const daemon = await startDaemon({ root });
  const redirectUri = new URL("/v1/connections/oauth/callback", daemon.app.url).href;
  const server = await authorizationServer(() => redirectUri, accessTokenTtlS);
  writeProject(root, { egress: { allow_private: [server.address] } });
  await daemon.app.project.reload();
  const input = {
    ...{ provider: "salesforce", name: "CRM", callback_url: "https://app.example.com/done?keep=1" },
    config: {
      client_id: "magic",
      authorize_url: `${server.origin}/auth`,
      token_url: `${server.origin}/token`,
      revoke_url: `${server.origin}/token/revocation`,
    },
    ...{ credentials: { client_secret: "client-secret-canary" }, scopes: ["openid", "offline_access"] },
  };
  return { daemon, server, input, redirectUri };
}

async function authorize({ daemon, server, input }: { daemon: TestDaemon; server: Server; input: object }) {
  const started = await daemon.call("POST", "/v1/connections/oauth/start", input, live);
  expect(started.status).toBe(200);
  // OpenID Connect gives a refresh token only after consent.
  const callback = await browse(`${started.body.authorization_url}&prompt=consent`, server.origin);
  const answer = await fetch(callback, { redirect: "manual" });
  return {
    started,
    callback,
    status: answer.status,
    location: new URL(answer.headers.get("location") ?? "https://none"),
  };
}

test("a browser is sent to the provider with PKCE and comes back with a connection", async () => {
  const all = await setUp();
  const { started, callback, status, location } = await authorize(all);
  const asked = new URL(started.body.authorization_url).searchParams;
  expect(asked.get("code_challenge_method")).toBe("S256");
  expect(asked.get("state")).toBe(started.body.state);
  expect(status).toBe(302);
  expect(location.origin + location.pathname).toBe("https://app.example.com/done");
  expect(Object.fromEntries(location.searchParams)).toMatchObject({ keep: "1", status: "connected" });
  const { body } = await all.daemon.call(
    "GET",
    `/v1/connections/${location.searchParams.get("connection")}`,
    undefined,
    live,
  );
  expect(body).toMatchObject({ provider: "salesforce", name: "CRM", status: "connected", environment: "live" });
  expect(all.server.grants[0]?.get("code_verifier")).toMatch(/^[\w-]{43,128}$/);
  const audit = await all.daemon.call("GET", "/v1/audit?action=connections.oauth.callback");
  expect(audit.body.data).toMatchObject([{ environment: "live", outcome: "success", resource: body.id, status: 302 }]);

  const again = await fetch(callback, { redirect: "manual", headers: { accept: "text/html" } });
  expect(again.status).toBe(400);
  expect(all.server.grants).toHaveLength(1);
  const forged = await fetch(callback.replace(/state=[^&]+/, "state=forged"), { redirect: "manual" });
  expect(forged.status).toBe(400);

  expect((await all.daemon.call("DELETE", `/v1/connections/${body.id}`, undefined, live)).status).toBe(200);
  await vi.waitFor(() => expect(all.server.revoked).toHaveLength(1), 20_000);
  await all.daemon.close();
  const db = new DatabaseSync(`${all.daemon.root}/.magic/magic.db`);
  const dump =
    JSON.stringify(db.prepare("select * from connection").all()) +
    JSON.stringify(db.prepare("select * from oauth_state").all());
  db.close();
  expect(dump).not.toContain("client-secret-canary");
});

test("a refusal at the provider reaches the caller's callback; a sandbox caller is refused; settings that are missing are named", async () => {
  const all = await setUp();
  const { body } = await all.daemon.call("POST", "/v1/connections/oauth/start", all.input, live);
  const denied = await fetch(
    new URL(`/v1/connections/oauth/callback?error=access_denied&state=${body.state}`, all.daemon.app.url),
    { redirect: "manual" },
  );
  expect(new URL(denied.headers.get("location") ?? "").searchParams.get("error")).toBe("access_denied");
  const audit = await all.daemon.call("GET", "/v1/audit?action=connections.oauth.callback");
  expect(audit.body.data).toMatchObject([{ outcome: "failed", resource: null, status: 302 }]);
  expect(await all.daemon.call("POST", "/v1/connections/oauth/start", all.input)).toMatchObject({
    status: 403,
    body: { code: "not_available_in_sandbox" },
  });
  const bare = await all.daemon.call(
    "POST",
    "/v1/connections/oauth/start",
    { provider: "postgres", callback_url: "https://a.example" },
    live,
  );
  expect(bare.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
    "/config/authorize_url",
    "/config/token_url",
    "/config/client_id",
  ]);
  for (const callback_url of ["javascript:alert(1)", "/relative", "https://u:p@a.example"])
    expect(
      (await all.daemon.call("POST", "/v1/connections/oauth/start", { ...all.input, callback_url }, live)).status,
    ).toBe(422);
  const known = await all.daemon.call(
    "POST",
    "/v1/connections/oauth/start",
    { provider: "salesforce", callback_url: "https://a.example", config: { client_id: "x" } },
    live,
  );
  const config = { client_id: "x", token_url: "file:///etc/passwd" };
  const elsewhere = await all.daemon.call("POST", "/v1/connections/oauth/start", { ...all.input, config }, live);
  expect(elsewhere.body.errors).toContainEqual({
    ...{ pointer: "/config/token_url", code: "format" },
    detail: "must be an http or https URL without credentials",
  });
  expect(known.body.authorization_url).toMatch(/^https:\/\/login\.salesforce\.com\/services\/oauth2\/authorize\?/);
});

test("a Salesforce sandbox is authorized, and its tokens are asked for, at its own login host", async () => {
  const definition = await createCatalogue().oauth("salesforce");
  const at = (config: object) => oauthProvider(definition ?? {}, { client_id: "c", ...config }, {});
  const path = "/services/oauth2";
  expect(at({ login_host: "test.salesforce.com" })).toMatchObject({
    authorizeUrl: `https://test.salesforce.com${path}/authorize`,
    tokenUrl: `https://test.salesforce.com${path}/token`,
    revokeUrl: `https://test.salesforce.com${path}/revoke`,
  });
  expect(at({}).tokenUrl).toBe(`https://login.salesforce.com${path}/token`);
});

// Authorizations over a daemon's storage, without the daemon's own use of them.
function over(
  { app, home, root }: TestDaemon,
  address: string,
  id: string,
  { turns = createTurns(), storage = app.storage }: { turns?: Turns; storage?: typeof app.storage } = {},
) {
  const seal = (purpose: string) => createSealer(openMasterKey(home), purpose);
  const secrets = connectionSecrets(seal("connections"), () => undefined);
  const egress = createEgress({ allowPrivate: () => [address] });
  onTestFinished(() => egress.close());
  const oauth = createOAuth({
    ...{ storage, egress, secrets, root, sealer: seal("oauth"), turns },
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    definitionOf: async () => ({}),
    placeRules: async (provider) => ({ provider, manifest: null, oauth: {}, schema: {} }),
    origin: () => "http://127.0.0.1",
    onEvents: () => undefined,
  });
  const stored = async () => {
    const record = await storage.units.connection.get({ id, environment: "live" });
    if (record === null) throw new Error("gone");
    return record;
  };
  return { oauth, secrets, stored };
}

test("many users of an expired token share one refresh, whose rotated token is stored before it is used", async () => {
  // Access tokens live shorter than what counts as fresh: every use refreshes.
  const all = await setUp(30);
  const { location } = await authorize(all);
  const id = location.searchParams.get("connection") ?? "";
  const { oauth, secrets, stored } = over(all.daemon, all.server.address, id);
  const before = secrets.read(await stored()).credentials;
  const record = await stored();
  const used = await Promise.all(
    Array.from({ length: 20 }, async () => secrets.read(await oauth.fresh(record)).credentials),
  );
  expect(all.server.grants.filter((grant) => grant.get("grant_type") === "refresh_token")).toHaveLength(1);
  expect(new Set(used.map(({ access_token }) => access_token)).size).toBe(1);
  const after = secrets.read(await stored()).credentials;
  expect(after["refresh_token"]).not.toBe(before["refresh_token"]);
  expect(used[0]).toEqual(after);
  // The chain holds: what was rotated in is good for the next refresh.
  for (let i = 0; i < 3; i++) await oauth.fresh(await stored());
  expect((await stored()).status).toBe("connected");

  // A grant that the provider has withdrawn disables the connection.
  await oauth.revoke(await stored());
  await expect(oauth.fresh(await stored())).rejects.toMatchObject({ code: "upstream_error" });
  expect((await stored()).status).toBe("disabled");
});

test("a check of the connection uses a fresh token", async () => {
  const all = await setUp(30);
  const { location } = await authorize(all);
  await all.daemon.call("POST", `/v1/connections/${location.searchParams.get("connection")}/check`, {}, live);
  expect(all.server.grants.filter((grant) => grant.get("grant_type") === "refresh_token")).toHaveLength(1);
});

// A token endpoint that answers whatever a case wants, and what it was asked.
async function hostileServer() {
  const asked: URLSearchParams[] = [];
  const answers: ((response: ServerResponse) => void)[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      asked.push(new URLSearchParams(Buffer.concat(chunks).toString()));
      answers.shift()?.(response);
    });
  });
  const { address, origin, close } = await listen(server);
  onTestFinished(close);
  const root = temporaryFolder();
  writeProject(root, { egress: { allow_private: [address] }, secrets: { APP: "client-secret-canary" } });
  const daemon = await startDaemon({ root });
  const start = async (config: object = {}, more: object = {}) => {
    const { status, body } = await daemon.call(
      "POST",
      "/v1/connections/oauth/start",
      {
        ...{ provider: "postgres", callback_url: "https://app.example.com/done" },
        config: {
          ...{ client_id: "magic", url: "postgres://u@127.0.0.1:1/db" },
          ...{ authorize_url: `${origin}/auth`, token_url: `${origin}/token`, revoke_url: `${origin}/revoke` },
          ...config,
        },
        ...more,
      },
      live,
    );
    expect(status).toBe(200);
    return body.state as string;
  };
  const comeBack = async (query: Record<string, string>) => {
    const url = new URL(`/v1/connections/oauth/callback?${new URLSearchParams(query)}`, daemon.app.url);
    const answer = await fetch(url, { redirect: "manual" });
    const location = answer.headers.get("location");
    return { status: answer.status, to: Object.fromEntries(location ? new URL(location).searchParams : []) };
  };
  return { daemon, asked, answers, origin, start, comeBack };
}

const json =
  (body: unknown, status = 200) =>
  (response: ServerResponse) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

test("whatever a token endpoint answers, the caller's callback is told, and the state is used up", async () => {
  const { answers, asked, start, comeBack, daemon, origin } = await hostileServer();
  const good = json({ access_token: "a", token_type: "Bearer" });
  const cases: [string, (response: ServerResponse) => void, string][] = [
    [
      "HTML",
      (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hi"),
      "upstream_error",
    ],
    ["a server error", (response) => void response.writeHead(500).end("no"), "upstream_error"],
    ["a redirect", (response) => void response.writeHead(302, { location: `${origin}/else` }).end(), "upstream_error"],
    ["a reset", (response) => void response.destroy(), "upstream_error"],
    ["a reset within", (response) => void response.write('{"access_', () => response.destroy()), "upstream_error"],
    ["an array", json(["a"]), "upstream_error"],
    ["no token", json({ token_type: "Bearer" }), "upstream_error"],
    ["a token that is none", json({ access_token: { a: 1 } }), "upstream_error"],
    ["too much", (response) => void response.end(Buffer.alloc(2 * 1024 * 1024, 32)), "upstream_error"],
    ["a refusal", json({ error: "invalid_grant", error_description: "no" }, 400), "invalid_grant"],
    ["a long refusal", json({ error: "invalid_grant", error_description: "no".repeat(500_000) }, 400), "invalid_grant"],
    ["a wrong client", json({ error: "invalid_client" }, 401), "upstream_error"],
  ];
  for (const [name, answer, error] of cases) {
    const state = await start();
    answers.push(answer);
    expect(await comeBack({ state, code: "c" }), name).toMatchObject({ status: 302, to: { error } });
    expect(await comeBack({ state, code: "c" }), name).toMatchObject({ status: 400 });
  }
  expect(asked).toHaveLength(cases.length);

  // Who answers must be who was asked; an error and a missing code use the state up as well.
  for (const query of [{ code: "c", iss: "https://evil.example" }, { error: "access_denied" }, {}]) {
    const state = await start();
    expect((await comeBack({ state, ...query })).to).toMatchObject({ error: expect.any(String) });
    expect((await comeBack({ state, code: "c" })).status).toBe(400);
  }
  const named = await start({ issuer: `${origin}/tenant` });
  expect((await comeBack({ state: named, code: "c" })).to).toMatchObject({ error: "invalid_request" });
  expect(asked).toHaveLength(cases.length);
  for (const [config, iss] of [
    [{ issuer: `${origin}/tenant` }, `${origin}/tenant`],
    [{}, `${origin}/x`],
  ] as const) {
    const state = await start(config);
    answers.push(good);
    expect((await comeBack({ state, code: "c", iss })).to).toMatchObject({ status: "connected" });
  }
  // Whoever looks at a link before the browser follows it uses nothing up; any success will do, in JSON or as a form.
  const form = "access_token=a&expires_in=60&token_type=bearer";
  for (const answer of [
    json({ access_token: "a" }, 201),
    (response: ServerResponse) =>
      void response.writeHead(200, { "content-type": "application/x-www-form-urlencoded; charset=utf-8" }).end(form),
  ]) {
    const query = { state: await start(), code: "c" };
    const url = new URL(`/v1/connections/oauth/callback?${new URLSearchParams(query)}`, daemon.app.url);
    const looked = await fetch(url, { method: "HEAD", redirect: "manual" });
    expect([looked.status, looked.headers.get("allow")]).toEqual([405, "GET"]);
    answers.push(answer);
    expect((await comeBack(query)).to).toMatchObject({ status: "connected" });
  }
  // Two browsers with one state: one of them.
  const state = await start();
  answers.push(good, good);
  const both = await Promise.all([comeBack({ state, code: "c" }), comeBack({ state, code: "c" })]);
  expect(both.map(({ status }) => status).sort()).toEqual([302, 400]);
  for (const query of ["", "code=c", "state=", `state=a&state=b`, `state=${"x".repeat(600)}`]) {
    const { status } = await fetch(new URL(`/v1/connections/oauth/callback?${query}`, daemon.app.url));
    expect([400, 422], query).toContain(status);
  }
});

test("what a token endpoint was sent is not in what it is said to have answered", async () => {
  const { answers, asked, start, comeBack } = await hostileServer();
  const basic = Buffer.from("magic:client-secret-canary").toString("base64");
  for (const error of ["invalid_grant", "invalid_client"]) {
    const state = await start({}, { credentials: { client_secret: "client-secret-canary" } });
    answers.push((response) => {
      const quoted = `no: ${basic} ${asked.at(-1)}`;
      json(error === "invalid_grant" ? { error, error_description: quoted } : { error: quoted }, 400)(response);
    });
    const { to } = await comeBack({ state, code: "the-code-canary" });
    const said = String(to["error_description"]);
    expect(said).toContain("no: ");
    const verifier = String(asked.at(-1)?.get("code_verifier"));
    for (const secret of ["canary", verifier, basic]) expect(said).not.toContain(secret);
  }
});

test("a client's secret may be one of magic.yaml's, which no authorization URL shows", async () => {
  const { daemon, answers, asked, origin, comeBack } = await hostileServer();
  const urls = { authorize_url: `${origin}/auth`, token_url: `${origin}/token`, revoke_url: `${origin}/revoke` };
  const reference = (name: string) => `\${secret:${name}}`;
  const start = (config: object, client_secret = reference("APP")) => {
    const given = {
      provider: "postgres",
      callback_url: "https://app.example.com/done",
      credentials: { client_secret },
    };
    const body = { ...given, config: { client_id: "magic", ...urls, ...config } };
    return daemon.call("POST", "/v1/connections/oauth/start", body, live);
  };
  answers.push(json({ access_token: "a", refresh_token: "r", expires_in: 1 }), json({ access_token: "b" }), json({}));
  const { to } = await comeBack({ state: (await start({})).body.state, code: "c" });
  const path = `/v1/connections/${to["connection"]}`;
  await daemon.call("POST", `${path}/check`, {}, live);
  await daemon.call("DELETE", path, undefined, live);
  const sent = asked.map((form) => [form.get("grant_type"), form.get("client_secret")]);
  expect(sent).toEqual(["authorization_code", "refresh_token", null].map((grant) => [grant, "client-secret-canary"]));

  for (const config of [{ client_id: reference("APP") }, { authorize_url: `${origin}/auth?x=${reference("APP")}` }]) {
    const refused = await start(config);
    const pointer = `/config/${Object.keys(config)[0]}`;
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer }] } });
  }
  const missing = await start({}, reference("NONE"));
  expect((await comeBack({ state: missing.body.state, code: "c" })).to).toMatchObject({
    error: "invalid_request",
    error_description: `${reference("NONE")} is not set`,
  });
});

test("a key of the API names no file by way of an authorization that it may not name otherwise", async () => {
  const { daemon, answers, origin, comeBack } = await hostileServer();
  const scopes = ["connections:read", "connections:write"];
  const key = await daemon.call("POST", "/v1/keys", { name: "k", scopes, environment: "live", tier: "enterprise" });
  const start = (path: string, token?: string, connection?: string) => {
    const config = { path, client_id: "magic", authorize_url: `${origin}/auth`, token_url: `${origin}/token` };
    const body = { provider: "sqlite", callback_url: "https://app.example.com/done", config };
    const options = { live: true, ...(token && { token }) };
    return daemon.call("POST", "/v1/connections/oauth/start", { ...body, ...(connection && { connection }) }, options);
  };
  const finish = async (started: Awaited<ReturnType<typeof start>>) => {
    expect(started.status).toBe(200);
    answers.push(json({ access_token: "a" }));
    return (await comeBack({ state: started.body.state, code: "c" })).to["connection"] ?? "";
  };
  const own = ".magic/magic.db";
  expect(await start(own, key.body.secret)).toMatchObject({ status: 403, body: { code: "egress_blocked" } });
  const local = await finish(await start(own));
  expect(await start("data/../.magic/magic.db", key.body.secret, local)).toMatchObject({ status: 403 });

  // What lies in the data folder may lead elsewhere later.
  const made = await finish(await start("data/own.db", key.body.secret));
  mkdirSync(join(daemon.root, "data"));
  symlinkSync(join(daemon.root, own), join(daemon.root, "data", "own.db"));
  const checked = async (id: string) => (await daemon.call("POST", `/v1/connections/${id}/check`, {}, live)).body;
  expect((await checked(made)).health.message).toMatch(/is not below the project's data folder/);
  expect((await checked(local)).status).toBe("connected");
  // Once a key has had a hand in it, it stays so.
  await finish(await start("data/else.db", key.body.secret, local));
  await finish(await start("data/own.db", undefined, local));
  expect((await checked(local)).health.message).toMatch(/is not below the project's data folder/);
});

test("an authorized connection is pointed at another token endpoint only with the client's secret, and leaves its old tokens behind", async () => {
  const { daemon, answers, asked, origin, comeBack, start } = await hostileServer();
  const credentials = { client_secret: "client-secret-canary" };
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const connection = (await comeBack({ state: await start({}, { credentials }), code: "c" })).to["connection"];
  const path = `/v1/connections/${connection}`;
  const elsewhere = { token_url: `${origin}/elsewhere` };
  const patched = await daemon.call("PATCH", path, { config: elsewhere }, live);
  expect(patched.body).toMatchObject({ status: 422, detail: expect.stringContaining("magic connection authorize") });
  const pointers = [
    "/config/url",
    "/credentials/client_secret",
    "/credentials/access_token",
    "/credentials/refresh_token",
  ];
  expect(patched.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual(pointers.sort());

  const again = { provider: "postgres", callback_url: "https://app.example.com/done", connection };
  const anew = (body: object) => daemon.call("POST", "/v1/connections/oauth/start", { ...again, ...body }, live);
  expect((await anew({ config: elsewhere })).body).toMatchObject({
    status: 422,
    errors: [{ pointer: "/config/url" }, { pointer: "/credentials/client_secret" }],
  });
  const before = asked.length;
  const url = "postgres://u@127.0.0.1:1/db";
  const { state } = (await anew({ config: { ...elsewhere, url }, credentials })).body;
  // The new place gives no refresh token, in the hope of the old one.
  answers.push(json({ access_token: "a1", expires_in: 1 }));
  expect((await comeBack({ state, code: "c" })).to).toMatchObject({ status: "connected" });
  await daemon.call("POST", `${path}/check`, {}, live);
  expect(asked.slice(before).map((form) => form.get("refresh_token"))).toEqual([null]);
  expect((await anew({})).status).toBe(200);
});

test("what a refresh brings that was under way when the connection was pointed elsewhere is not kept", async () => {
  const { daemon, answers, asked, origin, comeBack, start } = await hostileServer();
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const path = `/v1/connections/${(await comeBack({ state: await start(), code: "c" })).to["connection"]}`;
  const { promise: reached, resolve: reach } = Promise.withResolvers<ServerResponse>();
  answers.push(reach);
  const checked = daemon.call("POST", `${path}/check`, {}, live);
  const held = await reached;
  const config = { token_url: `${origin}/elsewhere`, url: "postgres://u@127.0.0.1:1/db" };
  expect((await daemon.call("PATCH", path, { config, credentials: null }, live)).status).toBe(200);
  json({ access_token: "a1", refresh_token: "r1", expires_in: 1 })(held);
  await checked;
  const before = asked.length;
  await daemon.call("PATCH", path, { credentials: { oauth: true } }, live);
  await daemon.call("POST", `${path}/check`, {}, live);
  expect(asked.length).toBe(before);
});

test("a refresh keeps the token it has where no new one comes; ends are read as a number, a text, or not at all", async () => {
  const { answers, asked, start, comeBack, daemon } = await hostileServer();
  const first = { access_token: "a0", refresh_token: "r0", expires_in: "1" };
  answers.push(json(first));
  const { to } = await comeBack({ state: await start(), code: "c" });
  const refreshed = async (answer: object) => {
    const before = asked.length;
    answers.push(json(answer));
    await daemon.call("POST", `/v1/connections/${to["connection"]}/check`, {}, live);
    answers.length = 0;
    return asked.slice(before).map((form) => [form.get("grant_type"), form.get("refresh_token")]);
  };
  const by = (token: string) => [["refresh_token", token]];
  expect(await refreshed({ access_token: "a1", expires_in: 1 })).toEqual(by("r0"));
  expect(await refreshed({ access_token: "a2", expires_in: "soon", refresh_token: "" })).toEqual(by("r0"));
  expect(await refreshed({ access_token: "a3", refresh_token: "r1", expires_in: -5 })).toEqual(by("r0"));
  expect(await refreshed({ access_token: "a4", refresh_token: null })).toEqual(by("r1"));
  expect(await refreshed({ error: "temporarily_unavailable" })).toEqual(by("r1"));
  const status = async () =>
    (await daemon.call("GET", `/v1/connections/${to["connection"]}`, undefined, live)).body.status;
  expect([await refreshed({ error: "invalid_grant" }), await status()]).toEqual([by("r1"), "disabled"]);
  expect([await refreshed({ error: "invalid_grant" }), await status()]).toEqual([by("r1"), "disabled"]);
  expect(await refreshed({ access_token: "a5", expires_in: 1 })).toEqual(by("r1"));
  for (const refusal of [{ error: "bad_refresh_token" }, { ok: false, error: "invalid_refresh_token" }]) {
    await daemon.app.storage.units.connection.setHealth({
      ...{ id: to["connection"] ?? "", environment: "live", status: "connected", now: "2026-01-01T00:00:00.000Z" },
      health: { status: "healthy", checked_at: null, latency_ms: null, message: null },
    });
    expect([await refreshed(refusal), await status()]).toEqual([by("r1"), "disabled"]);
  }
  expect(await refreshed({ access_token: "a6", expires_at: "2100-01-01T00:00:00Z" })).toEqual(by("r1"));
  expect([await refreshed({}), await status()]).toEqual([[], "failed"]);
});

test("MAGIC_HTTP_REWRITE sends what is for a provider's token endpoint to loopback, as it does with its connector's requests", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.headers.host} ${request.url}`);
    json({ access_token: "a0", refresh_token: "r0" })(response);
  });
  const { origin, close } = await listen(server);
  onTestFinished(close);
  const daemon = await startDaemon({ env: { MAGIC_HTTP_REWRITE: `*=${origin}` } });
  const callback_url = "https://app.example.com/done";
  const config = { client_id: "magic" };
  const { body } = await daemon.call(
    "POST",
    "/v1/connections/oauth/start",
    { provider: "hubspot", callback_url, config },
    live,
  );
  const callback = new URL(`/v1/connections/oauth/callback?state=${body.state}&code=c`, daemon.app.url);
  const { headers } = await fetch(callback, { redirect: "manual" });
  expect(headers.get("location")).toContain("status=connected");
  expect(asked).toEqual(["api.hubapi.com /oauth/v1/token"]);
});

test("a token endpoint that is in a moment's trouble is asked again, one that refuses is not", async () => {
  const { answers, asked, start, comeBack, daemon } = await hostileServer();
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const { to } = await comeBack({ state: await start(), code: "c" });
  answers.push(json({}, 503), (response) => void response.writeHead(429, { "retry-after": "1" }).end());
  answers.push(json({ access_token: "a1", refresh_token: "r1", expires_in: 1 }));
  const check = () => daemon.call("POST", `/v1/connections/${to["connection"]}/check`, {}, live);
  await check();
  expect(asked.slice(1).map((form) => form.get("refresh_token"))).toEqual(["r0", "r0", "r0"]);
  answers.push(json({ error: "unauthorized_client" }, 400));
  expect((await check()).body.health.message).toMatch(/token endpoint refused: unauthorized_client$/);
  answers.push((response) => void response.writeHead(503, { "retry-after": "60" }).end());
  expect((await check()).body.health.message).toMatch(/token endpoint refused: answered 503$/);
  expect(asked.slice(4).map((form) => form.get("refresh_token"))).toEqual(["r1", "r1"]);
});

test("a connection that is authorized anew while its old grant is being refused stays authorized", async () => {
  const { answers, asked, start, comeBack, daemon, origin } = await hostileServer();
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const { to } = await comeBack({ state: await start(), code: "c" });
  const connection = to["connection"] ?? "";
  const callback_url = "https://app.example.com/done";
  const again = { provider: "postgres", callback_url, connection };
  const { state } = (await daemon.call("POST", "/v1/connections/oauth/start", again, live)).body;

  const { oauth, stored, secrets } = over(daemon, new URL(origin).host, connection);
  const { promise: refusing, resolve: refuse } = Promise.withResolvers<void>();
  answers.push((response) => void refusing.then(() => json({ error: "invalid_grant" }, 400)(response)));
  const stale = expect(oauth.fresh(await stored())).rejects.toMatchObject({ code: "upstream_error" });
  await vi.waitFor(() => expect(asked).toHaveLength(2), 20_000);
  answers.push(json({ access_token: "a1", refresh_token: "r1", expires_in: 3600 }));
  const back = oauth.callback({ state, code: "again" });
  // Time enough for it to come through, if nothing held it.
  await new Promise((resolve) => setTimeout(resolve, 200));
  refuse();
  await stale;
  expect((await back).location).toContain("status=connected");
  const record = await stored();
  expect([record.status, secrets.read(record).credentials["refresh_token"]]).toEqual(["connected", "r1"]);
});

test("what a refresh brought while storage was away is stored when it is back, and not asked for again", async () => {
  const { answers, asked, start, comeBack, daemon, origin } = await hostileServer();
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const { connection = "" } = (await comeBack({ state: await start(), code: "c" })).to;
  const { storage } = daemon.app;
  let away = true;
  const connections = new Proxy(storage.units.connection, {
    get: (units, name) =>
      away && name === "update"
        ? () => Promise.reject(new MagicError("storage_unavailable"))
        : Reflect.get(units, name),
  });
  const units = new Proxy(storage.units, {
    get: (all, name) => (name === "connection" ? connections : Reflect.get(all, name)),
  });
  const { oauth, stored, secrets } = over(daemon, new URL(origin).host, connection, { storage: { ...storage, units } });
  answers.push(json({ access_token: "a1", refresh_token: "r1", expires_in: 3600 }));
  await expect(oauth.fresh(await stored())).rejects.toMatchObject({ code: "storage_unavailable" });
  away = false;
  const { credentials } = secrets.read(await oauth.fresh(await stored()));
  expect(credentials).toMatchObject({ access_token: "a1", refresh_token: "r1" });
  expect(secrets.read(await stored()).credentials).toEqual(credentials);
  expect(asked).toHaveLength(2);
});

test("what a refresh brings for a connection that is deleted meanwhile is given back", async () => {
  const { answers, asked, start, comeBack, daemon } = await hostileServer();
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const { connection = "" } = (await comeBack({ state: await start(), code: "c" })).to;
  const { promise: gone, resolve: go } = Promise.withResolvers<void>();
  answers.push((response) => void gone.then(() => json({ access_token: "a1", refresh_token: "r1" })(response)));
  const checked = daemon.call("POST", `/v1/connections/${connection}/check`, {}, live);
  await vi.waitFor(() => expect(asked).toHaveLength(2), 20_000);
  for (let more = 0; more < 2; more++) answers.push(json({}));
  expect((await daemon.call("DELETE", `/v1/connections/${connection}`, undefined, live)).status).toBe(200);
  go();
  expect((await checked).status).toBe(404);
  expect(asked.slice(2).map((form) => form.get("token"))).toEqual(["r0", "r1"]);
});

test("what is granted anew for a connection that is deleted meanwhile is given back", async () => {
  const { answers, asked, start, comeBack, daemon } = await hostileServer();
  answers.push(json({ access_token: "a0" }));
  const { connection = "" } = (await comeBack({ state: await start(), code: "c" })).to;
  const state = await start({}, { connection });
  const { promise: gone, resolve: go } = Promise.withResolvers<void>();
  answers.push((response) => void gone.then(() => json({ access_token: "a1", refresh_token: "r1" })(response)));
  const back = comeBack({ state, code: "again" });
  await vi.waitFor(() => expect(asked).toHaveLength(2), 20_000);
  for (let more = 0; more < 2; more++) answers.push(json({}));
  expect((await daemon.call("DELETE", `/v1/connections/${connection}`, undefined, live)).status).toBe(200);
  go();
  expect((await back).to).toMatchObject({ error: "not_found" });
  expect(asked.slice(2).map((form) => form.get("token"))).toEqual(["a0", "r1"]);
});

test("a browser that comes back for a connection that was deleted is told so", async () => {
  const { answers, start, comeBack, daemon } = await hostileServer();
  answers.push(json({ access_token: "a0" }));
  const { connection = "" } = (await comeBack({ state: await start(), code: "c" })).to;
  const state = await start({}, { connection });
  answers.push(json({}));
  await daemon.call("DELETE", `/v1/connections/${connection}`, undefined, live);
  expect((await comeBack({ state, code: "again" })).to).toMatchObject({
    error: "validation_failed",
    error_description: `/connection: there is no connection ${connection} in this environment`,
  });
});

test("what a vendor tells of the account while it authorizes is kept, where the caller has not said it", async () => {
  const { answers, comeBack, daemon, origin } = await hostileServer();
  const authorized = async (provider: string, config: object, parameters: object, answer: object) => {
    const settings = { client_id: "magic", authorize_url: `${origin}/auth`, token_url: `${origin}/token`, ...config };
    const body = { provider, callback_url: "https://app.example.com/done", config: settings };
    const { state } = (await daemon.call("POST", "/v1/connections/oauth/start", body, live)).body;
    answers.push(json({ access_token: "a", ...answer }));
    const { to } = await comeBack({ state, code: "c", ...parameters });
    const { secrets, stored } = over(daemon, new URL(origin).host, to["connection"] ?? "");
    return secrets.read(await stored()).config;
  };
  const instance_url = "https://acme.my.salesforce.com";
  expect(await authorized("salesforce", {}, { instance_url: "https://evil.example" }, { instance_url })).toMatchObject({
    instance_url,
  });
  const own = { instance_url: "https://own.my.salesforce.com" };
  expect(await authorized("salesforce", own, {}, { instance_url })).toMatchObject(own);
  expect(await authorized("quickbooks", {}, { realmId: "1234" }, {})).toMatchObject({ realm_id: "1234" });
  expect(await authorized("quickbooks", {}, { realmId: "../x" }, { realmId: "9" })).not.toHaveProperty("realm_id");
});

test("a connection that is authorized at another account gets what the vendor tells of that one, and loses the old one's grant", async () => {
  const { answers, comeBack, daemon, origin } = await hostileServer();
  const callback_url = "https://app.example.com/done";
  const authorized = async (body: object, parameters: object, answer: object) => {
    const { state } = (await daemon.call("POST", "/v1/connections/oauth/start", { callback_url, ...body }, live)).body;
    answers.push(json({ access_token: "a", ...answer }));
    const { to } = await comeBack({ state, code: "c", ...parameters });
    expect(to).toMatchObject({ status: "connected" });
    return to["connection"] ?? "";
  };
  const settings = {
    config: { client_id: "magic", authorize_url: `${origin}/auth`, token_url: `${origin}/token` },
    credentials: { client_secret: "client-secret-canary" },
  };
  const readOf = async (id: string) => {
    const { secrets, stored } = over(daemon, new URL(origin).host, id);
    return secrets.read(await stored());
  };
  const [one, two] = ["https://one.my.salesforce.com", "https://two.my.salesforce.com"];
  const provider = "salesforce";
  // One that nothing was told of when it was authorized first.
  const connection = await authorized({ provider, ...settings }, {}, { refresh_token: "r0" });
  const again = (instance_url: string, config?: object) =>
    authorized({ provider, connection, ...(config && { config }) }, {}, { instance_url });
  await again(one);
  expect(await readOf(connection)).toMatchObject({
    config: { instance_url: one },
    credentials: { refresh_token: "r0", client_secret: "client-secret-canary" },
  });
  await again(two);
  const { config, credentials } = await readOf(connection);
  expect(config).toMatchObject({ instance_url: two });
  expect(credentials).toMatchObject({ client_secret: "client-secret-canary", access_token: "a" });
  expect(credentials).not.toHaveProperty("refresh_token");
  // Whoever said it, by whatever way, keeps it.
  const own = { instance_url: "https://own.my.salesforce.com" };
  const path = `/v1/connections/${connection}`;
  const body = { config: own, credentials: { client_secret: "x", access_token: "y" } };
  expect((await daemon.call("PATCH", path, body, live)).status).toBe(200);
  await again(one);
  expect((await readOf(connection)).config).toMatchObject(own);

  const books = await authorized({ provider: "quickbooks", ...settings }, { realmId: "1" }, {});
  await authorized({ provider: "quickbooks", connection: books }, { realmId: "2" }, {});
  expect((await readOf(books)).config).toMatchObject({ realm_id: "2" });
});

test("daemons that share a database use a refresh token once", async () => {
  const { answers, asked, start, comeBack, daemon, origin } = await hostileServer();
  answers.push(json({ access_token: "a0", refresh_token: "r0", expires_in: 1 }));
  const { to } = await comeBack({ state: await start(), code: "c" });
  const connection = to["connection"] ?? "";
  const { units } = daemon.app.storage;
  const turnsOf = (presence: Pick<Presence, "process" | "announce">) =>
    createSharedTurns({ units: units.idempotency, clock: systemClock, presence });
  const each = [1, 2].map(() => {
    const presence = createPresence({ units, dialect: "postgres" }, systemClock);
    onTestFinished(presence.close);
    return over(daemon, new URL(origin).host, connection, { turns: turnsOf(presence) });
  });
  // A third one was killed while it refreshed.
  await turnsOf({ process: "proc_killed", announce: async () => {} }).take(connection);
  const slow = json({ access_token: "a1", refresh_token: "r1", expires_in: 3600 });
  answers.push((response) => void setTimeout(slow, 200, response), json({ error: "invalid_grant" }, 400));
  const fresh = await Promise.all(each.map(async ({ oauth, stored }) => oauth.fresh(await stored())));
  expect(asked).toHaveLength(2);
  for (const record of fresh) expect(each[0]?.secrets.read(record).credentials["access_token"]).toBe("a1");
});

test("an answer may come from the site that was asked, or from the issuer that is named", async () => {
  const provider = (authorize_url: string, issuer?: string) =>
    oauthProvider(
      {},
      { authorize_url, token_url: "https://x.example/t", client_id: "c", ...(issuer && { issuer }) },
      {},
    );
  const xero = provider("https://login.xero.com/identity/connect/authorize");
  for (const iss of [undefined, "https://login.xero.com", "https://identity.xero.com"])
    expect(await mayHaveAnswered(xero, iss), iss).toBe(true);
  for (const iss of [
    "https://evil.com",
    "https://xero.com.evil.com",
    "http://identity.xero.com",
    "https://notxero.com",
    "",
  ])
    expect(await mayHaveAnswered(xero, iss), iss).toBe(false);
  for (const [asked, iss] of [
    ["https://10.0.0.1/a", "https://10.1.0.1"],
    ["https://login.bank.co.uk/a", "https://evil.co.uk"],
    ["https://mine.github.io/a", "https://yours.github.io"],
  ] as const)
    expect(await mayHaveAnswered(provider(asked), iss), iss).toBe(false);
  const named = provider("https://login.xero.com/authorize", "https://identity.xero.com");
  expect(
    await Promise.all(
      [undefined, "https://login.xero.com", "https://identity.xero.com"].map((iss) => mayHaveAnswered(named, iss)),
    ),
  ).toEqual([...[false, false, true]]);
});
