// Klaviyo: JSON:API with a dated revision, filters as expressions, the next page as a link.
import { header } from "../auth.ts";
import { type Ask, type Collection, type Item, isoTime, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

/** Times with an offset, as the vendor writes them. */
const offset = (time: Date): string => time.toISOString().replace(/\.000Z$/, "+00:00");

interface Listed {
  /** The fields and the comparisons that the page of the resource allows. */
  readonly filter?: { readonly field: string; readonly operator: "greater-than" | "greater-or-equal" };
  readonly sizes?: { readonly default: number; readonly max: number };
  readonly fixed?: number;
  readonly channels?: readonly string[];
  readonly attributes: (item: Item, changed: string) => object;
}

const comparisons = ({ query }: Ask): string[] => (query.get("filter") ?? "").match(/[\w-]+\([^)]*\)/g) ?? [];

const since =
  (field: string, operator: string) =>
  (ask: Ask): string | undefined =>
    comparisons(ask)
      .map((each) => /^([\w-]+)\(([\w.]+),([^)]*)\)$/.exec(each))
      .find((each) => each?.[1] === operator && each[2] === field)?.[3];

const channelOf = (ask: Ask): string | undefined =>
  /equals\(messages\.channel,['"](\w+)['"]\)/.exec(ask.query.get("filter") ?? "")?.[1];

function listed(name: string, { filter, sizes, fixed = 10, channels, attributes }: Listed): Collection {
  const field = filter?.field ?? "";
  const type = name.replace(/s$/, "");
  return {
    url: `https://a.klaviyo.com/api/${name}`,
    headers: { revision: /^\d{4}-\d\d-\d\d$/, accept: "application/vnd.api+json" },
    optional: ["filter", "sort", "include", `fields[${type}]`],
    body(_body, ask) {
      if (ask.query.getAll("filter").length > 1) return "filter is there twice";
      const known = comparisons(ask).filter((each) => each.startsWith(`${filter?.operator}(${field},`)).length;
      if (comparisons(ask).length > known + (channels ? 1 : 0)) return "the filter has what is not allowed";
      if (channels && !channels.includes(channelOf(ask) ?? "")) return "a messages.channel filter is required";
      return [null, field, `-${field}`].includes(ask.query.get("sort")) ? undefined : "sort is not allowed";
    },
    pages: { kind: "cursor", at: "page[cursor]", ...(sizes ? { size: "page[size]", ...sizes } : { default: fixed }) },
    ...(filter
      ? {
          since: {
            at: since(field, filter.operator),
            read: isoTime,
            inclusive: filter.operator === "greater-or-equal",
          },
        }
      : {}),
    order: "oldest first",
    record: (item) => ({
      ...{ type, id: `01GDDKASAP8TKDDA2GRZDSVP${item.n}`, attributes: { ...attributes(item, offset(item.time)) } },
      ...{ links: { self: `https://a.klaviyo.com/api/${name}/${item.n}/` }, relationships: {} },
    }),
    ...(filter
      ? { expect: (record) => ({ ...record, [field]: (record["attributes"] as Record<string, unknown>)[field] }) }
      : {}),
    answer: ({ records, nextUrl, ask }: PageOf) => ({
      data: records,
      links: { self: ask.url.href, first: null, last: null, prev: null, next: nextUrl },
    }),
  };
}

const newer = { field: "updated", operator: "greater-than" } as const;
const created = "2026-01-02T03:04:05+00:00";
const channels = ["email", "sms", "mobile_push"];

const campaigns = listed("campaigns", {
  filter: { field: "updated_at", operator: "greater-or-equal" },
  channels,
  attributes: ({ n }, changed) => ({
    ...{ name: `Campaign ${n}`, status: "Draft", archived: false, audiences: { included: ["Y6nRLr"], excluded: [] } },
    ...{
      send_strategy: { method: "immediate" },
      created_at: created,
      scheduled_at: null,
      updated_at: changed,
      send_time: null,
    },
  }),
});

export default {
  documentation: [
    "https://developers.klaviyo.com/en/reference/api_overview",
    "https://developers.klaviyo.com/en/docs/rate_limits_and_error_handling",
    "https://developers.klaviyo.com/en/reference/get_profiles",
    "https://developers.klaviyo.com/en/reference/get_events",
    "https://developers.klaviyo.com/en/reference/get_metrics",
    "https://developers.klaviyo.com/en/reference/get_lists",
    "https://developers.klaviyo.com/en/reference/get_segments",
    "https://developers.klaviyo.com/en/reference/get_flows",
    "https://developers.klaviyo.com/en/reference/get_campaigns",
  ],
  config: { api_key: "secret-klaviyo", start_date: "2026-01-01T00:00:00Z" },
  auth: header("authorization", "Klaviyo-API-Key secret-klaviyo"),
  unauthorized: {
    status: 401,
    body: {
      errors: [
        { status: 401, code: "not_authenticated", title: "Authentication failed.", detail: "Missing or invalid key." },
      ],
    },
  },
  limited: retryAfter({ errors: [{ status: 429, code: "throttled", detail: "Request was throttled." }] }),
  collections: {
    metrics: listed("metrics", {
      fixed: 200,
      attributes: ({ n }, updated) => ({ name: `Metric ${n}`, created, updated, integration: { name: "API" } }),
    }),
    profiles: listed("profiles", {
      filter: newer,
      sizes: { default: 20, max: 100 },
      attributes: ({ n }, updated) => ({
        ...{ email: `sarah${n}@example.com`, phone_number: "+15005550006", external_id: null, first_name: "Sarah" },
        ...{ organization: "Example", locale: "en-US", image: null, created, updated, last_event_date: null },
        ...{
          location: { address1: "89 E 42nd St", city: "New York", zip: "10017" },
          properties: { pseudonym: "Dr. Octopus" },
        },
      }),
    }),
    events: listed("events", {
      filter: { field: "datetime", operator: "greater-or-equal" },
      sizes: { default: 200, max: 200 },
      attributes: ({ n, time }, datetime) => ({
        ...{
          timestamp: Math.floor(time.getTime() / 1000),
          datetime,
          uuid: `uuid-${n}`,
          event_properties: { value: 9.99 },
        },
      }),
    }),
    lists: listed("lists", {
      filter: newer,
      attributes: ({ n }, updated) => ({ name: `List ${n}`, created, updated, opt_in_process: "double_opt_in" }),
    }),
    segments: listed("segments", {
      filter: newer,
      attributes: ({ n }, updated) => ({
        ...{ name: `Segment ${n}`, created, updated, is_active: true, is_processing: false, is_starred: false },
        definition: { condition_groups: [] },
      }),
    }),
    flows: listed("flows", {
      filter: { field: "updated", operator: "greater-or-equal" },
      sizes: { default: 50, max: 50 },
      attributes: ({ n }, updated) => ({
        ...{ name: `Flow ${n}`, status: "draft", archived: false, created, updated, trigger_type: "Added to List" },
      }),
    }),
    campaigns: {
      ...campaigns,
      // One channel's are not the other's.
      parent: { of: "channels", at: channelOf, key: ({ id }) => String(id) },
    },
    channels: {
      url: "https://a.klaviyo.com/no-address",
      pages: { kind: "none" },
      parents: channels.length,
      record: ({ n }) => ({ id: channels[n - 1] }),
      answer: () => ({}),
    },
  },
} satisfies Vendor;
