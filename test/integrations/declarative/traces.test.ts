// What real manifests mean, written out by hand: the requests of a read, and of the next one from its state, at noon of 10 March 2026.
import { Agent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { vendor } from "./one-stream.ts";
import { folder, read, textOf } from "./read-twice.ts";

interface Trace {
  readonly config: Readonly<Record<string, unknown>>;
  /** The body of an answer, and its Link header. */
  answer(url: URL): { readonly body: unknown; readonly link?: string };
  /** `host/path`, and the query sorted and decoded; without the parameters in `apart`. */
  readonly asks: readonly string[];
  readonly records: number;
  /** The requests of the read that goes on from the state. */
  readonly next?: readonly string[];
  readonly apart?: readonly string[];
  /** Headers that every request has, or every one but a login. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The bodies that were sent. */
  readonly bodies?: readonly unknown[];
}

const NOON = Date.UTC(2026, 2, 10, 12);
const ids = (count: number, more: object = {}) => Array.from({ length: count }, (_, id) => ({ id: `${id}`, ...more }));
const at = (url: URL, name: string): number => Number(url.searchParams.get(name) ?? 0);

const traces: Readonly<Record<string, Trace>> = {
  "callrail/calls": {
    config: { api_key: "k", account_id: "A", start_date: "2026-01-01" },
    answer: (url) => ({
      body: { calls: [{ id: 1, start_time: "2026-02-02T10:00:00.500+00:00" }] },
      ...(url.searchParams.get("page") === "2"
        ? {}
        : { link: '<https://api.callrail.com/v3/a/A/calls.json?page=2&per_page=100>; rel="next"' }),
    }),
    asks: [
      "api.callrail.com/v3/a/A/calls.json per_page=100 start_date=2026-01-01T00:00:00.000000+0000",
      "api.callrail.com/v3/a/A/calls.json page=2 per_page=100 start_date=2026-01-01T00:00:00.000000+0000",
    ],
    records: 2,
    next: [
      "api.callrail.com/v3/a/A/calls.json per_page=100 start_date=2026-02-02T10:00:00.500000+0000",
      "api.callrail.com/v3/a/A/calls.json page=2 per_page=100 start_date=2026-02-02T10:00:00.500000+0000",
    ],
    apart: ["fields"],
    headers: { authorization: "Token token=k" },
  },
  "exchange-rates/exchange_rates": {
    config: { access_key: "k", start_date: "2026-03-08" },
    answer: () => ({ body: { base: "EUR", date: "2026-03-09", rates: { USD: 1 } } }),
    asks: ["api.apilayer.com/exchangerates_data/latest date=2026-03-08"],
    records: 1,
    next: ["api.apilayer.com/exchangerates_data/latest date=2026-03-09"],
    headers: { apikey: "k" },
  },
  "calendly/event_types": {
    config: { api_key: "k", start_date: "2026-01-01T00:00:00Z" },
    answer: (url) =>
      url.pathname === "/users/me"
        ? { body: { resource: { uri: "me", current_organization: "https://api.calendly.com/organizations/O" } } }
        : {
            body: {
              collection: [
                {
                  uri: `e${url.search.length}`,
                  updated_at: url.searchParams.has("page_token")
                    ? "2026-02-01T00:00:00.000000Z"
                    : "2026-03-01T00:00:00.000000Z",
                },
              ],
              pagination: { next_page_token: url.searchParams.has("page_token") ? null : "n2" },
            },
          },
    asks: [
      "api.calendly.com/users/me",
      "api.calendly.com/event_types organization=https://api.calendly.com/organizations/O sort=updated_at:desc",
      "api.calendly.com/event_types organization=https://api.calendly.com/organizations/O page_token=n2 sort=updated_at:desc",
    ],
    records: 2,
    // Newest first: the second page reaches back to what was read.
    next: [
      "api.calendly.com/users/me",
      "api.calendly.com/event_types organization=https://api.calendly.com/organizations/O sort=updated_at:desc",
      "api.calendly.com/event_types organization=https://api.calendly.com/organizations/O page_token=n2 sort=updated_at:desc",
    ],
    headers: { authorization: "Bearer k" },
  },
  "clockify/users": {
    config: { api_key: "k", workspace_id: "W" },
    answer: (url) => ({ body: ids(url.searchParams.has("page") ? 1 : 50) }),
    asks: [
      "api.clockify.me/api/v1/workspaces/W/users page-size=50",
      "api.clockify.me/api/v1/workspaces/W/users page-size=50 page=1",
    ],
    records: 51,
    headers: { "x-api-key": "k" },
  },
  "clockify/time_entries": {
    config: { api_key: "k", workspace_id: "W" },
    answer: (url) => ({ body: url.pathname.endsWith("/users") ? ids(2) : [] }),
    asks: [
      "api.clockify.me/api/v1/workspaces/W/users page-size=50",
      "api.clockify.me/api/v1/workspaces/W/user/0/time-entries page-size=50",
      "api.clockify.me/api/v1/workspaces/W/user/1/time-entries page-size=50",
    ],
    records: 0,
  },
  "close-com/users": {
    config: { api_key: "k" },
    answer: (url) => ({ body: { data: ids(at(url, "_skip") === 0 ? 1000 : 3) } }),
    asks: ["api.close.com/api/v1/user _limit=1000", "api.close.com/api/v1/user _limit=1000 _skip=1000"],
    records: 1003,
    headers: { authorization: `Basic ${Buffer.from("k:").toString("base64")}` },
  },
  "pexels-api/photos_search": {
    config: { api_key: "k", query: "sea & sand" },
    answer: () => ({ body: { page: 1, photos: [] } }),
    asks: ["api.pexels.com/v1/search per_page=1000 query=sea & sand"],
    records: 1,
    headers: { authorization: "k" },
  },
  "paystack/transactions": {
    config: { secret_key: "k", start_date: "2026-01-15T00:00:00Z" },
    answer: () => ({ body: { data: [{ id: 1, createdAt: "2026-03-01T00:00:00.000Z" }] } }),
    asks: [
      "api.paystack.co/transaction from=2026-01-15T00:00:00.000000Z page=1 perPage=200 to=2026-02-14T23:59:59.999999Z",
      "api.paystack.co/transaction from=2026-02-15T00:00:00.000000Z page=1 perPage=200 to=2026-03-10T00:00:00.000000Z",
    ],
    records: 2,
    // 31 days back from 1 March; a month after 29 January is 28 February.
    next: [
      "api.paystack.co/transaction from=2026-01-29T00:00:00.000000Z page=1 perPage=200 to=2026-02-27T23:59:59.999999Z",
      "api.paystack.co/transaction from=2026-02-28T00:00:00.000000Z page=1 perPage=200 to=2026-03-10T00:00:00.000000Z",
    ],
  },
  "trello/boards": {
    config: { key: "k", token: "t", start_date: "2026-01-01T00:00:00Z", board_ids: ["b1"] },
    answer: () => ({ body: [{ id: "b1" }, { id: "b2" }] }),
    asks: ["api.trello.com/1/members/me/boards since=2026-01-01T00:00:00Z"],
    records: 1,
    headers: { authorization: 'OAuth oauth_consumer_key="k", oauth_token="t"' },
  },
  // Its country hangs on a parameter that nobody gives.
  "tvmaze-schedule/domestic": {
    config: { start_date: "2026-03-08", end_date: "2026-03-10", domestic_schedule_country_code: "US" },
    answer: (url) => ({ body: [{ id: 1, airdate: url.searchParams.get("date") }] }),
    asks: ["08", "09", "10"].map((day) => `api.tvmaze.com/schedule date=2026-03-${day}`),
    records: 3,
    next: ["api.tvmaze.com/schedule date=2026-03-10"],
  },
  "zendesk-sell/call_outcomes": {
    config: { api_token: "k" },
    answer: (url) => ({ body: { items: ids(at(url, "page") < 3 ? 2 : 1).map((data) => ({ data, meta: {} })) } }),
    asks: ["per_page=2", "page=2 per_page=2", "page=3 per_page=2"].map(
      (query) => `api.getbase.com/v2/call_outcomes ${query}`,
    ),
    records: 5,
  },
  "tremendous/orders": {
    config: { api_key: "k", environment: "testflight" },
    answer: (url) => ({ body: { orders: ids(at(url, "offset") < 200 ? 100 : 0) } }),
    asks: ["limit=100", "limit=100 offset=100", "limit=100 offset=200"].map(
      (query) => `testflight.tremendous.com/api/v2/orders ${query}`,
    ),
    records: 200,
  },
  "yousign/signature_requests": {
    config: { api_key: "k", subdomain: "api-sandbox", limit: "50", start_date: "2026-01-01T00:00:00Z" },
    answer: (url) => ({
      body: {
        data: ids(1, { created_at: "2026-02-01T00:00:00+00:00" }),
        meta: { next_cursor: url.searchParams.has("after") ? null : "c 2" },
      },
    }),
    asks: [
      "api-sandbox.yousign.app/v3/signature_requests limit=50",
      "api-sandbox.yousign.app/v3/signature_requests after=c 2 limit=50",
    ],
    records: 2,
  },
  "thinkific/courses": {
    config: { api_key: "k", subdomain: "school" },
    answer: (url) => ({ body: { items: ids(at(url, "page") === 0 ? 250 : 0) } }),
    asks: [
      "api.thinkific.com/api/public/v1/courses limit=250",
      "api.thinkific.com/api/public/v1/courses limit=250 page=2",
    ],
    records: 250,
    headers: { "x-auth-api-key": "k", "x-auth-subdomain": "school" },
  },
  "plausible/stats": {
    config: { api_key: "k", site_id: "example.com" },
    answer: () => ({
      body: {
        results: [
          { date: "2026-03-01", bounce_rate: 5 },
          { date: "2026-03-02", bounce_rate: null },
        ],
      },
    }),
    asks: [
      "plausible.io/api/v1/stats/timeseries date=2019-01-01,2026-03-10 metrics=visitors,pageviews,bounce_rate,visit_duration,visits period=custom site_id=example.com",
    ],
    records: 1,
  },
  "wrike/customfields": {
    config: { access_token: "k", wrike_instance: "app-eu.wrike.com", start_date: "2026-01-01T00:00:00Z" },
    answer: (url) => ({ body: { data: [{ id: 1 }, { id: 2, ...(url.search ? {} : { nextPageToken: "n/2" }) }] } }),
    asks: ["app-eu.wrike.com/api/v4/customfields", "app-eu.wrike.com/api/v4/customfields nextPageToken=n/2"],
    records: 4,
  },
  "xsolla/games_catalog": {
    config: { api_key: "k", project_id: 44 },
    answer: (url) => ({ body: { items: ids(at(url, "offset") === 0 ? 50 : 49) } }),
    asks: ["offset=0", "offset=50"].map((query) => `store.xsolla.com/api/v2/project/44/items/game ${query}`),
    records: 99,
  },
  "teamwork/latestactivity": {
    config: { username: "u", password: "p", site_name: "acme", start_date: "2026-01-01T00:00:00Z" },
    answer: (url) => ({
      body: { activities: ids(at(url, "page") === 0 ? 10 : 2, { dateTime: "2026-02-01T00:00:00Z" }) },
    }),
    asks: ["page=0 pageSize=10", "page=10 pageSize=10"].map(
      (query) => `acme.teamwork.com/projects/api/v3/latestactivity.json ${query}`,
    ),
    records: 12,
    headers: { authorization: `Basic ${Buffer.from("u:p").toString("base64")}` },
  },
  "getlago/billable_metrics": {
    config: { api_key: "k" },
    answer: (url) => ({
      body: {
        billable_metrics: ids(1),
        meta: { next_page: at(url, "page") === 3 ? null : (at(url, "page") || 1) + 1 },
      },
    }),
    asks: ["per_page=100", "page=2 per_page=100", "page=3 per_page=100"].map(
      (query) => `api.getlago.com/api/v1/billable_metrics ${query}`,
    ),
    records: 3,
  },
  "senseforce/dataset": {
    config: {
      access_token: "k",
      backend_url: "https://galaxyapi.senseforce.io",
      dataset_id: "D",
      start_date: "2026-01-01",
    },
    answer: () => ({ body: [{ id: 1, timestamp: 1_772_323_200_000 }] }),
    asks: ["galaxyapi.senseforce.io/api/dataset/execute/D limit=10000"],
    records: 1,
    // From 1 January to noon of the last day and a day more, less a millisecond, in milliseconds; what it reads came on 1 March.
    next: ["galaxyapi.senseforce.io/api/dataset/execute/D limit=10000"],
    bodies: [
      [1_767_225_600_000, 1_773_230_399_999],
      [1_772_323_200_000, 1_773_230_399_999],
    ].map((values) => values.map((value) => expect.stringContaining(`{"value": ${value} }`))),
  },
  "jotform/submissions": {
    config: {
      api_key: "k",
      api_endpoint: { api_endpoint: "basic", url_prefix: "EU" },
      start_date: "2026-01-01T00:00:00Z",
      end_date: "2026-03-01T00:00:00Z",
    },
    answer: (url) => ({
      body: { content: ids(at(url, "offset") === 0 ? 20 : 1, { created_at: "2026-02-01 10:00:00" }) },
    }),
    asks: ["apiKey=k limit=20", "apiKey=k limit=20 offset=20"].map(
      (query) => `eu-api.jotform.com/user/submissions ${query}`,
    ),
    records: 21,
  },
};

test.skipIf(!folder).each(Object.entries(traces))("%s asks as its manifest means", async (place, trace) => {
  const [source = "", name = ""] = place.split("/");
  const asked: string[] = [];
  const bodies: string[] = [];
  const origin = await vendor((request, response) => {
    const query = [...request.at.searchParams].filter(([key]) => !trace.apart?.includes(key));
    asked.push(
      [`${request.headers.host}${request.at.pathname}`, ...query.map((pair) => pair.join("=")).sort()].join(" "),
    );
    if (request.body) bodies.push(request.body);
    for (const [header, value] of Object.entries(trace.headers ?? {})) expect.soft(request.headers[header]).toBe(value);
    const { body, link } = trace.answer(request.at);
    response.writeHead(200, { "content-type": "application/json", ...(link ? { link } : {}) });
    response.end(JSON.stringify(body));
  });
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const readTrace = async (state?: unknown) => {
    const clock = { now: () => NOON, monotonic: () => performance.now() };
    const options = { config: trace.config, dispatcher, rewrite: `*=${origin}`, clock, concurrency: 1 };
    const stream = await createConnector(textOf(`source-${source}`), options).stream(name);
    return read(stream, state);
  };
  const { records, state } = await readTrace();
  expect(asked).toEqual(trace.asks);
  expect(records).toBe(trace.records);
  if (trace.next) {
    asked.length = 0;
    await readTrace(state);
    expect(asked).toEqual(trace.next);
  }
  for (const [at, expected] of (trace.bodies ?? []).entries())
    for (const part of expected as unknown[]) expect(bodies[at]).toEqual(part);
});
