import { expect, onTestFinished, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { json, manifest, read, type StreamOptions, vendor } from "./one-stream.ts";

const cursorPages = {
  page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "after" },
  pagination_strategy: {
    type: "CursorPagination",
    cursor_value: "{{ response.next }}",
    stop_condition: "{{ not response.next }}",
  },
};

test("429 with Retry-After is waited out, by every partition, and nothing is lost", async () => {
  const times: number[] = [];
  let refusals = 2;
  const origin = await vendor((request, response) => {
    times.push(performance.now());
    if (refusals-- > 0) json(response, { error: "slow down" }, 429, { "retry-after": "1" });
    else json(response, { items: [{ id: request.at.searchParams.get("p") }] });
  });
  const router = {
    type: "ListPartitionRouter",
    values: ["a", "b", "c", "d"],
    cursor_field: "p",
    request_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "p" },
  };
  const started = performance.now();
  const { records } = await read(manifest(origin, { retriever: { partition_router: router } }), { concurrency: 1 });
  expect(records.map((record) => record["id"])).toEqual(["a", "b", "c", "d"]);
  expect(performance.now() - started).toBeGreaterThan(1900);
  expect(times).toHaveLength(6);
});

test("an expiring OAuth token under 16 partitions is refreshed once a lifetime, and the secret goes to the token endpoint only", async () => {
  let issued = 0;
  const leaks: string[] = [];
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/token") {
      issued++;
      json(response, { access_token: `token-${issued}`, expires_in: 3600 });
      return;
    }
    if (JSON.stringify(request.headers).includes("hush")) leaks.push(request.url ?? "");
    // The first token ends early: the server says so, not the clock.
    if (request.headers.authorization === "Bearer token-1" && Number(request.at.searchParams.get("p")) > 4)
      json(response, { error: "expired" }, 401);
    else if (!/^Bearer token-[12]$/.test(request.headers.authorization ?? "")) json(response, {}, 403);
    else json(response, { items: [{ id: request.at.searchParams.get("p") }] });
  });
  const values = Array.from({ length: 64 }, (_, at) => String(at));
  const router = {
    type: "ListPartitionRouter",
    values,
    cursor_field: "p",
    request_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "p" },
  };
  const authenticator = {
    type: "OAuthAuthenticator",
    client_id: "me",
    client_secret: "{{ config['secret'] }}",
    refresh_token: "r",
    token_refresh_endpoint: `${origin}/token`,
  };
  const { records } = await read(
    manifest(origin, { retriever: { partition_router: router }, requester: { authenticator } }),
    { concurrency: 16, config: { secret: "hush" } },
  );
  expect(new Set(records.map((record) => record["id"])).size).toBe(64);
  expect(records).toHaveLength(64);
  expect(issued).toBe(2);
  expect(leaks).toEqual([]);
});

test("a connection that the daemon authorized uses the daemon's token until it ends", async () => {
  let asked = 0;
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/token") json(response, { access_token: `token-${++asked}`, expires_in: 3600 });
    else json(response, { items: [{ id: request.headers.authorization }] });
  });
  const authenticator = { type: "OAuthAuthenticator", refresh_token: "r", token_refresh_endpoint: `${origin}/token` };
  const held = { oauth: true, access_token: "held" };
  const used = async (config: Record<string, unknown>) =>
    (await read(manifest(origin, { requester: { authenticator } }), { config })).records[0]?.["id"];
  expect(await used({ ...held, expires_at: Date.now() + 3_600_000 })).toBe("Bearer held");
  expect(await used({ ...held, expires_at: null })).toBe("Bearer held");
  expect(asked).toBe(0);
  expect(await used({ ...held, expires_at: Date.now() - 1 })).toBe("Bearer token-1");
});

test("a cursor that comes back and a page that repeats for ever are noticed", async () => {
  let requests = 0;
  const origin = await vendor((_request, response) => {
    requests++;
    json(response, { items: [{ id: 1 }, { id: 2 }], next: "same" });
  });
  await expect(read(manifest(origin, { paginator: cursorPages }))).rejects.toThrow(
    /loops: the next-page token repeats/,
  );
  const pages = {
    page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
    pagination_strategy: { type: "PageIncrement", page_size: 2 },
  };
  await expect(read(manifest(origin, { paginator: pages }))).rejects.toThrow(/loops: 3 pages in a row are the same/);
  expect(requests).toBeLessThan(10);
});

test("the same records under ever new cursors, and empty pages for ever, are noticed too", async () => {
  let requests = 0;
  let items = [{ id: 1 }];
  const origin = await vendor((_request, response) => json(response, { items, next: `n${requests++}` }));
  await expect(read(manifest(origin, { paginator: cursorPages }))).rejects.toThrow(/10 pages in a row are the same/);
  items = [];
  await expect(read(manifest(origin, { paginator: cursorPages }))).rejects.toThrow(/1000 pages in a row are empty/);
});

test("empty pages between full ones do not end a cursor's reading", async () => {
  const pages: Record<string, unknown> = {
    "": { items: [{ id: 1 }], next: "b" },
    b: { items: [], next: "c" },
    c: { items: [{ id: 3 }] },
  };
  const origin = await vendor((request, response) => json(response, pages[request.at.searchParams.get("after") ?? ""]));
  expect((await read(manifest(origin, { paginator: cursorPages }))).records).toEqual([{ id: 1 }, { id: 3 }]);
});

test("records with equal times at a page border are neither lost nor doubled, and the next read starts at the last time", async () => {
  const all = [1, 2, 3, 4, 5].map((id) => ({ id, at: id < 3 ? "2024-01-01T00:00:00Z" : "2024-01-02T00:00:00Z" }));
  const asked: (string | null)[] = [];
  const origin = await vendor((request, response) => {
    const since = request.at.searchParams.get("since") ?? "";
    asked.push(since);
    const from = Number(request.at.searchParams.get("after") ?? 0);
    const found = all.filter((item) => item.at >= since);
    json(response, { items: found.slice(from, from + 2), next: from + 2 < found.length ? String(from + 2) : null });
  });
  const sync = {
    type: "DatetimeBasedCursor",
    cursor_field: "at",
    datetime_format: "%Y-%m-%dT%H:%M:%SZ",
    start_datetime: "2023-01-01T00:00:00Z",
    start_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "since" },
  };
  const source = manifest(origin, { paginator: cursorPages, sync });
  const first = await read(source);
  expect(first.records.map((record) => record["id"])).toEqual([1, 2, 3, 4, 5]);
  expect(first.state).toEqual({ cursor: "2024-01-02T00:00:00Z" });
  const second = await read(source, { state: first.state });
  expect(second.records.map((record) => record["id"])).toEqual([3, 4, 5]);
  expect(asked.at(-1)).toBe("2024-01-02T00:00:00Z");
});

test("a cursor with an offset is kept as the same instant, and goes out as that", async () => {
  const asked: (string | null)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.at.searchParams.get("since"));
    json(response, { items: [{ id: 1, at: "2026-02-03T10:00:00+02:00" }] });
  });
  const sync = {
    ...{ type: "DatetimeBasedCursor", cursor_field: "at", start_datetime: "2026-01-01T01:00:00+01:00" },
    ...{ datetime_format: "%Y-%m-%dT%H:%M:%SZ", cursor_datetime_formats: ["%Y-%m-%dT%H:%M:%S%z"] },
    start_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "since" },
  };
  const { state } = await read(manifest(origin, { sync }));
  await read(manifest(origin, { sync }), { state });
  expect(asked).toEqual(["2026-01-01T00:00:00Z", "2026-02-03T08:00:00Z"]);
});

test("a day that may be two moves no cursor, unless the manifest says which it is", async () => {
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1, at: "05/02/2024" }] }));
  const sync = {
    ...{ type: "DatetimeBasedCursor", cursor_field: "at", start_datetime: "2024-01-01", datetime_format: "%Y-%m-%d" },
    start_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "since" },
  };
  expect((await read(manifest(origin, { sync }))).state).toEqual({ cursor: null });
  const told = { ...sync, cursor_datetime_formats: ["%d/%m/%Y"] };
  expect((await read(manifest(origin, { sync: told }))).state).toEqual({ cursor: "2024-02-05" });
});

test("a feed with the newest first ends at the page that reaches back to what was read, or to the start", async () => {
  let asked = 0;
  const origin = await vendor((request, response) => {
    asked++;
    const page = Number(request.at.searchParams.get("page") ?? 0);
    const day = (at: number): string => new Date(Date.UTC(2026, 1, 28 - page * 3 - at)).toISOString();
    json(response, { items: [0, 1, 2].map((at) => ({ id: page * 3 + at, at: day(at) })) });
  });
  const sync = {
    ...{ type: "DatetimeBasedCursor", cursor_field: "at", start_datetime: "2026-02-15T00:00:00Z" },
    ...{ datetime_format: "%Y-%m-%dT%H:%M:%SZ", is_data_feed: true },
  };
  const paginator = {
    page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
    pagination_strategy: { type: "PageIncrement", page_size: 3 },
  };
  const source = manifest(origin, { sync, paginator });
  const first = await read(source);
  expect([first.records.length, asked]).toEqual([14, 5]);
  const second = await read(source, { state: first.state });
  expect([second.records.map(({ id }) => id), asked]).toEqual([[0], 6]);
});

test("where a vendor's pages end before the slice, reading goes on from the latest record, or says that it cannot", async () => {
  const day = (at: number): string => `2024-01-${String(at).padStart(2, "0")}T00:00:00Z`;
  let all = Array.from({ length: 10 }, (_, at) => ({ id: at, at: day(at + 1) }));
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    const page = Number(request.at.searchParams.get("page") ?? 1);
    const since = request.at.searchParams.get("since") ?? "";
    asked.push(`${since.slice(8, 10)} ${page}`);
    if (page > 2) return json(response, { message: "page must be 1 or 2" }, 400);
    json(response, { items: all.filter((item) => item.at >= since).slice((page - 1) * 2, page * 2) });
  });
  const options = (trigger: object): StreamOptions => ({
    sync: {
      ...{ type: "DatetimeBasedCursor", cursor_field: "at", start_datetime: "2024-01-01T00:00:00Z" },
      ...{ datetime_format: "%Y-%m-%dT%H:%M:%SZ" },
      start_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "since" },
    },
    paginator: {
      page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
      pagination_strategy: { type: "PageIncrement", start_from_page: 1, page_size: 2 },
    },
    retriever: { pagination_reset: { type: "PaginationReset", action: "SPLIT_USING_CURSOR", ...trigger } },
  });
  const limits = { limits: { type: "PaginationResetLimits", number_of_records: 4 } };
  const { records } = await read(manifest(origin, options(limits)));
  expect(records.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(asked).toEqual(["01 1", "01 2", "04 1", "04 2", "07 1", "07 2", "10 1"]);
  // Some vendors' last page is where they stop, and tells of no next one.
  asked.length = 0;
  const unpaged = {
    ...options({ limits: { ...limits.limits, number_of_records: 2 } }),
    paginator: { type: "NoPagination" },
  };
  expect((await read(manifest(origin, unpaged))).records.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(asked).toEqual(["01 1", "02 1", "03 1", "04 1", "05 1", "06 1", "07 1", "08 1", "09 1", "10 1"]);
  // The vendor's refusal can say it as well.
  const refusal = { http_codes: [400], action: "RESET_PAGINATION" };
  const requester = { error_handler: { type: "DefaultErrorHandler", response_filters: [refusal] } };
  asked.length = 0;
  expect((await read(manifest(origin, { ...options({}), requester }))).records).toHaveLength(13);
  expect(asked).toEqual(["01 1", "01 2", "01 3", "04 1", "04 2", "04 3", "07 1", "07 2", "07 3", "10 1"]);
  // Where all have one time, pages lead on, as far as the vendor lets them.
  all = all.map(({ id }) => ({ id, at: day(1) }));
  await expect(read(manifest(origin, { ...options(limits), requester }))).rejects.toThrow(/have the same cursor/);
  all = all.slice(0, 3);
  expect(
    (await read(manifest(origin, options({ limits: { ...limits.limits, number_of_records: 2 } })))).records,
  ).toHaveLength(3);
});

test("an answer that keeps coming may take longer than one that trickles", async () => {
  const origin = await vendor((request, response) => {
    const first = request.at.pathname === "/trickles" ? 10 : 200_000;
    response.write('{"items":[{"id":"');
    const parts = [first, 10, 10, 10, 10, 10, 10];
    const timer = setInterval(() => {
      const size = parts.shift();
      if (size !== undefined) return void response.write("x".repeat(size));
      clearInterval(timer);
      response.end('"}]}');
    }, 50);
    response.on("close", () => clearInterval(timer));
  });
  const error_handler = { type: "DefaultErrorHandler", max_retries: 0 };
  const reading = (path: string) => read(manifest(origin, { requester: { error_handler, path } }), { timeoutMs: 250 });
  const [coming, trickling] = await Promise.allSettled([reading("/comes"), reading("/trickles")]);
  expect(coming).toMatchObject({ status: "fulfilled", value: { records: [expect.anything()] } });
  expect(trickling).toMatchObject({ reason: { message: expect.stringContaining("did not answer within") } });
});

test("5xx is retried, then told; malformed JSON and a server that hangs are told", async () => {
  let failures = 2;
  let mode = "flaky";
  const origin = await vendor((_request, response) => {
    if (mode === "flaky" && failures-- > 0) json(response, { message: "oops" }, 503, { "retry-after": "0" });
    else if (mode === "broken") response.end('{"items": [');
    else if (mode === "hang") response.writeHead(200);
    else json(response, { items: [{ id: 1 }] });
  });
  expect((await read(manifest(origin))).records).toHaveLength(1);
  mode = "broken";
  await expect(read(manifest(origin))).rejects.toMatchObject({
    code: "upstream_error",
    message: expect.stringMatching(/is not JSON/),
  });
  mode = "hang";
  const noRetry = { error_handler: { type: "DefaultErrorHandler", max_retries: 0 } };
  await expect(read(manifest(origin, { requester: noRetry }), { timeoutMs: 300 })).rejects.toMatchObject({
    code: "upstream_error",
    message: expect.stringMatching(/did not answer within/),
  });
});

test("a line that is no JSON is left out and told of; an answer that breaks off, or has no line, fails", async () => {
  let body = '{"id": 1}\n{oops\n{"id": 2}\n';
  const origin = await vendor((_request, response) => void response.end(body));
  const record_selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: [] } };
  const source = manifest(origin, { retriever: { decoder: { type: "JsonlDecoder" }, record_selector } });
  const told: string[] = [];
  expect((await read(source, { told })).records).toEqual([{ id: 1 }, { id: 2 }]);
  expect(told).toEqual([expect.stringContaining("1 of 3 lines of")]);
  for (body of ['{"id": 1}\n{"id": ', "<html>\n</html>\n"])
    await expect(read(source)).rejects.toMatchObject({ code: "upstream_error" });
});

test("an answer may take as long as the manifest says, over a redirect too", async () => {
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/items") response.writeHead(302, { location: "/slow" }).end();
    else setTimeout(() => json(response, { items: [{ id: 1 }] }), 150);
  });
  const source = manifest(origin, { requester: { read_timeout_in_seconds: 5 } });
  expect((await read(source, { timeoutMs: 50 })).records).toHaveLength(1);
});

test("401 is the credentials', and the vendor's own message is shown", async () => {
  const origin = await vendor((_request, response) => json(response, { error: { message: "key revoked" } }, 401));
  await expect(read(manifest(origin))).rejects.toMatchObject({
    code: "credentials_rejected",
    message: expect.stringMatching(/answered 401: key revoked/),
  });
});

test("an id beyond 2^53 that a double writes alike keeps its digits in templates, too", async () => {
  const raw = '{"items": [{"id": 1234567890123456800}, {"id": 1234567890123456789}, {"id": 42}]}';
  const origin = await vendor((_request, response) => void response.end(raw));
  const fields = [{ path: ["copy"], value: "{{ record.id }}" }];
  const { records } = await read(manifest(origin, { transformations: [{ type: "AddFields", fields }] }));
  expect(records).toEqual([
    { id: "1234567890123456800", copy: "1234567890123456800" },
    { id: "1234567890123456789", copy: "1234567890123456789" },
    { id: 42, copy: 42 },
  ]);
});

test("an id beyond 2^53 keeps its digits", async () => {
  const origin = await vendor((_request, response) => response.end('{"items": [{"id": 9007199254740993}]}'));
  expect((await read(manifest(origin))).records).toEqual([{ id: "9007199254740993" }]);
});

test("a list that the configuration lacks has no partitions; one value is a list of one", async () => {
  const asked: (string | null)[] = [];
  const origin = await vendor(({ at }, response) => {
    asked.push(at.searchParams.get("ticker"));
    json(response, { items: [{ id: 1 }] });
  });
  const request_option = { type: "RequestOption", inject_into: "request_parameter", field_name: "ticker" };
  const values = "{{ config.tickers }}";
  const partition_router = { type: "ListPartitionRouter", values, cursor_field: "ticker", request_option };
  const source = manifest(origin, { retriever: { partition_router } });
  expect((await read(source)).records).toEqual([]);
  expect((await read(source, { config: { tickers: "MSFT" } })).records).toEqual([{ id: 1 }]);
  expect(asked).toEqual(["MSFT"]);
});

test("a partition of no text is asked for without its parameter", async () => {
  const asked: (string | null)[] = [];
  const origin = await vendor(({ at }, response) => {
    asked.push(at.searchParams.get("team"));
    json(response, { items: [] });
  });
  const request_option = { type: "RequestOption", inject_into: "request_parameter", field_name: "team" };
  const router = { type: "ListPartitionRouter", values: ["", "a", 0], cursor_field: "team", request_option };
  await read(manifest(origin, { retriever: { partition_router: router } }), { concurrency: 1 });
  expect(asked).toEqual([null, "a", "0"]);
});

test("a next-page token and a partition of many digits go out as they came, in query and body", async () => {
  const long = "600000001000000000000000";
  const tokens = [long, "64880000e120000000000000", "1_000"];
  const bodies: string[] = [];
  const asked: (string | null)[] = [];
  const origin = await vendor((request, response) => {
    bodies.push(request.body);
    asked.push(request.at.searchParams.get("after"));
    json(response, { items: [{ id: bodies.length }], next: tokens[bodies.length - 1] ?? null });
  });
  const pagination_strategy = { type: "CursorPagination", cursor_value: "{{ response['next'] }}" };
  const source = manifest(origin, {
    requester: { http_method: "POST", request_body_json: { board: "{{ stream_partition['board'] }}" } },
    retriever: { partition_router: { type: "ListPartitionRouter", values: [long], cursor_field: "board" } },
    paginator: { ...cursorPages, pagination_strategy },
  });
  expect((await read(source)).records).toHaveLength(4);
  expect(asked).toEqual([null, ...tokens]);
  expect(new Set(bodies)).toEqual(new Set([JSON.stringify({ board: long })]));
});

test("a slip in a template's name ends the read, which would else end at its first page", async () => {
  const origin = await vendor((_request, response) => json(response, { items: [{ id: 1 }], next: "more" }));
  const pagination_strategy = { type: "CursorPagination", cursor_value: "{{ respone.next }}" };
  await expect(read(manifest(origin, { paginator: { ...cursorPages, pagination_strategy } }))).rejects.toThrow(
    "templates have no 'respone'",
  );
});

test("a token that is no text goes into a header as Python writes it, and an empty page has no last record", async () => {
  const asked: unknown[] = [];
  const tokens = [true, [1, 2], { a: 1 }];
  const origin = await vendor(({ headers }, response) => {
    asked.push(headers["x-after"]);
    json(response, { items: asked.length > 3 ? [] : [{ id: asked.length }], next: tokens[asked.length - 1] ?? "on" });
  });
  const source = manifest(origin, {
    paginator: {
      page_token_option: { type: "RequestOption", inject_into: "header", field_name: "X-After" },
      pagination_strategy: {
        type: "CursorPagination",
        cursor_value: "{{ response.next }}",
        stop_condition: "{{ last_record is none }}",
      },
    },
  });
  expect((await read(source)).records).toHaveLength(3);
  expect(asked).toEqual([undefined, "True", "[1, 2]", "{'a': 1}"]);
});

test("a hostile manifest reaches no private address, no file, and does not pollute", async () => {
  const egress = createEgress();
  onTestFinished(() => egress.close());
  const attempt = async (source: string): Promise<unknown> => {
    const connector = createConnector(source, {
      config: {},
      dispatcher: egress.dispatcher,
      signal: AbortSignal.timeout(5000),
    });
    for await (const event of (await connector.stream("items")).read()) return event;
    return undefined;
  };
  const noRetry = { error_handler: { type: "DefaultErrorHandler", max_retries: 0 } };
  for (const url of [
    "http://169.254.169.254/latest",
    "http://127.0.0.1:1/",
    "http://[::ffff:10.0.0.1]/",
    "http://localhost.:80/",
  ])
    await expect(attempt(manifest(url, { requester: noRetry })), url).rejects.toMatchObject({ code: "egress_blocked" });
  for (const url of ["file:///etc/passwd", "gopher://x/", "data:application/json,{}"])
    await expect(attempt(manifest(url, { requester: noRetry })), url).rejects.toMatchObject({ code: "egress_blocked" });
  const circular = JSON.parse(manifest("http://x.test"));
  circular.definitions = { a: { $ref: "#/definitions/b" }, b: { $ref: "#/definitions/a" } };
  await expect(attempt(JSON.stringify(circular))).rejects.toThrow(/circular reference/);
  const polluting = manifest("http://x.test").replace('"version"', '"__proto__": {"polluted": 1}, "version"');
  await attempt(polluting).catch(() => {});
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
  const endless = {
    type: "DatetimeBasedCursor",
    cursor_field: "at",
    datetime_format: "%s",
    start_datetime: "1970-01-01",
    step: "PT1S",
    cursor_granularity: "PT1S",
  };
  await expect(attempt(manifest("http://x.test", { sync: endless }))).rejects.toThrow(/more than 100000 intervals/);
});

test("a query that stands in the path is sent as it is written", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [] });
  });
  await read(manifest(origin, { requester: { path: "index.php?/api/v2/items", request_parameters: { limit: "5" } } }));
  expect(asked).toEqual(["/index.php?/api/v2/items&limit=5"]);
});
