import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { definitionsFolder } from "#daemon/integrations/catalogue/catalogue.ts";
import { json, manifest, read, vendor } from "./one-stream.ts";

const constant = (seconds: number) => ({ type: "ConstantBackoffStrategy", backoff_time_in_seconds: seconds });

test.each<[string, Record<string, unknown>, Record<string, string>, number[]]>([
  ["constant", constant(3), {}, [3, 3]],
  ["exponential", { type: "ExponentialBackoffStrategy", factor: 2 }, {}, [4, 8]],
  ["a header", { type: "WaitTimeFromHeader", header: "X-Wait" }, { "x-wait": "7" }, [7, 7]],
  ["a part of a header", { type: "WaitTimeFromHeader", header: "X-Wait", regex: "\\d+" }, { "x-wait": "9 s" }, [9, 9]],
  ["no such header", { type: "WaitUntilTimeFromHeader", header: "X-Reset", min_wait: 5 }, {}, [5, 5]],
  [
    "a time gone by",
    { type: "WaitUntilTimeFromHeader", header: "X-Reset", min_wait: 5 },
    { "x-reset": "1000" },
    [5, 5],
  ],
  ["none of the manifest's", { type: "WaitTimeFromHeader", header: "X-Wait" }, { "retry-after": "11" }, [11, 11]],
])("waits as the manifest says: %s", async (_name, strategy, headers, expected) => {
  let refusals = 2;
  const origin = await vendor((_request, response) => {
    if (refusals-- > 0) json(response, {}, 503, headers);
    else json(response, { items: [{ id: 1 }] });
  });
  const waits: number[] = [];
  const handler = { type: "DefaultErrorHandler", backoff_strategies: [strategy] };
  await read(manifest(origin, { requester: { error_handler: handler } }), { waits });
  expect(waits).toEqual(expected);
});

test("a filter without a text to look for does not match every answer", async () => {
  const origin = await vendor((_request, response) => json(response, { message: "gone" }, 410));
  const response_filters = [
    { error_message_contains: "{{ config['x'] }}", action: "IGNORE" },
    { error_message_contains: "", action: "IGNORE" },
  ];
  const error_handler = { type: "DefaultErrorHandler", response_filters };
  await expect(read(manifest(origin, { requester: { error_handler } }))).rejects.toThrow("answered 410: gone");
});

test("a text to look for is looked for in what an answer says of its error, not in its records", async () => {
  const bodies = [
    { items: [{ id: 1, note: "access denied to the old door" }] },
    { items: [{ id: 2, note: `access denied${" ".repeat(100_000)}` }] },
    { error: { message: "access denied" } },
    { items: [{ id: 9 }] },
  ];
  const origin = await vendor((_request, response) => json(response, bodies.shift()));
  const error_handler = {
    ...{ type: "DefaultErrorHandler", backoff_strategies: [constant(1)] },
    response_filters: [{ error_message_contains: "access denied", action: "RETRY" }],
  };
  const pagination_strategy = { type: "PageIncrement", page_size: 1 };
  const paginator = {
    pagination_strategy,
    page_token_option: { inject_into: "request_parameter", field_name: "page" },
  };
  const waits: number[] = [];
  const source = manifest(origin, { requester: { error_handler }, paginator });
  bodies.push({ items: [] });
  expect((await read(source, { waits })).records.map(({ id }) => id)).toEqual([1, 2, 9]);
  expect(waits).toEqual([1]);
});

test("a number of tries that is none does not make them endless", async () => {
  const origin = await vendor((_request, response) => json(response, {}, 503));
  const error_handler = { type: "DefaultErrorHandler", max_retries: "{{ config['tries'] }}" };
  const source = manifest(origin, { requester: { error_handler } });
  await expect(read(source, { config: { tries: "many" }, waits: [] })).rejects.toThrow("(after 6 tries)");
});

test("of several handlers the one that knows the answer decides; tries are counted as they say", async () => {
  let tries = 0;
  const origin = await vendor((_request, response) => {
    tries++;
    json(response, { code: "busy" }, 409);
  });
  const handlers = [
    { type: "DefaultErrorHandler", max_retries: 2, response_filters: [{ http_codes: [418], action: "IGNORE" }] },
    {
      ...{ type: "DefaultErrorHandler", max_retries: 1, backoff_strategies: [constant(1)] },
      response_filters: [{ predicate: "{{ response.code == 'busy' }}", action: "RETRY", error_message: "busy" }],
    },
  ];
  const error_handler = { type: "CompositeErrorHandler", error_handlers: handlers };
  const waits: number[] = [];
  await expect(read(manifest(origin, { requester: { error_handler } }), { waits })).rejects.toThrow(
    "busy (after 3 tries)",
  );
  expect([tries, waits]).toEqual([3, [1, 1]]);
});

test("what the first of several handlers would ask again, a later one does not pass over", async () => {
  const ignoring = (codes: number[]) => ({
    ...{ type: "DefaultErrorHandler", max_retries: 1 },
    response_filters: [{ http_codes: codes, action: "IGNORE" }],
  });
  for (const [first, later, asked, ids] of [
    [[404], [500], 2, [1]],
    [[500], [404], 1, []],
  ] as const) {
    let tries = 0;
    const origin = await vendor((_request, response) =>
      tries++ === 0 ? json(response, {}, 500) : json(response, { items: [{ id: 1 }] }),
    );
    const error_handlers = [ignoring([...first]), ignoring([...later])];
    const requester = { error_handler: { type: "CompositeErrorHandler", error_handlers } };
    const { records } = await read(manifest(origin, { requester }), { waits: [] });
    expect([tries, records.map(({ id }) => id)]).toEqual([asked, ids]);
  }
});

test("a status that may pass is asked again, one that says the request is wrong is not", async () => {
  for (const [status, tries] of [
    [409, 2],
    [423, 2],
    [410, 1],
    [422, 1],
  ] as const) {
    let asked = 0;
    const origin = await vendor((_request, response) => json(response, { items: [] }, asked++ === 0 ? status : 200));
    await read(manifest(origin), { waits: [] }).catch(() => {});
    expect([status, asked]).toEqual([status, tries]);
  }
});

test("who has no token to refresh asks again; who was refused does not", async () => {
  const filter = { type: "HttpResponseFilter", http_codes: [418, 401], action: "REFRESH_TOKEN_THEN_RETRY" };
  const error_handler = { type: "DefaultErrorHandler", response_filters: [filter] };
  for (const [status, tries] of [
    [418, 2],
    [401, 1],
  ] as const) {
    let asked = 0;
    const origin = await vendor((_request, response) => json(response, { items: [] }, asked++ === 0 ? status : 200));
    await read(manifest(origin, { requester: { error_handler } }), { waits: [] }).catch(() => {});
    expect([status, asked]).toEqual([status, tries]);
  }
});

test("an answer that is no error is read although the manifest says to ignore it", async () => {
  const origin = await vendor((_request, response) => json(response, { partial: true, items: [{ id: 1 }] }));
  const response_filters = [{ type: "HttpResponseFilter", predicate: "{{ response.partial }}", action: "IGNORE" }];
  const error_handler = { type: "DefaultErrorHandler", response_filters };
  expect((await read(manifest(origin, { requester: { error_handler } }))).records).toEqual([{ id: 1 }]);
});

test("an error that the manifest calls a success ends the reading, and its answer is no record", async () => {
  const pages = [[{ id: 1 }], [{ id: 2 }]];
  const origin = await vendor((_request, response) => {
    const page = pages.shift();
    json(response, page ?? { message: "there is no such page" }, page ? 200 : 404);
  });
  const response_filters = [{ type: "HttpResponseFilter", http_codes: [404], action: "SUCCESS" }];
  const paginator = {
    pagination_strategy: { type: "PageIncrement", page_size: 1 },
    page_token_option: { inject_into: "request_parameter", field_name: "page" },
  };
  const parts = { requester: { error_handler: { type: "DefaultErrorHandler", response_filters } }, paginator };
  const retriever = { record_selector: { extractor: { type: "DpathExtractor", field_path: [] } } };
  const { records } = await read(manifest(origin, { ...parts, retriever }));
  expect(records).toEqual([{ id: 1 }, { id: 2 }]);
});

test("a filter without an action says what a failure means, and decides nothing", async () => {
  const answers: [number, unknown][] = [
    [503, {}],
    [200, { items: [{ id: 1 }] }],
    [403, {}],
    [404, {}],
  ];
  const origin = await vendor((_request, response) => {
    const [status, body] = answers.shift() ?? [500, {}];
    json(response, body, status);
  });
  const response_filters = [
    { http_codes: [200, 403, 404, 503], failure_type: "config_error", error_message: "check the plan" },
    { http_codes: [404], action: "IGNORE" },
  ];
  const source = manifest(origin, { requester: { error_handler: { type: "DefaultErrorHandler", response_filters } } });
  expect((await read(source, { waits: [] })).records).toEqual([{ id: 1 }]);
  await expect(read(source)).rejects.toThrow("check the plan");
  expect((await read(source)).records).toEqual([]);
});

test("a wait is read from the answer, headers are found however they are written, and filters know the address", async () => {
  const answers: [number, unknown, Record<string, string>][] = [
    [503, { retry: { after: 7 } }, {}],
    [503, "later", {}],
    [403, {}, { "X-RateLimit-Remaining": "0" }],
    [404, {}, {}],
  ];
  const origin = await vendor((_request, response) => {
    const [status, body, headers] = answers.shift() ?? [200, { items: [] }, {}];
    json(response, body, status, headers);
  });
  const filter = (predicate: string) => ({ type: "HttpResponseFilter", predicate, action: "RETRY" });
  const error_handler = {
    type: "DefaultErrorHandler",
    response_filters: [
      filter("{{ headers.get('X-RateLimit-Remaining') == '0' }}"),
      filter("{{ status_code == 404 and request_url.endswith('/items') }}"),
    ],
    backoff_strategies: [
      { type: "WaitTimeFromResponse", wait_time_in_seconds: "{{ response.retry.after }}" },
      { type: "ConstantBackoffStrategy", backoff_time_in_seconds: 3 },
    ],
  };
  const waits: number[] = [];
  const request_parameters = { key: "secret" };
  await read(manifest(origin, { requester: { error_handler, request_parameters } }), { waits });
  expect(waits).toEqual([7, 3, 3, 3]);
});

test("GitHub's quota is waited for where no calls are left, and not after a moment's trouble", async () => {
  const limit = (remaining: number) => ({
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(Math.round(Date.now() / 1000) + 1800),
  });
  const answers: [number, unknown, Record<string, string>][] = [
    [502, { message: "Server Error" }, limit(4999)],
    [403, { message: "API rate limit exceeded" }, limit(0)],
    [200, [{ id: 1, full_name: "a/b" }], limit(5000)],
  ];
  const origin = await vendor((_request, response) => {
    const [status, body, headers] = answers.shift() ?? [500, {}, {}];
    json(response, body, status, headers);
  });
  const source = readFileSync(join(definitionsFolder(), "github.yaml"), "utf8");
  const waits: number[] = [];
  const config = { api_url: origin, access_token: "t" };
  const { records } = await read(source, { stream: "repositories", config, waits });
  expect(records).toHaveLength(1);
  expect(waits[0]).toBe(60);
  expect(Math.abs(waits.reduce((sum, wait) => sum + wait) - 1800)).toBeLessThan(5);
});
