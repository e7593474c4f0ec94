// Chargebee: every record inside an object of its kind, `next_offset` is text that looks like a JSON list.
import { basic } from "../auth.ts";
import {
  type Ask,
  type Collection,
  type Item,
  type PageOf,
  retryAfter,
  seconds,
  secondsTime,
  type Vendor,
} from "../vendor.ts";

const offsetOf = ({ query }: Ask): string | undefined => {
  const offset = query.get("offset");
  if (offset === null) return undefined;
  const [cursor] = JSON.parse(offset) as string[];
  return cursor;
};

interface Listed {
  readonly by?: string;
  readonly more?: readonly string[];
  readonly record: (item: Item) => object;
}

const listed = (name: string, one: string, { by = "updated_at", more = [], record }: Listed): Collection => ({
  url: `https://acme.chargebee.com/api/v2/${name}`,
  optional: ["offset", "sort_by[asc]", "sort_by[desc]", ...more],
  body: (_body, { query }) =>
    [by, null].includes(query.get("sort_by[asc]")) ? undefined : `sort_by[asc] may not be ${query.get("sort_by[asc]")}`,
  pages: { kind: "cursor", at: offsetOf, size: "limit", default: 10, max: 100 },
  since: { at: `${by}[after]`, read: secondsTime, inclusive: false },
  order: "oldest first",
  record: (item) => ({ id: `${one}_${item.n}`, object: one, ...record(item), [by]: seconds(item.time) }),
  answer: ({ records, next }: PageOf) => ({
    list: records.map((each) => ({ [one]: each })),
    ...(next === null ? {} : { next_offset: JSON.stringify([next, "230000000081"]) }),
  }),
});

const deleted = ["include_deleted"];

export default {
  documentation: [
    "https://apidocs.chargebee.com/docs/api/auth",
    "https://apidocs.chargebee.com/docs/api?lang=curl#pagination_and_filtering",
    "https://apidocs.chargebee.com/docs/api/error-handling#api-rate-limits",
    "https://apidocs.chargebee.com/docs/api/customers?lang=curl#list_customers",
    "https://apidocs.chargebee.com/docs/api/subscriptions?lang=curl#list_subscriptions",
    "https://apidocs.chargebee.com/docs/api/invoices?lang=curl#list_invoices",
    "https://apidocs.chargebee.com/docs/api/transactions?lang=curl#list_transactions",
    "https://apidocs.chargebee.com/docs/api/items?lang=curl#list_items",
    "https://apidocs.chargebee.com/docs/api/events?lang=curl#list_events",
  ],
  config: { site: "acme", api_key: "secret-chargebee", start_date: "2026-01-01T00:00:00Z" },
  auth: basic("secret-chargebee", ""),
  unauthorized: {
    status: 401,
    body: {
      message: "Sorry, authentication failed.",
      api_error_code: "api_authentication_failed",
      http_status_code: 401,
    },
  },
  limited: retryAfter({
    message: "Sorry, access has been blocked temporarily",
    api_error_code: "api_request_limit_exceeded",
  }),
  collections: {
    customers: listed("customers", "customer", {
      more: deleted,
      record: ({ n }) => ({
        ...{
          first_name: "John",
          last_name: "Doe",
          email: `john${n}@test.com`,
          auto_collection: "on",
          net_term_days: 0,
        },
        ...{
          taxability: "taxable",
          allow_direct_debit: false,
          created_at: 1_767_225_600,
          deleted: false,
          channel: "web",
        },
        ...{
          preferred_currency_code: "USD",
          promotional_credits: 0,
          unbilled_charges: 0,
          resource_version: 1_517_505_747_000,
        },
        billing_address: { first_name: "John", line1: "PO Box 9999", city: "Walnut", zip: "91789", country: "US" },
      }),
    }),
    subscriptions: listed("subscriptions", "subscription", {
      more: deleted,
      record: () => ({
        ...{ customer_id: "customer_1", status: "active", currency_code: "USD", billing_period: 1, mrr: 0 },
        ...{
          billing_period_unit: "month",
          current_term_start: 1_767_225_600,
          current_term_end: 1_769_904_000,
          deleted: false,
        },
        ...{
          subscription_items: [
            { item_price_id: "basic-USD", item_type: "plan", quantity: 1, unit_price: 1000, amount: 1000 },
          ],
        },
        ...{ has_scheduled_changes: false, due_invoices_count: 1, total_dues: 1100, created_at: 1_767_225_600 },
      }),
    }),
    invoices: listed("invoices", "invoice", {
      more: deleted,
      record: () => ({
        ...{
          customer_id: "customer_1",
          recurring: false,
          status: "paid",
          price_type: "tax_exclusive",
          date: 1_767_225_600,
        },
        ...{
          due_date: 1_767_225_600,
          paid_at: 1_767_225_600,
          exchange_rate: 1.0,
          sub_total: 2000,
          tax: 0,
          total: 2000,
        },
        ...{ amount_paid: 2000, amount_due: 0, currency_code: "USD", deleted: false, write_off_amount: 0 },
        line_items: [{ id: "li_1", date_from: 1, date_to: 2, unit_amount: 2000, quantity: 1, amount: 2000 }],
      }),
    }),
    transactions: listed("transactions", "transaction", {
      more: deleted,
      record: () => ({
        ...{
          customer_id: "customer_1",
          gateway: "chargebee",
          type: "payment",
          date: 1_767_225_600,
          exchange_rate: 1.5,
        },
        ...{
          payment_method: "card",
          currency_code: "USD",
          amount: 1000,
          amount_unused: 0,
          status: "success",
          deleted: false,
        },
        ...{ id_at_gateway: "cb_1", linked_invoices: [{ invoice_id: "1", applied_amount: 1000, applied_at: 1 }] },
      }),
    }),
    items: listed("items", "item", {
      record: ({ n }) => ({
        ...{
          name: `Plan ${n}`,
          external_name: "Plan",
          description: "",
          status: "active",
          type: "plan",
          channel: "web",
        },
        ...{
          item_family_id: "acme",
          is_shippable: false,
          is_giftable: false,
          enabled_for_checkout: true,
          metered: false,
        },
        ...{ enabled_in_portal: true, item_applicability: "all", resource_version: 1_594_106_928_574 },
      }),
    }),
    events: listed("events", "event", {
      by: "occurred_at",
      record: () => ({
        ...{ source: "admin_console", user: "full_access_key", event_type: "subscription_created", api_version: "v2" },
        ...{ webhook_status: "scheduled", content: { subscription: { id: "s" } } },
      }),
    }),
  },
} satisfies Vendor;
