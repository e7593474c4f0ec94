// Vendors and manifests that mean harm or are merely broken: what they may not reach, how long they may last, what is said of them.
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { runConnectorJob } from "#daemon/integrations/connectors/declarative/job.ts";
import { loadManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { json, manifest, read, type StreamOptions, vendor } from "./one-stream.ts";

const noRetry = { error_handler: { type: "DefaultErrorHandler", max_retries: 0 } };

test.each(["0", "0, 0", "Wed, 21 Oct 2015 07:28:00 GMT", "0.0001"])(
  "a server that refuses for ever with Retry-After '%s' is asked ever less often",
  async (after) => {
    const origin = await vendor((_request, response) => json(response, {}, 503, { "retry-after": after }));
    const waits: number[] = [];
    await expect(read(manifest(origin), { waits })).rejects.toMatchObject({ code: "upstream_error" });
    expect(waits).toEqual([0.05, 0.1, 0.2, 0.4, 0.8]);
  },
);

test.each(["99999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])(
  "a wait until '%s' is refused at once, and says so",
  async (after) => {
    const origin = await vendor((_request, response) => json(response, {}, 429, { "retry-after": after }));
    await expect(read(manifest(origin), { waits: [] })).rejects.toMatchObject({
      code: "upstream_error",
      message: expect.stringContaining("too long"),
    });
  },
);

test.each([
  { type: "ConstantBackoffStrategy", backoff_time_in_seconds: "{{ config['none'] }}" },
  { type: "WaitTimeFromHeader", header: "retry-after", min_wait: "soon" },
  { type: "ExponentialBackoffStrategy", factor: "{{ 'x' }}" },
])("a wait that is no number ($type) is one of ours", async (strategy) => {
  let left = 2;
  const origin = await vendor((_request, response) => {
    if (left-- > 0) json(response, {}, 503, { "retry-after": "1" });
    else json(response, { items: [{ id: 1 }] });
  });
  const waits: number[] = [];
  const error_handler = { type: "DefaultErrorHandler", backoff_strategies: [strategy] };
  const { records } = await read(manifest(origin, { requester: { error_handler } }), { waits });
  expect(records).toHaveLength(1);
  for (const wait of waits) expect(wait).toBeGreaterThan(0);
});

test("what a key or a body says goes to no other origin, however a server redirects", async () => {
  const heard: string[] = [];
  const other = await vendor((request, response) => {
    heard.push(JSON.stringify(request.headers) + request.body);
    json(response, { items: [{ id: 1 }], access_token: "t" });
  });
  const origin = await vendor((_request, response) => response.writeHead(307, { location: `${other}/items` }).end());
  const inject = (inject_into: string) => ({
    authenticator: {
      type: "ApiKeyAuthenticator",
      api_token: "geheim",
      inject_into: { type: "RequestOption", inject_into, field_name: "X-Shop-Access-Token" },
    },
  });
  const oauth = {
    type: "OAuthAuthenticator",
    token_refresh_endpoint: `${origin}/token`,
    client_id: "id",
    client_secret: "geheim",
    refresh_token: "geheim",
  };
  const attempts: StreamOptions["requester"][] = [
    inject("header"),
    { http_method: "POST", ...inject("body_json") },
    { authenticator: oauth },
  ];
  for (const requester of attempts)
    await read(manifest(origin, { requester: { ...noRetry, ...requester } })).catch(() => {});
  expect(heard.join("\n")).not.toContain("geheim");
  expect(heard.length).toBeGreaterThan(0);
});

const secret = {
  authenticator: { type: "BearerAuthenticator", api_token: "geheim" },
  request_parameters: { key: "geheim" },
};
const followed = {
  pagination_strategy: { type: "CursorPagination", cursor_value: "{{ response.next }}" },
  page_token_option: { type: "RequestPath" },
};

test("what a key says goes to no other server, wherever the data says that the next page or a record's own address is", async () => {
  const heard: string[] = [];
  const other = await vendor((request, response) => {
    heard.push(JSON.stringify(request.headers) + request.url + request.body);
    json(response, request.at.pathname === "/2" ? { items: [{ id: 2 }], next: `${other}/3` } : { items: [{ id: 3 }] });
  });
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }], next: `${other}/2` }));
  const { records } = await read(manifest(origin, { requester: { ...noRetry, ...secret }, paginator: followed }));
  expect(records.map(({ id }) => id)).toEqual([1, 2, 3]);
  const path = "{{ config['found'] }}";
  const config = { found: `${other}/2` };
  await read(manifest(origin, { requester: { ...noRetry, ...secret, path }, paginator: followed }), { config });
  expect(heard).toHaveLength(4);
  expect(heard.join("\n")).not.toContain("geheim");

  const posted = { ...noRetry, http_method: "POST", request_body_json: { key: "geheim" } };
  await expect(read(manifest(origin, { requester: posted, paginator: followed }))).rejects.toThrow(
    /not sent to another/,
  );
  // A whole address in the manifest itself is its author's word.
  await read(manifest(origin, { requester: { ...noRetry, ...secret, path: `${other}/2` } }));
  expect(heard.at(-1)).toContain("geheim");
});

test.each([
  ["api2.frontapp.com", "https://acme.api.frontapp.com/2", true],
  ["api2.frontapp.com", "https://frontapp.com/2", true],
  ["api2.frontapp.com", "http://api2.frontapp.com/2", true],
  ["api2.frontapp.com", "https://frontapp.com.evil.example/2", false],
  ["api2.frontapp.com", "https://evilfrontapp.com/2", false],
  ["api2.frontapp.com", "http://acme.api.frontapp.com/2", false],
  ["api2.frontapp.com", "https://acme.api.frontapp.com:8443/2", false],
  ["api2.frontapp.com", "ORIGIN/2", true],
  ["api.vendor.co.uk", "https://eu.vendor.co.uk/2", true],
  ["api.vendor.co.uk", "https://evil.co.uk/2", false],
  ["vendor.co.uk", "https://evil.co.uk/2", false],
  ["co.uk", "https://evil.co.uk/2", false],
  ["vendor.github.io", "https://evil.github.io/2", false],
  ["api.vendor.github.io", "https://eu.vendor.github.io/2", true],
  ["vendor.herokuapp.com", "https://evil.herokuapp.com/2", false],
  ["a1.execute-api.eu-west-1.amazonaws.com", "https://evil.execute-api.eu-west-1.amazonaws.com/2", false],
  ["search.eu-west-1.amazonaws.com", "https://evil.eu-west-1.amazonaws.com/2", false],
  ["api.vendor.internal", "https://evil.internal/2", false],
  ["vendor", "https://evil.vendor/2", false],
  ["192.0.2.1", "https://1.192.0.2.1.evil.com/2", false],
  ["192.0.2.1", "https://192.0.3.1/2", false],
])("from %s a next page at %s gets the credentials: %s", async (host, next, given) => {
  const heard: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    heard.push(request.headers.authorization);
    const more = heard.length === 1 ? { next: next.replace("ORIGIN", origin) } : {};
    json(response, { items: [{ id: heard.length }], ...more });
  });
  const front = manifest(`https://${host}`, { requester: secret, paginator: followed });
  await read(front, { rewrite: `*=${origin}` });
  expect(heard).toEqual(["Bearer geheim", given ? "Bearer geheim" : undefined]);
});

test.each([
  ["https://api.example.com{{ stream_partition.at }}", "/items", true],
  ["https://api.example.com{{ stream_partition.at }}", ".evil.test/items", false],
  ["https://{{ stream_partition.at }}api.example.com", "evil.test/?", false],
  ["https://{{ stream_partition.at }}.example.com", "shop", true],
  ["https://{{ stream_partition.at }}", "shop.test", true],
])("a record's text in %s that is '%s' gets the credentials: %s", async (url_base, at, given) => {
  const heard: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    heard.push(request.headers.authorization);
    json(response, { items: [{ id: 1 }] });
  });
  const partition_router = { type: "ListPartitionRouter", values: [at], cursor_field: "at" };
  const requester = { ...secret, url_base, path: "" };
  await read(manifest(origin, { requester, retriever: { partition_router } }), { rewrite: `*=${origin}` });
  expect(heard).toEqual([given ? "Bearer geheim" : undefined]);
});

test("that a server is asked without credentials is said once a run", async () => {
  const other = await vendor((request, response) => {
    const page = Number(request.at.pathname.slice(1));
    json(response, { items: [{ id: page }], ...(page < 5 && { next: `${other}/${page + 1}` }) });
  });
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }], next: `${other}/2` }));
  const told: string[] = [];
  const { records } = await read(manifest(origin, { requester: secret, paginator: followed }), { told });
  expect(records).toHaveLength(5);
  expect(told).toEqual([expect.stringContaining(`${other}, which the manifest does not name`)]);
});

const answers: [string, Record<string, string>, Buffer | string, RegExp][] = [
  [
    "gzip that ends in the middle",
    { "content-encoding": "gzip" },
    gzipSync('{"items": []}').subarray(0, 15),
    /cannot be read|not JSON/,
  ],
  [
    "gzip with a wrong checksum",
    { "content-encoding": "gzip" },
    Buffer.concat([gzipSync("{}").subarray(0, -8), Buffer.alloc(8, 1)]),
    /cannot be read|not JSON/,
  ],
  ["a page of HTML", { "content-type": "application/json" }, "<html>Sign in</html>", /not JSON/],
  ["a redirect to nowhere", { location: "http://[bad" }, "", /redirect/],
  ["a redirect to a file", { location: "file:///etc/passwd" }, "", /only http and https/],
];
test.each(answers)("%s is told as the server's fault", async (_name, headers, body, message) => {
  const origin = await vendor((_request, response) =>
    response.writeHead("location" in headers ? 302 : 200, headers).end(body),
  );
  const error = await read(manifest(origin, { requester: noRetry })).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(MagicError);
  expect(error).toMatchObject({ message: expect.stringMatching(message) });
});

test("a gzip answer is read whatever its encoding's letters", async () => {
  const body = gzipSync('{"items": [{"id": 1}]}');
  const origin = await vendor((_request, response) =>
    response.writeHead(200, { "content-encoding": "GZIP" }).end(body),
  );
  expect((await read(manifest(origin))).records).toEqual([{ id: 1 }]);
});

test("a record that nests too deeply to be handed on is told so", async () => {
  let deep = "";
  const origin = await vendor((_request, response) => response.end(`{"items": [{"id": 1, "deep": ${deep}}]}`));
  for (const levels of [1000, 4000, 5000, 6000, 8000]) {
    deep = '{"a":'.repeat(levels) + 1 + "}".repeat(levels);
    const said: string[] = [];
    await runConnectorJob(
      { type: "read", manifest: manifest(origin), config: { origin }, stream: "items" },
      {
        ...{ signal: AbortSignal.timeout(20_000), env: {}, room: async () => {} },
        // As IPC does.
        send: async (reply) => void said.push(JSON.stringify(reply)),
      },
    );
    expect(said.at(-1)?.slice(0, 200)).toMatch(/"type":"end"|"upstream_error","detail":".*nests too deeply/);
  }
});

test("an answer that nests too deeply is told so; a record's __proto__ stays its own", async () => {
  const deep = "[".repeat(20_000) + "]".repeat(20_000);
  let item = `{"id": 1, "__proto__": {"polluted": 1}}`;
  const origin = await vendor((_request, response) => response.end(`{"items": [${item}]}`));
  const pagination_strategy = { type: "CursorPagination", cursor_value: "{{ response.next }}" };
  const source = manifest(origin, { paginator: { pagination_strategy } });
  expect((await read(source)).records).toHaveLength(1);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
  item = `{"id": 1, "deep": ${deep}}`;
  await expect(read(source)).rejects.toMatchObject({
    code: "upstream_error",
    message: expect.stringMatching(/nests too deeply/),
  });
});

const stream = {
  version: "1",
  type: "DeclarativeSource",
  check: { type: "CheckStream", stream_names: ["a"] },
  streams: [],
};
const many = Object.fromEntries(
  Array.from({ length: 14 }, (_, at) => [`field${at}`, { type: "HttpRequester", url_base: "http://x.test" }]),
);
const hostile: [string, object][] = [
  ["a reference that leads through itself", { ...stream, a: { $ref: "#/a/b" }, c: { $ref: "#/a/x" } }],
  [
    "parameters that are handed down into each other",
    { ...stream, metadata: { type: "SimpleRetriever", $parameters: many } },
  ],
];
test.each(hostile)("%s is refused soon", (_name, source) => {
  const started = performance.now();
  expect(() => loadManifest(JSON.stringify(source))).toThrow(MagicError);
  expect(performance.now() - started).toBeLessThan(15_000);
});

test("a path of stars takes no longer than its names are long", async () => {
  const name = "x".repeat(40);
  const origin = await vendor((_request, response) => json(response, { [`${name}y`]: [], items: [{ id: 1 }] }));
  const started = performance.now();
  const field_path = [`${"*x".repeat(25)}*z`];
  const record_selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path } };
  expect((await read(manifest(origin, { retriever: { record_selector } }))).records).toEqual([]);
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("how often may be called is a template, and what is no number ends the read; dearer requests count for several", async () => {
  const origin = await vendor((request, response) => {
    const page = Number(request.at.searchParams.get("page") ?? 0);
    json(response, { items: page < 4 ? [{ id: page }] : [] });
  });
  const source = (rate: object, matchers: readonly object[] = []) => {
    const paginator = {
      page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
      pagination_strategy: { type: "PageIncrement", page_size: 1, inject_on_first_request: true },
    };
    const rates = [{ type: "Rate", interval: "PT0.1S", ...rate }];
    const policies = [{ type: "MovingWindowCallRatePolicy", rates, matchers }];
    const api_budget = { type: "HTTPAPIBudget", policies };
    return JSON.stringify({ ...JSON.parse(manifest(origin, { paginator })), api_budget });
  };
  const took = async (...asked: Parameters<typeof source>): Promise<number> => {
    const began = performance.now();
    await read(source(...asked), { config: { calls: 2 } });
    return Math.round((performance.now() - began) / 100);
  };
  expect(await took({ limit: "{{ config['calls'] }}" })).toBeGreaterThanOrEqual(2);
  const pages = { type: "HttpRequestRegexMatcher", url_path_pattern: "^/items", params: { page: 3 } };
  const others = { ...pages, params: undefined, weight: 2 };
  expect(await took({ limit: 2 }, [pages, others])).toBeGreaterThanOrEqual(4);
  // One that counts for as many as no array can hold.
  expect(await took({ limit: 1e12 }, [{ ...others, weight: 1e11 }])).toBeLessThan(40);
  await expect(read(source({ limit: "{{ config['none'] }} calls" }))).rejects.toThrow("api_budget is no number");
});

test("a budget of one call in a century does not keep the processor busy", async () => {
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }], next: 1 }));
  const source = JSON.parse(
    manifest(origin, { paginator: { pagination_strategy: { type: "CursorPagination", cursor_value: "2" } } }),
  );
  const rates = [{ type: "Rate", limit: 1, interval: "P100Y" }];
  source.api_budget = {
    type: "HTTPAPIBudget",
    policies: [{ type: "MovingWindowCallRatePolicy", rates, matchers: [] }],
  };
  const before = process.cpuUsage();
  await Promise.race([read(JSON.stringify(source)).catch(() => {}), new Promise((done) => setTimeout(done, 1500))]);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(1400);
});

test("a pattern for a configuration's names that makes backtracking engines explode takes linear time", async () => {
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }] }));
  const source = JSON.parse(manifest(origin));
  source.spec.connection_specification = { type: "object", patternProperties: { "^(a+)+$": { type: "string" } } };
  const { records } = await read(JSON.stringify(source), { config: { [`${"a".repeat(60)}!`]: 1 } });
  expect(records).toHaveLength(1);
  await expect(read(JSON.stringify(source), { config: { aaa: { b: 1 } } })).rejects.toThrow(/aaa/);
});

test.each(["https://[bad", "//[bad/x"])("a next page at '%s', which is no URL, is told", async (next) => {
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }], next }));
  const paginator = {
    pagination_strategy: { type: "CursorPagination", cursor_value: "{{ response.next }}" },
    page_token_option: { type: "RequestPath" },
  };
  await expect(read(manifest(origin, { paginator }))).rejects.toMatchObject({ code: "validation_failed" });
});

test("of a read that has failed, the page that was asked for ahead is not said to be tried again", async () => {
  let asked = 0;
  const origin = await vendor((_request, response) => {
    if (++asked < 4) json(response, { items: [{ id: 1 }], next: "same" });
  });
  const paginator = {
    page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "after" },
    pagination_strategy: { type: "CursorPagination", cursor_value: "{{ response.next }}" },
  };
  const said: unknown[] = [];
  await runConnectorJob(
    { type: "read", manifest: manifest(origin, { paginator }), config: { origin }, stream: "items" },
    {
      ...{ signal: AbortSignal.timeout(20_000), env: {}, room: async () => {} },
      send: async (reply) => void (reply.type === "records" || said.push(reply)),
    },
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(said).toEqual([expect.objectContaining({ type: "failed", detail: expect.stringContaining("repeats") })]);
});
