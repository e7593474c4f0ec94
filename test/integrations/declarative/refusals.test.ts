// Vendors that refuse, wait oddly, or answer what cannot be used: what is tried again, how soon, and what of it is told.
import { expect, test } from "vitest";
import type { ConnectorReply } from "#contract/connector-worker.ts";
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { runConnectorJob } from "#daemon/integrations/connectors/declarative/job.ts";
import type { OpenConnection } from "#daemon/integrations/execution.ts";
import { type EndPorts, endOf } from "#daemon/integrations/live/ends.ts";
import { retryAfterSeconds } from "#daemon/integrations/retry-after.ts";
import { askWorker, startWorker } from "#shared/sync-worker.ts";
import { memoryTokens } from "#shared/token-ipc.ts";
import { cursor, day, json, manifest, read, vendor } from "./one-stream.ts";

test("Retry-After is seconds or a date, once or twice; anything else says nothing", () => {
  const now = Date.parse("2026-11-22T10:00:00Z");
  const waits = ["1.5", "30, 30", "Sun, 22 Nov 2026 10:01:00 GMT", "Sun, 22 Nov 2020 10:01:00 GMT"].map((value) =>
    retryAfterSeconds(value, now),
  );
  expect(waits).toEqual([1.5, 30, 60, 0]);
  for (const value of ["-5", "+5", "soon", "", "1e400", "60s"]) expect(retryAfterSeconds(value, now)).toBeUndefined();
});

test("a time until which to wait is in seconds or milliseconds", async () => {
  let tries = 0;
  const origin = await vendor((_request, response) => {
    // The reader's clock is ahead by what it has skipped.
    const at = Date.now() + 30_000 * ++tries;
    if (tries > 2) json(response, { items: [{ id: 1 }] });
    else json(response, {}, 503, { "x-ratelimit-reset": String(tries === 1 ? at : Math.round(at / 1000)) });
  });
  const strategy = { type: "WaitUntilTimeFromHeader", header: "X-RateLimit-Reset" };
  const error_handler = { type: "DefaultErrorHandler", backoff_strategies: [strategy] };
  const waits: number[] = [];
  await read(manifest(origin, { requester: { error_handler } }), { waits });
  expect(waits).toHaveLength(2);
  for (const wait of waits) expect(Math.abs(wait - 30)).toBeLessThan(10);
});

test.each([
  ["a key that no header can hold", { request_headers: { "X-Key": "{{ config['key'] }}" } }, /invalid x-key header/],
  ["a method that there is not", { http_method: "FIND ALL" }, /invalid request method/],
])("%s is the configuration's fault, told at once and without its value", async (_what, requester, message) => {
  const waits: number[] = [];
  const reading = read(manifest("http://127.0.0.1:9", { requester }), { config: { key: "hush\u200b" }, waits });
  await expect(reading).rejects.toMatchObject({ code: "validation_failed", message: expect.stringMatching(message) });
  await expect(reading).rejects.not.toThrow(/hush/);
  expect(waits).toEqual([]);
});

test("where the manifest says that an answer is a limit, every partition waits, whatever the status", async () => {
  const times: number[] = [];
  const origin = await vendor((request, response) => {
    times.push(performance.now());
    if (times.length === 1) json(response, {}, 403, { "retry-after": "1" });
    else json(response, { items: [{ id: request.at.searchParams.get("p") }] });
  });
  const request_option = { type: "RequestOption", inject_into: "request_parameter", field_name: "p" };
  const values = Array.from({ length: 16 }, (_, at) => String(at));
  const partition_router = { type: "ListPartitionRouter", values, cursor_field: "p", request_option };
  const filter = { type: "HttpResponseFilter", http_codes: [403], action: "RATE_LIMITED" };
  const error_handler = { type: "DefaultErrorHandler", response_filters: [filter] };
  const source = manifest(origin, { retriever: { partition_router }, requester: { error_handler } });
  expect((await read(source, { concurrency: 4 })).records).toHaveLength(16);
  const [first = 0] = times;
  // Those that were under way already.
  expect(times.filter((time) => time < first + 900).length).toBeLessThanOrEqual(4);
});

test("a refusal is told although another partition waits, which is read before the read fails", async () => {
  const told: string[] = [];
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/wrong") json(response, { message: "no" }, 400);
    else
      void expect
        .poll(() => told)
        .toHaveLength(1)
        .then(() => json(response, { items: [{ id: 1 }] }));
  });
  const partition_router = { type: "ListPartitionRouter", values: ["slow", "wrong"], cursor_field: "p" };
  const source = manifest(origin, { requester: { path: "/{{ stream_slice.p }}" }, retriever: { partition_router } });
  const records: unknown[] = [];
  const reading = read(source, { concurrency: 2, told, onRecords: (page) => void records.push(...page) });
  await expect(reading).rejects.toThrow("answered 400: no");
  expect(told).toEqual([
    expect.stringMatching(/^a partition is left out, so that the read will fail: .*answered 400: no/),
  ]);
  expect(records).toEqual([{ id: 1 }]);
});

test("a failure that is no refusal ends the read although another partition waits", async () => {
  const origin = await vendor((_request, response) => json(response, {}, 503, { "retry-after": "3000" }));
  const partition_router = { type: "ListPartitionRouter", values: ["slow", "wrong"], cursor_field: "p" };
  const path = "/{{ 1 // (stream_slice.p | length - 5) }}";
  const source = manifest(origin, { requester: { path }, retriever: { partition_router } });
  await expect(read(source, { concurrency: 2 })).rejects.toThrow("zero");
});

test("a token endpoint that is busy for a moment is asked again; one that answers no JSON says why", async () => {
  let asked = 0;
  let refuses = false;
  const origin = await vendor((request, response) => {
    if (request.at.pathname !== "/token") json(response, { items: [{ id: 1 }] });
    else if (refuses) response.writeHead(401, { "content-type": "text/html" }).end("<html>no</html>");
    else if (++asked === 1) response.writeHead(503).end("<html>busy</html>");
    else if (asked === 2) json(response, {}, 429, { "retry-after": "3" });
    else json(response, { access_token: "abc", expires_in: 3600 });
  });
  const authenticator = {
    ...{ type: "OAuthAuthenticator", client_id: "me", client_secret: "s", grant_type: "client_credentials" },
    token_refresh_endpoint: `${origin}/token`,
  };
  const source = manifest(origin, { requester: { authenticator } });
  const waits: number[] = [];
  expect((await read(source, { waits })).records).toHaveLength(1);
  expect([asked, waits]).toEqual([3, [1, 3]]);
  refuses = true;
  await expect(read(source)).rejects.toMatchObject({ code: "credentials_rejected" });
});

test("a token that a vendor shows in its refusal is not told, however it was got", async () => {
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/login") json(response, { token: "fresh-session-token" });
    else
      json(
        response,
        { message: `bad ${request.headers.authorization} at ${request.at.searchParams.get("key")}, ${request.url}` },
        400,
      );
  });
  const login_requester = { type: "HttpRequester", url_base: origin, path: "/login", http_method: "POST" };
  const request_authentication = { type: "Bearer" };
  const session = {
    type: "SessionTokenAuthenticator",
    session_token_path: ["token"],
    login_requester,
    request_authentication,
  };
  const basic = { type: "BasicHttpAuthenticator", username: "somebody", password: "hush" };
  const inject_into = { type: "RequestOption", inject_into: "request_parameter", field_name: "key" };
  const key = { type: "ApiKeyAuthenticator", api_token: "key/of+mine=", inject_into };
  for (const authenticator of [session, basic, key]) {
    const told = await read(manifest(origin, { requester: { authenticator } })).catch((error: Error) => error.message);
    expect(told).toContain("[redacted]");
    expect(told).not.toMatch(/fresh-session|c29tZWJvZHk|key.{1,3}of/);
  }
});

test("what the specification marks as secret is not told, whatever it is called", async () => {
  const origin = await vendor((request, response) => json(response, { message: `no ${request.url}` }, 400));
  const source = JSON.parse(manifest(origin, { requester: { path: "/{{ config.tenant }}/{{ config.login.pat }}" } }));
  const secret = { type: "string", airbyte_secret: true };
  const properties = {
    tenant: secret,
    login: { oneOf: [{ properties: { pat: secret } }] },
    region: { type: "string" },
  };
  source.spec.connection_specification = { type: "object", properties };
  const config = { origin, tenant: "tenant-4711", login: { pat: "pat-of-mine" }, region: "north-west" };
  const told: ConnectorReply[] = [];
  await runConnectorJob(
    { type: "check", manifest: JSON.stringify(source), config },
    { signal: AbortSignal.timeout(5000), env: {}, send: async (reply) => void told.push(reply), room: async () => {} },
  );
  expect(told).toEqual([expect.objectContaining({ type: "failed", detail: expect.stringContaining("[redacted]") })]);
  expect(JSON.stringify(told)).not.toMatch(/4711|of-mine/);
});

test("a daemon's test of a connection tells none of its secrets, wherever the manifest puts them", async () => {
  const origin = await vendor((request, response) => json(response, { message: `no ${request.url}` }, 400));
  const source = manifest(origin, {
    requester: { path: "/{{ config.pat }}/{{ config.tenant }}/{{ config.api_key }}" },
  });
  const config = { origin, tenant: "tenant-4711", api_key: "key-of-mine" };
  const connection = { record: { provider: "one" }, config, credentials: { pat: "pat-of-mine" } };
  const schema = { properties: { tenant: { type: "string", airbyte_secret: true } } };
  const ports = { manifest: async () => source, schema: async () => schema } as Partial<EndPorts> as EndPorts;
  const end = await endOf(connection as unknown as OpenConnection, "items", ports);
  const question = { type: "check" as const, end, allow_private: [new URL(origin).host] };
  const asked = askWorker(question, AbortSignal.timeout(20_000), memoryTokens(), startWorker);
  await expect(asked).rejects.toMatchObject({ message: expect.stringContaining("/[redacted]/[redacted]/[redacted]") });
});

test("an answer that leads in circles is not asked for again", async () => {
  let asked = 0;
  const origin = await vendor((_request, response) => {
    asked++;
    response.writeHead(302, { location: "/items" }).end();
  });
  const waits: number[] = [];
  await expect(read(manifest(origin), { waits })).rejects.toThrow("redirects more than 10 times");
  expect([asked, waits]).toEqual([11, []]);
});

test("a redirect that leads nowhere is no empty page; that nothing was modified is one", async () => {
  let status = 302;
  const origin = await vendor((_request, response) => response.writeHead(status).end());
  await expect(read(manifest(origin), { waits: [] })).rejects.toThrow("/items answered 302");
  status = 304;
  expect((await read(manifest(origin))).records).toEqual([]);
});

test("a number that no double can be is kept as it was written", async () => {
  const origin = await vendor((_request, response) => response.end('{"items":[{"id":1e400,"n":-2E+999,"few":1e3}]}'));
  const { records } = await read(manifest(origin));
  expect(records).toEqual([{ id: "1e400", n: "-2E+999", few: 1000 }]);
});

test("a template does not cut a list into more slices than a range may have", () => {
  const jinja = createInterpolator();
  expect(jinja.evaluate("{{ range(5)|slice(3)|list }}", {})).toEqual([[0, 1], [2, 3], [4]]);
  expect(jinja.evaluate("{{ range(100000)|slice(100000)|list|length }}", {})).toBe(100_000);
  expect(() => jinja.evaluate("{{ [1]|slice(1000000)|list }}", {})).toThrow("too many");
  expect(jinja.evaluate("{{ [1, 2, 3]|batch(2, 0)|list }}", {})).toEqual([
    [1, 2],
    [3, 0],
  ]);
  expect(() => jinja.evaluate("{{ [1]|batch(1000000000, 0)|list }}", {})).toThrow("too many");
  expect(() => jinja.evaluate("{{ format_datetime('2026-01-01', '%Y' * 100000) }}", {})).toThrow("too large");
});

test("a JSON body that comes to text that is no JSON is not left out: the vendor would answer with everything", async () => {
  let asked = 0;
  const origin = await vendor((_request, response) => {
    asked++;
    json(response, { items: [{ id: 1 }] });
  });
  const request_body_json = '{"where": "{{ config.name }}"}';
  const source = manifest(origin, { requester: { http_method: "POST", request_body_json } });
  expect((await read(source, { config: { name: "Ann" } })).records).toHaveLength(1);
  await expect(read(source, { config: { name: 'A"n' } })).rejects.toThrow("JSON body comes to text that is no JSON");
  expect(asked).toBe(1);
});

test("an address whose host is an empty setting is none: what follows it is no host", async () => {
  let asked = 0;
  const origin = await vendor((_request, response) => {
    asked++;
    json(response, { items: [{ id: 1 }], access_token: "t" });
  });
  const authenticator = {
    ...{ type: "OAuthAuthenticator", client_id: "me", client_secret: "hush", refresh_token: "r" },
    token_refresh_endpoint: "https://{{ config.domain }}/token",
  };
  const host = "https://{{ config.domain }}";
  for (const requester of [
    { url_base: `${host}/rest/v3` },
    { url_base: `${host}.acme.test/` },
    { url_base: "https://api.acme.test", path: `${host}/items` },
    { url_base: "https://api.acme.test", authenticator },
  ]) {
    const source = manifest(origin, { requester });
    await expect(read(source, { rewrite: `*=${origin}` })).rejects.toThrow("is not a URL: check");
    expect(asked).toBe(0);
    await read(source, { rewrite: `*=${origin}`, config: { domain: "shop.test" } });
    asked = 0;
  }
});

test.each(["{{ response.page\n  + 1 }}", "{{ response.page + }}"])(
  "what fails in %j is told with it",
  async (template) => {
    const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }], page: "x" }));
    const page_token_option = { type: "RequestOption", inject_into: "request_parameter", field_name: "page" };
    const pagination_strategy = { type: "CursorPagination", cursor_value: template };
    const source = manifest(origin, { paginator: { pagination_strategy, page_token_option } });
    await expect(read(source)).rejects.toThrow(`, in the template ${template.replace("\n ", "")}`);
  },
);

test("a request with two bodies is refused: one of them would be left out", async () => {
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }, { id: 2 }] }));
  const pagination_strategy = { type: "PageIncrement", page_size: 2, inject_on_first_request: true };
  const page_token_option = { type: "RequestOption", inject_into: "body_json", field_name: "page" };
  const form = { http_method: "POST", request_body_data: { kind: "items" } };
  const twice = (requester: object, paginator?: Record<string, unknown>) =>
    read(manifest(origin, { requester: { ...form, ...requester }, ...(paginator ? { paginator } : {}) }));
  await expect(twice({ request_body_json: { kind: "items" } })).rejects.toThrow("JSON and another body");
  await expect(twice({}, { pagination_strategy, page_token_option })).rejects.toThrow("JSON and another body");
  expect((await twice({})).records).toHaveLength(2);
});

test("a POST that is led on as a GET says nothing of the body that it had", async () => {
  const asked: unknown[] = [];
  const origin = await vendor(({ method, url, headers }, response) => {
    asked.push([method, url, headers["content-type"], headers["x-key"]]);
    if (url !== "/items") json(response, { items: [{ id: 1 }] });
    else response.writeHead(302, { location: "/next" }).end();
  });
  const requester = { http_method: "POST", request_body_json: { a: 1 }, request_headers: { "X-Key": "k" } };
  expect((await read(manifest(origin, { requester }))).records).toEqual([{ id: 1 }]);
  expect(asked).toEqual([
    ["POST", "/items", "application/json", "k"],
    ["GET", "/next", undefined, "k"],
  ]);
});

test("a redirect to unencoded letters leads to where it says", async () => {
  const paths: (string | undefined)[] = [];
  const origin = await vendor(({ url }, response) => {
    paths.push(url);
    if (url !== "/items") json(response, { items: [{ id: 1 }] });
    else response.writeHead(302, { location: Buffer.from("/énd").toString("latin1") }).end();
  });
  expect((await read(manifest(origin))).records).toEqual([{ id: 1 }]);
  expect(paths).toEqual(["/items", "/%C3%A9nd"]);
});

test.each([
  "{{ config['from'] }}",
  { type: "MinMaxDatetime", datetime: "{{ config.get('from', '') }}", min_datetime: day("2026-01-01") },
])("a start that comes to nothing is told, instead of reading from 1970 on", async (start_datetime) => {
  const origin = await vendor((_request, response) => json(response, { items: [] }));
  await expect(read(manifest(origin, { sync: { ...cursor, start_datetime } }))).rejects.toMatchObject({
    code: "validation_failed",
    message: expect.stringContaining("start_datetime is no date: {{ config"),
  });
});
