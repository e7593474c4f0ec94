// Square: lists with a cursor in the query, searches by POST with it in the body; tokens by refresh token, with the time of their end.
import { oauth } from "../auth.ts";
import { type Ask, isoMs, isoTime, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const api = "https://connect.squareup.com/v2";
const headers = { "square-version": /^\d{4}-\d\d-\d\d$/ };

// The cursor is left out on the last page, and so is an empty list.
const answered =
  (member: string) =>
  ({ records, next }: PageOf) => ({
    ...(records.length ? { [member]: records } : {}),
    ...(next === null ? {} : { cursor: next }),
  });

const sortOf = (ask: Ask): Record<string, unknown> =>
  ((ask.body as { query?: { sort?: Record<string, unknown> } }).query?.sort ?? {}) as Record<string, unknown>;

const unknownIn = (body: Record<string, unknown>, known: readonly string[]): string | undefined => {
  const unknown = Object.keys(body).find((key) => !known.includes(key));
  return unknown && `${unknown} is not recognized`;
};

const byBody = { kind: "cursor", at: { body: "cursor" }, size: { body: "limit" } } as const;
const usd = (amount: number) => ({ amount, currency: "USD" });
const locationIn = (ask: Ask): string | undefined => {
  const { location_ids: ids = [] } = ask.body as { location_ids?: string[] };
  if (ids.length > 1) throw new Error("one location here");
  return ids[0];
};

export default {
  documentation: [
    "https://developer.squareup.com/reference/square/oauth-api/obtain-token",
    "https://developer.squareup.com/docs/build-basics/common-api-patterns/pagination",
    "https://developer.squareup.com/reference/square/locations-api/list-locations",
    "https://developer.squareup.com/reference/square/payments-api/list-payments",
    "https://developer.squareup.com/reference/square/refunds-api/list-payment-refunds",
    "https://developer.squareup.com/reference/square/customers-api/search-customers",
    "https://developer.squareup.com/reference/square/orders-api/search-orders",
    "https://developer.squareup.com/reference/square/catalog-api/search-catalog-objects",
  ],
  config: {
    ...{ client_id: "app-1", client_secret: "secret-app", refresh_token: "secret-refresh" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: oauth({
    url: "https://connect.squareup.com/oauth2/token",
    ...{ json: true, more: { expires_at: "2026-06-14T00:00:00Z", merchant_id: "M1", refresh_token: "secret-refresh" } },
    form: {
      ...{ grant_type: "refresh_token", client_id: "app-1", client_secret: "secret-app" },
      refresh_token: "secret-refresh",
    },
  }),
  unauthorized: {
    status: 401,
    body: {
      errors: [
        { category: "AUTHENTICATION_ERROR", code: "UNAUTHORIZED", detail: "This request could not be authorized." },
      ],
    },
  },
  limited: retryAfter({ errors: [{ category: "RATE_LIMIT_ERROR", code: "RATE_LIMITED", detail: "Slow down." }] }),
  collections: {
    locations: {
      ...{ url: `${api}/locations`, headers, pages: { kind: "none" }, answer: answered("locations") },
      record: ({ n }) => ({
        ...{
          id: `L${n}`,
          name: "Grant Park",
          address: { address_line_1: "123 Main St", country: "US" },
          status: "ACTIVE",
        },
        ...{
          timezone: "America/Los_Angeles",
          capabilities: ["CREDIT_CARD_PROCESSING"],
          country: "US",
          currency: "USD",
        },
        ...{ created_at: "2026-01-19T17:33:19Z", merchant_id: "M1", language_code: "en-US", mcc: "7299" },
      }),
    },
    payments: {
      ...{ url: `${api}/payments`, headers, answer: answered("payments"), order: "oldest first" },
      params: { sort_field: "UPDATED_AT", sort_order: "ASC", begin_time: /^2026-01-01T/, updated_at_begin_time: /Z$/ },
      optional: ["end_time", "location_id"],
      pages: { kind: "cursor", at: "cursor", size: "limit", default: 100, max: 100 },
      parent: { of: "locations", at: "location_id", key: ({ id }) => String(id) },
      since: { at: "updated_at_begin_time", read: isoTime },
      record: ({ n, time, parent }) => ({
        ...{ id: `bP9${n}`, created_at: "2026-02-14T19:06:00.335Z", updated_at: isoMs(time), amount_money: usd(555) },
        ...{
          status: "COMPLETED",
          delay_action: "CANCEL",
          delayed_until: "2026-02-21T19:06:00.335Z",
          source_type: "CARD",
        },
        ...{
          card_details: { status: "CAPTURED", card: { last_4: "9029" } },
          location_id: parent["id"],
          order_id: "d7eK",
        },
        ...{ total_money: usd(555), approved_money: usd(555), receipt_number: "bP9m", version_token: "56pR" },
        processing_fee: [{ type: "INITIAL", effective_at: "2026-02-16T21:06:00.000Z", amount_money: usd(34) }],
      }),
    },
    refunds: {
      ...{ url: `${api}/refunds`, headers, answer: answered("refunds"), order: "oldest first" },
      optional: ["sort_order", "end_time", "location_id", "status", "source_type"],
      pages: { kind: "cursor", at: "cursor", size: "limit", default: 100, max: 100 },
      since: { at: "begin_time", read: isoTime },
      record: ({ n, time }) => ({
        ...{
          id: `re_${n}`,
          status: "COMPLETED",
          amount_money: usd(555),
          payment_id: "bP9m",
          order_id: "9lt",
          reason: "x",
        },
        ...{ created_at: isoMs(time), updated_at: isoMs(time), location_id: "L1", destination_type: "CARD" },
      }),
    },
    customers: {
      ...{ url: `${api}/customers/search`, method: "POST", headers, answer: answered("customers") },
      body: (body, ask) =>
        unknownIn(body, ["cursor", "limit", "query", "count"]) ??
        (sortOf(ask)["field"] === "CREATED_AT" ? undefined : "sort.field must be CREATED_AT or DEFAULT"),
      pages: { ...byBody, default: 100, max: 100 },
      since: { at: { body: "query.filter.updated_at.start_at" }, read: isoTime },
      record: ({ n, time }) => ({
        ...{ id: `C${n}`, created_at: "2026-01-23T20:21:54.859Z", updated_at: isoMs(time), given_name: "Amelia" },
        ...{ family_name: "Earhart", email_address: "a@example.com", address: { locality: "New York", country: "US" } },
        ...{ preferences: { email_unsubscribed: false }, creation_source: "THIRD_PARTY", segment_ids: [], version: 1 },
      }),
    },
    orders: {
      ...{ url: `${api}/orders/search`, method: "POST", headers, answer: answered("orders"), order: "oldest first" },
      body: (body, ask) =>
        unknownIn(body, ["location_ids", "cursor", "limit", "query", "return_entries"]) ??
        (sortOf(ask)["sort_field"] === "UPDATED_AT" ? undefined : "the sort field must be the one that is filtered"),
      pages: { ...byBody, default: 500, max: 1000 },
      parent: { of: "locations", at: locationIn, key: ({ id }) => String(id) },
      since: { at: { body: "query.filter.date_time_filter.updated_at.start_at" }, read: isoTime },
      record: ({ n, time, parent }) => ({
        ...{ id: `O${n}`, location_id: parent["id"], created_at: "2026-01-28T15:51:30.123Z", updated_at: isoMs(time) },
        ...{ state: "COMPLETED", version: 4, total_money: usd(1600), total_tax_money: usd(0), closed_at: isoMs(time) },
        line_items: [{ uid: "1", name: "Tea", quantity: "1", base_price_money: usd(1600), total_money: usd(1600) }],
        tenders: [{ id: "t", type: "CARD", amount_money: usd(1600) }],
      }),
    },
    catalog_objects: {
      ...{ url: `${api}/catalog/search`, method: "POST", headers, answer: answered("objects") },
      body: (body) =>
        unknownIn(body, ["cursor", "limit", "object_types", "begin_time", "include_deleted_objects", "query"]),
      pages: { ...byBody, default: 100, max: 1000 },
      since: { at: { body: "begin_time" }, read: isoTime, inclusive: false },
      record: ({ n, time }) => ({
        ...{ type: "ITEM", id: `X${n}`, updated_at: isoMs(time), version: 1_571_678_547_000 + n, is_deleted: false },
        ...{ present_at_all_locations: true, item_data: { name: "Tea", product_type: "REGULAR", variations: [] } },
      }),
    },
  },
} satisfies Vendor;
