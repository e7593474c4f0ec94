// Datadog: v1 by page or offset, v2 by page[number] or cursor. Two keys in headers; the limit's end in seconds.
import { all, header } from "../auth.ts";
import { type Collection, isoMs, isoTime, type PageOf, seconds, type Vendor } from "../vendor.ts";

const api = "https://api.datadoghq.eu/api";

const bySeconds = (text: string): number => (/^\d{13}$/.test(text) ? Number(text) : isoTime(text));

const cursored = ({ records, next }: PageOf) => ({
  data: records,
  meta: { elapsed: 132, status: "done", ...(next === null ? {} : { page: { after: next } }) },
});

const withTime: Collection["expect"] = (record) => ({
  ...record,
  timestamp: (record["attributes"] as { timestamp: string }).timestamp,
});

export default {
  documentation: [
    "https://docs.datadoghq.com/api/latest/authentication/",
    "https://docs.datadoghq.com/api/latest/rate-limits/",
    "https://docs.datadoghq.com/api/latest/monitors/#get-all-monitor-details",
    "https://docs.datadoghq.com/api/latest/dashboards/#get-all-dashboards",
    "https://docs.datadoghq.com/api/latest/service-level-objectives/#get-all-slos",
    "https://docs.datadoghq.com/api/latest/users/#list-all-users",
    "https://docs.datadoghq.com/api/latest/logs/#search-logs-post",
    "https://docs.datadoghq.com/api/latest/events/#get-a-list-of-events",
  ],
  config: {
    ...{ site: "datadoghq.eu", api_key: "secret-api", application_key: "secret-app" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: all(header("dd-api-key", "secret-api"), header("dd-application-key", "secret-app")),
  unauthorized: { status: 403, body: { errors: ["Forbidden"] } },
  limited: {
    ...{ status: 429, body: { errors: ["Rate limit of 300 requests in 3600 seconds reached."] }, seconds: 7 },
    headers: { "x-ratelimit-limit": "300", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "7" },
  },
  collections: {
    monitors: {
      url: `${api}/v1/monitor`,
      optional: ["group_states", "name", "tags", "monitor_tags", "with_downtimes"],
      pages: { kind: "number", first: 0, at: "page", size: "page_size", default: 100, max: 1000 },
      record: ({ n, time }) => ({
        ...{ id: n, name: `Monitor ${n}`, type: "metric alert", query: "avg(last_5m):avg:x{*} > 1", message: "" },
        ...{ multi: false, priority: null, overall_state: "OK", tags: ["team:web"], restricted_roles: null },
        ...{ options: { notify_no_data: false }, creator: { email: "a@example.com" }, deleted: null },
        ...{ created: "2025-06-01T10:00:00.123456+00:00", modified: isoMs(time) },
      }),
      answer: ({ records }: PageOf) => records,
    },
    dashboards: {
      url: `${api}/v1/dashboard`,
      optional: ["filter[shared]", "filter[deleted]"],
      pages: { kind: "offset", at: "start", size: "count", default: 100, max: 1000 },
      record: ({ n, time }) => ({
        ...{ id: `abc-def-${n}`, title: `Dashboard ${n}`, description: null, layout_type: "ordered" },
        ...{ is_read_only: false, author_handle: "a@example.com", url: `/dashboard/abc-def-${n}` },
        ...{ created_at: "2025-06-01T10:00:00.123456+00:00", modified_at: isoMs(time) },
      }),
      answer: ({ records }: PageOf) => ({ dashboards: records }),
    },
    slos: {
      url: `${api}/v1/slo`,
      optional: ["ids", "query", "tags_query", "metrics_query"],
      pages: { kind: "offset", at: "offset", size: "limit", default: 1000, max: 1000 },
      record: ({ n, time }) => ({
        ...{
          id: `slo${n}`,
          name: `SLO ${n}`,
          type: "monitor",
          description: null,
          tags: [],
          groups: [],
          monitor_ids: [1],
        },
        ...{ monitor_tags: [], thresholds: [{ timeframe: "7d", target: 99.9 }], timeframe: "7d", query: null },
        ...{ target_threshold: 99.9, warning_threshold: 99.95, creator: { email: "a@example.com" } },
        ...{ created_at: 1_750_000_000, modified_at: seconds(time) },
      }),
      answer: ({ records, total }: PageOf) => ({
        ...{ data: records, errors: [] },
        metadata: { page: { total_count: total, total_filtered_count: total } },
      }),
    },
    users: {
      url: `${api}/v2/users`,
      optional: ["sort", "sort_dir", "filter", "filter[status]"],
      pages: { kind: "number", first: 0, at: "page[number]", size: "page[size]", default: 10, max: 100 },
      record: ({ n }) => ({
        ...{ id: `00000000-0000-0000-0000-${n}`, type: "users", relationships: { roles: { data: [] } } },
        attributes: { name: `User ${n}`, email: `user${n}@example.com`, status: "Active", disabled: false },
      }),
      answer: ({ records, total }: PageOf) => ({ data: records, meta: { page: { total_count: total } } }),
    },
    logs: {
      ...{ url: `${api}/v2/logs/events/search`, method: "POST", order: "oldest first", expect: withTime },
      body(body) {
        const other = Object.keys(body).find((name) => !["filter", "options", "page", "sort"].includes(name));
        if (other) return `Additional property ${other} is not allowed`;
        return body["sort"] === "timestamp" ? undefined : "this mock sorts by timestamp";
      },
      pages: { kind: "cursor", at: { body: "page.cursor" }, size: { body: "page.limit" }, default: 10, max: 1000 },
      since: { at: { body: "filter.from" }, read: bySeconds },
      until: { at: { body: "filter.to" }, read: bySeconds },
      record: ({ n, time }) => ({
        ...{ id: `AAAAAWgN8Xwgr1vKDQAAAABBV2dOOFh3ZzZobm1${n}`, type: "log" },
        attributes: { timestamp: isoMs(time), host: "i-0123", message: "Host connected", status: "INFO", tags: [] },
      }),
      answer: cursored,
    },
    events: {
      ...{ url: `${api}/v2/events`, params: { sort: "timestamp" }, optional: ["filter[query]"], expect: withTime },
      pages: { kind: "cursor", at: "page[cursor]", size: "page[limit]", default: 10, max: 1000 },
      since: { at: "filter[from]", read: bySeconds },
      until: { at: "filter[to]", read: bySeconds },
      order: "oldest first",
      record: ({ n, time }) => ({
        ...{ id: `AQAAAX${n}`, type: "event" },
        attributes: { timestamp: isoMs(time), message: "Deployed", tags: ["source:ci"], attributes: { title: "x" } },
      }),
      answer: cursored,
    },
  },
} satisfies Vendor;
