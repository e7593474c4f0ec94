// Stored credentials stay with the place that they were given for.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isMagicError } from "#contract/errors.ts";
import { addressSettings } from "#daemon/integrations/connections/address-settings.ts";
import { changed } from "#daemon/integrations/connections/bound-credentials.ts";
import type { Settings } from "#daemon/integrations/connections/secret.ts";
import { mergePatch } from "#daemon/integrations/merge-patch.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";
import { writeProject } from "./receiver.ts";

const live = { live: true };

const schema = {
  type: "object",
  properties: {
    host: { type: "string" },
    start: { type: "string" },
    api_key: { type: "string", airbyte_secret: true },
  },
};

const manifest = (url_base: string, more: object = {}) =>
  JSON.stringify({
    ...{ version: "6.0.0", type: "DeclarativeSource", check: { type: "CheckStream", stream_names: ["items"] } },
    streams: [
      {
        ...{ type: "DeclarativeStream", name: "items" },
        schema_loader: { type: "InlineSchemaLoader", schema: { type: "object", properties: {} } },
        retriever: {
          type: "SimpleRetriever",
          record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
          requester: {
            ...{ type: "HttpRequester", url_base, path: "items", http_method: "GET" },
            request_parameters: { since: "{{ config['start'] }}" },
            authenticator: { type: "BearerAuthenticator", api_token: "{{ config['api_key'] }}" },
          },
        },
      },
    ],
    spec: { type: "Spec", connection_specification: schema },
    ...more,
  });

/** A server that keeps what it is authorized with. */
async function listener() {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ items: [{ id: 1 }] }));
  });
  const { address, close } = await listen(server);
  onTestFinished(close);
  return { seen, address };
}

test("credentials of a connection reach another host only when they are given again", async () => {
  const [own, other] = [await listener(), await listener()];
  const root = temporaryFolder();
  makeFolder(join(root, "connectors"));
  writeFileSync(join(root, "connectors", "mine.json"), manifest("http://{{ config['host'] }}/"));
  writeProject(root, { egress: { allow_private: [own.address, other.address] } });
  const { call } = await startDaemon({ root });
  const input = { provider: "mine", config: { host: own.address, start: "1" }, credentials: { api_key: "canary" } };
  const { id } = (await call("POST", "/v1/connections", input, live)).body;
  const path = `/v1/connections/${id}`;
  const patch = async (body: object) => (await call("PATCH", path, body, live)).body;
  const check = async () => (await call("POST", `${path}/check`, {}, live)).body.status;
  expect(await check()).toBe("connected");

  // By its name, by a credential of that name, which goes over it, and by taking it away.
  for (const body of [
    { config: { host: other.address } },
    { credentials: { host: other.address } },
    { config: null },
    { config: { host: other.address }, credentials: { another: "x" } },
  ])
    expect(await patch(body)).toMatchObject({
      ...{ status: 422, code: "validation_failed" },
      detail: expect.stringMatching(/^\/credentials\/api_key: must be given again in the same request .*--credentials/),
      errors: [{ pointer: "/credentials/api_key", code: "required" }],
    });
  expect(await check()).toBe("connected");
  expect(other.seen).toEqual([]);

  for (const body of [{ config: { start: "2" } }, { credentials: { api_key: "canary" } }, { name: "n" }])
    expect(await patch(body)).toMatchObject({ id });
  expect(await patch({ config: { host: other.address }, credentials: { api_key: "new" } })).toMatchObject({ id });
  expect(await check()).toBe("connected");
  expect(new Set(other.seen)).toEqual(new Set(["Bearer new"]));
  // Without credentials it may lead anywhere.
  expect(await patch({ config: { host: own.address }, credentials: null })).toMatchObject({ id });
  expect(await patch({ config: { host: other.address } })).toMatchObject({ id });
});

test("a key of the API cannot have magic.yaml's secrets sent where it likes", async () => {
  const daemon = await startDaemon();
  const scopes = ["connections:read", "connections:write"];
  const key = await daemon.call("POST", "/v1/keys", { name: "k", scopes, environment: "live", tier: "enterprise" });
  const given = { config: { url: "https://other.example", deep: { key: ["$" + "{secret:APP}"] } } };
  const create = (token?: string) =>
    daemon.call("POST", "/v1/connections", { provider: "http", ...given }, { ...live, ...(token && { token }) });
  const { body: own } = await create();
  expect(own.status).toBe("pending");
  const start = { provider: "salesforce", callback_url: "https://app.example.com", ...given };
  const token = key.body.secret;
  for (const refused of [
    await create(token),
    await daemon.call("PATCH", `/v1/connections/${own.id}`, given, { ...live, token }),
    await daemon.call("POST", "/v1/connections/oauth/start", start, { ...live, token }),
  ])
    expect(refused.body).toMatchObject({ status: 422, errors: [{ pointer: "/config/deep", code: "reference" }] });
  // The daemon's environment is for magic.yaml alone, whoever asks, and wherever.
  const credentials = { "a/b": "$" + "{env:HOME}" };
  const named = await daemon.call("PATCH", `/v1/connections/${own.id}`, { credentials }, live);
  const simulated = await daemon.call("POST", "/v1/connections", { provider: "http", credentials });
  for (const { body } of [named, simulated])
    expect(body).toMatchObject({ status: 422, errors: [{ pointer: "/credentials/a~1b", code: "reference" }] });
});

function outcome(provider: string, held: Settings, patch: Partial<Settings>, text: string | null = null) {
  const apply = ({ config, credentials }: Settings) => ({
    config: {},
    credentials: {},
    ...(mergePatch({ config, credentials }, patch) as object),
  });
  try {
    changed({ provider, manifest: text, oauth: {}, schema }, { held, apply });
    return "changed";
  } catch (error) {
    if (!isMagicError(error)) throw error;
    return error.problems.map(({ pointer }) => pointer).join(" ");
  }
}

test("a database's password belongs to its server and an endpoint's token to its address, whatever that is made of", () => {
  const url = "postgres://u@db.example/app";
  const held = { config: { url }, credentials: { password: "p" } };
  const at = (text: string, more: object = {}) => ({ config: { url: text }, ...more });
  const cases: [Settings, object, string][] = [
    [held, at("postgres://u@db.example/other"), "changed"],
    [held, at("postgres://w@db.example/app"), "changed"],
    [held, { config: { host: "evil.example" } }, "changed"],
    [held, at("postgres://u@evil.example/app"), "/credentials/password"],
    [held, at("postgres://u@db.example:5433/app"), "/credentials/password"],
    [held, at(`${url}?host=evil.example`), "/credentials/password"],
    [held, at(`${url}?sslmode=disable`), "/credentials/password"],
    [held, { config: { url: null, host: "evil.example" } }, "/credentials/password"],
    [held, { config: null }, "/credentials/password"],
    // A URL that cannot be read is mended like any other.
    [{ ...held, config: { url: "postgres://%zz@h/x" } }, at(url), "/credentials/password"],
    [{ ...held, config: { url: "postgres://%zz@h/x" } }, at(url, { credentials: { password: "p" } }), "changed"],
    [held, at("postgres://u@evil.example/app", { credentials: { user: "x" } }), "/credentials/password"],
    [held, at("postgres://u@evil.example/app", { credentials: { password: "p" } }), "changed"],
    [held, at("postgres://u@evil.example/app", { credentials: { password: null } }), "changed"],
    [held, { config: { token_url: "https://evil.example" } }, "/config/url /credentials/password"],
    [{ config: { host: "a", password: "p" }, credentials: {} }, { config: { port: 5433 } }, "/config/password"],
    [{ config: { host: "a", deep: { "x/y": "p" } }, credentials: {} }, { config: { host: "b" } }, "/config/deep/x~1y"],
    [{ config: { host: "a", user: "$" + "{secret:U}" }, credentials: {} }, { config: { host: "b" } }, "/config/user"],
    [{ config: { host: "a", user: "u" }, credentials: {} }, { config: { host: "b" } }, "changed"],
  ];
  for (const [before, patch, expected] of cases)
    expect([patch, outcome("postgres", before, patch)]).toEqual([patch, expected]);
  // Hosts of endpoints are shared by path.
  const endpoint = { config: { url: "https://hooks.example/own" }, credentials: { token: "t" } };
  expect(outcome("http", endpoint, at("https://hooks.example/evil"))).toBe("/credentials/token");
  expect(outcome("http", endpoint, { config: { note: "n" } })).toBe("changed");
});

test("which settings make an address is read off the templates; where it cannot be told, all of them", () => {
  const of = (url_base: string, more?: object) => {
    const found = addressSettings(manifest(url_base, more));
    return found === "all" ? found : [...found].join(" ");
  };
  const cases: [string, string][] = [
    ["https://api.example/", ""],
    ["https://{{ config['host'] }}/", "host"],
    ['{{ config["a-b"].rstrip("/") }}', "a-b"],
    ["https://{{ config.get('region') or 'eu' }}.{{ config.site }}/", "region site"],
    ["https://{{ config['place']['host'] }}/", "place"],
    ["https://{{ config.hosts() }}/", "all"],
    ["https://{{ config[config['which']] }}/", "all"],
    ["https://{{ config['a' ~ 'b'] }}/", "all"],
    ["https://{{ config['\\x61'] }}/", "all"],
    ["{% set c = config %}{{ c['host'] }}", "all"],
    ["https://{{ stream_slice['host'] }}/", "all"],
  ];
  for (const [template, expected] of cases) expect([template, of(template)]).toEqual([template, expected]);
  const rules = { spec: { type: "Spec", connection_specification: schema, config_normalization_rules: {} } };
  expect(of("https://api.example/", rules)).toBe("all");
  expect(of("https://api.example/", { dynamic_streams: [{}] })).toBe("all");
  expect(addressSettings("nothing of the kind")).toBe("all");
  const read = addressSettings(manifest("https://{{ config['host'] }}/"));
  expect(addressSettings(manifest("https://{{ config['host'] }}/")), "read once").toBe(read);
  const held = { config: { start: "1" }, credentials: { api_key: "k" } };
  expect(outcome("mine", held, { config: { start: "2" } }, manifest("https://a.example/"))).toBe("changed");
  expect(outcome("mine", held, { config: { start: "2" } }, manifest("{{ config | string }}"))).toBe(
    "/credentials/api_key",
  );
  expect(outcome("gone", held, { config: { start: "2" } })).toBe("/credentials/api_key");
});
