// Provider OAuth against a real authorization server.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import Provider from "oidc-provider";
import { expect, onTestFinished, test, vi } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { connectionSecrets } from "#daemon/integrations/connections/secret.ts";
import { createOAuth } from "#daemon/integrations/oauth/oauth.ts";
import { openMasterKey } from "#daemon/secrets/master-key.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { createTurns } from "#shared/turns.ts";
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
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const origin = `http://${address}`;
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
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
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
  expect(known.body.authorization_url).toMatch(/^https:\/\/login\.salesforce\.com\/services\/oauth2\/authorize\?/);
});

test("many users of an expired token share one refresh, whose rotated token is stored before it is used", async () => {
  // Access tokens live shorter than what counts as fresh: every use refreshes.
  const all = await setUp(30);
  const { location } = await authorize(all);
  const id = location.searchParams.get("connection") ?? "";
  const { storage } = all.daemon.app;
  const sealer = createSealer(openMasterKey(all.daemon.home), "connections");
  const secrets = connectionSecrets(sealer, () => undefined);
  const egress = createEgress({ allowPrivate: () => [all.server.address] });
  onTestFinished(() => egress.close());
  const disabled: string[] = [];
  const oauth = createOAuth({
    ...{ storage, egress, secrets, sealer, turns: createTurns() },
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    definitionOf: async () => ({}),
    origin: () => "http://127.0.0.1",
    onDisabled: async (connection) => void disabled.push(connection.id),
  });
  const stored = async () => {
    const record = await storage.units.connection.get({ id, environment: "live" });
    if (record === null) throw new Error("gone");
    return record;
  };
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
  expect(disabled).toEqual([id]);
});

test("a check of the connection uses a fresh token", async () => {
  const all = await setUp(30);
  const { location } = await authorize(all);
  await all.daemon.call("POST", `/v1/connections/${location.searchParams.get("connection")}/check`, {}, live);
  expect(all.server.grants.filter((grant) => grant.get("grant_type") === "refresh_token")).toHaveLength(1);
});
