// How requests prove who asks, where vendors differ.
import { decodeProtectedHeader, jwtVerify } from "jose";
import { expect, test } from "vitest";
import { json, manifest, read, vendor } from "./one-stream.ts";

/** What is sent to each path, by the first request there. */
async function sent(
  authenticator: (origin: string) => Record<string, unknown>,
  config: Record<string, unknown> = {},
): Promise<Record<string, { body: string; type: unknown; authorization: string; session: unknown }>> {
  const seen: Awaited<ReturnType<typeof sent>> = {};
  const origin = await vendor((request, response) => {
    const { authorization = "", "content-type": type, "x-session": session } = request.headers;
    seen[request.at.pathname] ??= { body: request.body, type, authorization, session };
    json(response, { items: [{ id: 1 }], access_token: "new", id: "s1" });
  });
  await read(manifest(origin, { requester: { authenticator: authenticator(origin) } }), { config });
  return seen;
}

const oauth = (origin: string) => ({
  ...{ type: "OAuthAuthenticator", client_id: "me", client_secret: "hush", refresh_token: "r" },
  token_refresh_endpoint: `${origin}/token`,
});
const key = "0123456789abcdef0123456789abcdef";
const signer = { type: "JwtAuthenticator", secret_key: key, algorithm: "HS256", jwt_payload: { iss: "me" } };

test("an access token of the configuration is used as long as it is known to last", async () => {
  const updater = (origin: string) => ({ ...oauth(origin), refresh_token_updater: {} });
  const credentials = { access_token: "held", refresh_token: "r" };
  const until = (token_expiry_date: string) => ({ credentials: { ...credentials, token_expiry_date } });
  expect((await sent(updater, until("2999-01-01T00:00:00Z")))["/items"]?.authorization).toBe("Bearer held");
  expect((await sent(updater, until("2001-01-01T00:00:00Z")))["/items"]?.authorization).toBe("Bearer new");
  const given = (origin: string) => ({ ...oauth(origin), access_token_value: "given" });
  expect((await sent(given))["/items"]?.authorization).toBe("Bearer new");
});

test("a refresh token that the vendor replaces stands where the reference looks for it; nested fields go as JSON", async () => {
  const seen = await sent(
    (origin) => {
      const { refresh_token: _elsewhere, ...rest } = oauth(origin);
      return { ...rest, refresh_token_updater: {}, refresh_request_body: { claims: { a: 1 } } };
    },
    { credentials: { refresh_token: "theirs" } },
  );
  const asked = new URLSearchParams(seen["/token"]?.body);
  expect([asked.get("refresh_token"), asked.get("claims")]).toEqual(["theirs", '{"a":1}']);
});

test("a refresh that goes as a query has no body, and says of none what it is", async () => {
  const seen = await sent((origin) => ({ ...oauth(origin), send_refresh_request_as_query_params: true }));
  expect(seen["/token"]).toMatchObject({ body: "", type: undefined });
});

test("a refresh token that the updater names goes and comes by that name; its client may stand beside it", async () => {
  const seen = await sent(
    (origin) => ({
      ...{ type: "OAuthAuthenticator", token_refresh_endpoint: `${origin}/token` },
      refresh_token_updater: { refresh_token_name: "renewal" },
    }),
    { credentials: { refresh_token: "theirs", client_id: "me", client_secret: "hush" } },
  );
  const asked = Object.fromEntries(new URLSearchParams(seen["/token"]?.body));
  expect(asked).toEqual({
    ...{ grant_type: "refresh_token", client_id: "me", client_secret: "hush" },
    renewal: "theirs",
  });
});

test.each(["True", "true"])("a switch of the configuration chooses, written as %s", async (written) => {
  const chosen = { type: "BearerAuthenticator", api_token: "chosen" };
  const seen = await sent(
    () => ({
      ...{ type: "SelectiveAuthenticator", authenticator_selection_path: ["own"] },
      authenticators: { [written]: chosen, no: { type: "NoAuth" } },
    }),
    { own: true },
  );
  expect(seen["/items"]?.authorization).toBe("Bearer chosen");
});

test("a way to authenticate that cannot run is refused where it is chosen, and keeps nobody from the others", async () => {
  const ways = {
    python: { type: "CustomAuthenticator", class_name: "source_shop.components.Signed" },
    slip: { ...oauth("https://api.test"), client_secret: "{{ config.secret) }}" },
    key: { type: "BearerAuthenticator", api_token: "{{ config.key }}" },
  };
  const choosing = (authenticators: Record<string, unknown>) => () => ({
    ...{ type: "SelectiveAuthenticator", authenticator_selection_path: ["by"], authenticators },
  });
  const seen = await sent(choosing(ways), { by: "key", key: "mine" });
  expect(seen["/items"]?.authorization).toBe("Bearer mine");
  await expect(sent(choosing(ways), { by: "python" })).rejects.toThrow("source_shop.components.Signed");
  await expect(sent(choosing(ways), { by: "slip" })).rejects.toThrow("expected '}}', got ')'");
  await expect(sent(choosing(ways))).rejects.toThrow("config.by must be one of slip, key; it is missing");
  await expect(sent(choosing({ python: ways.python }))).rejects.toThrow("source_shop.components.Signed");
});

test("what only a refresh needs is not looked at before there is one", async () => {
  const held = { type: "OAuthAuthenticator", access_token_value: "given", client_secret: "{{ config.secret) }}" };
  expect((await sent(() => held))["/items"]?.authorization).toBe("Bearer given");
  await expect(sent((origin) => ({ ...oauth(origin), ...held }))).rejects.toThrow("expected '}}', got ')'");
});

test("a token that ends again while a limit is waited out is renewed again", async () => {
  const answers = [401, 429, 401, 503, 401, 200];
  let issued = 0;
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/token") json(response, { access_token: `t${++issued}` });
    else json(response, { items: [{ id: 1 }] }, answers.shift());
  });
  const source = manifest(origin, { requester: { authenticator: oauth(origin) } });
  expect((await read(source, { waits: [] })).records).toEqual([{ id: 1 }]);
  expect(issued).toBe(4);
  answers.push(401, 401);
  await expect(read(source, { waits: [] })).rejects.toThrow("answered 401");
});

const now = Math.floor(Date.now() / 1000);
test.each([
  ["where a format says that a token's end is a moment, digits are one too", [now - 60, (now - 60) * 1000, now + 3600]],
  ["what cannot be a token's end is over, or a duration all the same", ["later", now - 60, 3600]],
])("%s", async (_name, ends) => {
  let issued = 0;
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/token") json(response, { access_token: "t", expires_in: ends[issued++] });
    else json(response, { items: [{ id: 1 }] });
  });
  const authenticator = { ...oauth(origin), token_expiry_date_format: "%Y-%m-%dT%H:%M:%SZ" };
  const partition_router = { type: "ListPartitionRouter", values: ["a", "b", "c", "d"], cursor_field: "p" };
  await read(manifest(origin, { requester: { authenticator }, retriever: { partition_router } }), { concurrency: 1 });
  expect(issued).toBe(3);
});

test("what the configuration lacks of a token is nothing", async () => {
  const lacking = (origin: string) => ({
    ...{ ...oauth(origin), access_token_value: "{{ config.get('token') }}", refresh_token_updater: {} },
    token_expiry_date: "{{ config.get('expires') }}",
  });
  expect((await sent(lacking))["/items"]?.authorization).toBe("Bearer new");
});

test("a token is asked for with a signed assertion, without client and refresh token", async () => {
  const seen = await sent((origin) => ({
    ...{ ...oauth(origin), scopes: ["a", "b"] },
    ...{ use_profile_assertion: true, profile_assertion: signer },
  }));
  const asked = new URLSearchParams(seen["/token"]?.body);
  expect([...asked.keys()]).toEqual(["grant_type", "assertion", "scopes", "scopes"]);
  expect(asked.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
  await jwtVerify(asked.get("assertion") ?? "", Buffer.from(key), { issuer: "me" });
});

test("a signed token stands alone unless the manifest says otherwise, and its key may lie within JSON", async () => {
  const secret_key = "{{ json_loads(config['account'])['key'] }}";
  const seen = await sent(() => ({ ...signer, secret_key }), { account: JSON.stringify({ key }) });
  const token = seen["/items"]?.authorization ?? "";
  expect(decodeProtectedHeader(token)).toEqual({ alg: "HS256", typ: "JWT" });
  await jwtVerify(token, Buffer.from(key));
});

test("a session is begun below the requester's base; an answer without its token is told as that", async () => {
  const session = {
    ...{ type: "LegacySessionTokenAuthenticator", header: "X-Session", login_url: "/session", session_token: "" },
    ...{ session_token_response_key: "id", username: "u", password: "p", validate_session_url: "/user" },
  };
  const elsewhere = { ...session, session_token_response_key: "token" };
  await expect(sent(() => elsewhere)).rejects.toThrow("the login answer has no token at token");
  const seen = await sent(() => session);
  expect(seen["/session"]?.body).toBe('{"username":"u","password":"p"}');
  expect(seen["/items"]?.session).toBe("s1");
});
