// HubSpot's CRM objects by their search: filters by the time of the last change and by id, at most 10,000 results a query.
import { bearer } from "../auth.ts";
import {
  type Ask,
  type Collection,
  type Item,
  isoMs,
  millisTime,
  type PageOf,
  retryAfter,
  type Vendor,
} from "../vendor.ts";

interface Condition {
  readonly propertyName: string;
  readonly operator: string;
  readonly value: unknown;
}

const filtersOf = (ask: Pick<Ask, "body">): Condition[] =>
  (ask.body as { filterGroups?: { filters?: Condition[] }[] } | undefined)?.filterGroups?.[0]?.filters ?? [];

const conditionOf = (ask: Ask, property: string, operator: string): string | undefined => {
  const found = filtersOf(ask).find((each) => each.propertyName === property && each.operator === operator);
  return found === undefined ? undefined : String(found.value);
};

const search = (name: string, changed: string): Collection => ({
  url: `https://api.hubapi.com/crm/v3/objects/${name}/search`,
  method: "POST",
  body(body, ask) {
    const unknown = Object.keys(body).find((key) => !["filterGroups", "sorts", "limit", "properties"].includes(key));
    if (unknown) return `${unknown} is not known`;
    const wrong = filtersOf(ask).find(({ propertyName }) => ![changed, "hs_object_id"].includes(propertyName));
    return wrong && `there is no property ${wrong.propertyName}`;
  },
  pages: {
    ...{ kind: "after", size: { body: "limit" }, default: 10, max: 200, key: ({ id }) => String(id) },
    at: (ask) => conditionOf(ask, "hs_object_id", "GT")?.replace(/^0$/, "") || undefined,
  },
  since: { at: (ask) => conditionOf(ask, changed, "GTE"), read: millisTime },
  record: ({ n, time }: Item) => ({
    ...{ id: String(n), properties: { hs_object_id: String(n), [changed]: isoMs(time) }, archived: false },
    ...{ createdAt: "2025-01-01T00:00:00.000Z", updatedAt: isoMs(time) },
  }),
  answer: ({ records, next, total }: PageOf) => ({
    ...{ total, results: records },
    ...(next === null ? {} : { paging: { next: { after: String(records.length) } } }),
  }),
});

export default {
  documentation: [
    "https://developers.hubspot.com/docs/api-reference/crm-contacts-v3/guide",
    "https://developers.hubspot.com/docs/api-reference/search/guide",
  ],
  config: { access_token: "secret-private-app", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-private-app"),
  unauthorized: {
    status: 401,
    body: { status: "error", message: "Authentication credentials not found.", category: "INVALID_AUTHENTICATION" },
  },
  limited: retryAfter({ status: "error", message: "You have reached your secondly limit.", errorType: "RATE_LIMIT" }),
  collections: {
    contacts: search("contacts", "lastmodifieddate"),
    companies: search("companies", "hs_lastmodifieddate"),
    deals: search("deals", "hs_lastmodifieddate"),
    tickets: search("tickets", "hs_lastmodifieddate"),
  },
} satisfies Vendor;
