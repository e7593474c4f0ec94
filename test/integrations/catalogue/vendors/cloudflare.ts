// Cloudflare's API v4: page numbers, `result_info`, records of a zone below it.
import { bearer } from "../auth.ts";
import { type Collection, type Item, isoMs, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const listed = (path: string, max: number, record: (item: Item) => Record<string, unknown>): Collection => ({
  url: `https://api.cloudflare.com/client/v4/${path}`,
  optional: ["order", "direction", "name"],
  pages: { kind: "number", at: "page", size: "per_page", default: 20, max },
  record,
  answer: ({ records, number, size, total }: PageOf) => ({
    ...{ success: true, errors: [], messages: [], result: records },
    result_info: {
      ...{ page: number, per_page: size, count: records.length, total_count: total },
      total_pages: Math.ceil(total / size),
    },
  }),
});

const docs = "https://developers.cloudflare.com/api/resources";

export default {
  documentation: [
    `${docs}/zones/methods/list/`,
    `${docs}/accounts/methods/list/`,
    `${docs}/dns/subresources/records/methods/list/`,
    "https://developers.cloudflare.com/fundamentals/api/reference/limits/",
  ],
  config: { api_token: "secret-token" },
  auth: bearer("secret-token"),
  unauthorized: {
    status: 403,
    body: { success: false, errors: [{ code: 9109, message: "Invalid access token" }], messages: [], result: null },
  },
  limited: retryAfter({ success: false, errors: [{ code: 971, message: "Please wait and consider throttling." }] }),
  collections: {
    zones: listed("zones", 50, ({ n, time }) => ({
      ...{ id: `zone${n}`, name: `example${n}.com`, status: "active", paused: false, type: "full" },
      ...{ plan: { id: "free", name: "Free Website" }, created_on: "2025-01-01T00:00:00.000000Z" },
      modified_on: isoMs(time),
    })),
    accounts: listed("accounts", 50, ({ n }) => ({
      ...{ id: `account${n}`, name: `Account ${n}`, type: "standard", created_on: "2025-01-01T00:00:00.000000Z" },
    })),
    dns_records: {
      ...listed("zones/:zone/dns_records", 5_000_000, ({ n, time, parent }) => ({
        ...{ id: `record${n}`, name: `www.${parent["name"]}`, type: "A", content: "192.0.2.1", ttl: 1, proxied: true },
        ...{ comment: null, created_on: "2025-01-01T00:00:00Z", modified_on: isoMs(time) },
      })),
      parent: { of: "zones", at: { path: "zone" }, key: ({ id }) => String(id) },
      expect: (record, { id }) => ({ ...record, zone_id: id }),
    },
  },
} satisfies Vendor;
