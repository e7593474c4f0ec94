// Pipedrive's API v2: a key in a header, cursors in `additional_data`, `updated_since`, and a rate limit that resets after some seconds.
import { header } from "../auth.ts";
import { type Collection, type Item, iso, isoTime, type Vendor } from "../vendor.ts";

const entity = (name: string, record: (item: Item) => Record<string, unknown>): Collection => ({
  url: `https://acme.pipedrive.com/api/v2/${name}`,
  optional: ["sort_by", "sort_direction", "updated_until"],
  pages: { kind: "cursor", at: "cursor", size: "limit", default: 100, max: 500 },
  since: { at: "updated_since", read: isoTime },
  record: (item) => ({ id: item.n, ...record(item), add_time: "2025-01-01T00:00:00Z", update_time: iso(item.time) }),
  answer: ({ records, next }) => ({ success: true, data: records, additional_data: { next_cursor: next } }),
});

export default {
  documentation: [
    "https://pipedrive.readme.io/docs/core-api-concepts-authentication",
    "https://pipedrive.readme.io/docs/core-api-concepts-rate-limiting",
    "https://developers.pipedrive.com/docs/api/v1/Deals#getDeals",
    "https://developers.pipedrive.com/docs/api/v1/Persons#getPersons",
    "https://developers.pipedrive.com/docs/api/v1/Organizations#getOrganizations",
  ],
  config: { company_domain: "acme", api_token: "secret-token", start_date: "2026-01-01T00:00:00Z" },
  auth: header("x-api-token", "secret-token"),
  unauthorized: { status: 401, body: { success: false, error: "unauthorized access", errorCode: 401 } },
  limited: {
    ...{ status: 429, body: { success: false, error: "request over limit", errorCode: 429 }, seconds: 2 },
    headers: { "x-ratelimit-limit": "80", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "2" },
  },
  collections: {
    deals: entity("deals", ({ n }) => ({
      ...{ title: `Deal ${n}`, value: 10.5, currency: "EUR", status: "open", stage_id: 1, person_id: null, org_id: 4 },
    })),
    persons: entity("persons", ({ n }) => ({
      ...{ name: `Ann ${n}`, emails: [{ value: `ann${n}@example.com`, primary: true, label: "work" }] },
      ...{ phones: [], org_id: null },
    })),
    organizations: entity("organizations", ({ n }) => ({
      ...{ name: `Acme ${n}`, owner_id: 1, address: { value: "Main Street 1", country: "Germany" } },
    })),
  },
} satisfies Vendor;
