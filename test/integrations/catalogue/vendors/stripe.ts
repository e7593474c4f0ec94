// Stripe: newest first, `starting_after` the last id, filters by the time of creation.
import { bearer } from "../auth.ts";
import { type Collection, type Item, type PageOf, retryAfter, seconds, secondsTime, type Vendor } from "../vendor.ts";

const listed = (name: string, prefix: string, record: (item: Item) => object, optional: string[] = []): Collection => ({
  url: `https://api.stripe.com/v1/${name}`,
  optional: ["customer", "ending_before", "expand[]", ...optional],
  pages: { kind: "after", at: "starting_after", key: ({ id }) => String(id), size: "limit", default: 10, max: 100 },
  since: { at: "created[gte]", read: secondsTime },
  order: "newest first",
  record: (item) => ({ id: `${prefix}_${item.n}`, ...record(item), created: seconds(item.time) }),
  answer: ({ records, next }: PageOf) => ({
    object: "list",
    url: `/v1/${name}`,
    has_more: next !== null,
    data: records,
  }),
});

const money = { amount: 2000, currency: "usd" };

export default {
  documentation: [
    "https://docs.stripe.com/api/authentication",
    "https://docs.stripe.com/api/pagination",
    "https://docs.stripe.com/rate-limits",
    "https://docs.stripe.com/api/customers/list",
    "https://docs.stripe.com/api/charges/list",
    "https://docs.stripe.com/api/invoices/list",
    "https://docs.stripe.com/api/subscriptions/list",
    "https://docs.stripe.com/api/events/list",
  ],
  config: { secret_key: "secret-stripe", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-stripe"),
  unauthorized: {
    status: 401,
    body: { error: { message: "Invalid API Key provided: sk_test_****", type: "invalid_request_error" } },
  },
  limited: retryAfter({ error: { message: "Too many requests hit the API too quickly.", code: "rate_limit" } }),
  collections: {
    customers: listed("customers", "cus", ({ n }) => ({
      ...{
        object: "customer",
        name: "Jenny Rosen",
        email: `jenny${n}@example.com`,
        phone: null,
        description: null,
        balance: 0,
      },
      ...{ currency: null, delinquent: false, livemode: false, default_source: null, invoice_prefix: "0759376C" },
      ...{ tax_exempt: "none", preferred_locales: [], address: null, shipping: null, discount: null, metadata: {} },
    })),
    charges: listed("charges", "ch", () => ({
      ...{ object: "charge", ...money, amount_captured: 2000, amount_refunded: 0, status: "succeeded", paid: true },
      ...{
        captured: true,
        refunded: false,
        disputed: false,
        livemode: false,
        customer: null,
        invoice: null,
        metadata: {},
      },
      ...{ payment_intent: null, payment_method: "card_1", balance_transaction: "txn_1", failure_code: null },
      ...{
        billing_details: { name: null, email: null, phone: null, address: { city: null } },
        outcome: { risk_score: 32 },
      },
    })),
    payment_intents: listed("payment_intents", "pi", () => ({
      ...{
        object: "payment_intent",
        ...money,
        amount_capturable: 0,
        amount_received: 0,
        status: "requires_payment_method",
      },
      ...{ customer: null, latest_charge: null, payment_method_types: ["card", "link"], capture_method: "automatic" },
      ...{ canceled_at: null, cancellation_reason: null, description: null, livemode: false, last_payment_error: null },
    })),
    invoices: listed(
      "invoices",
      "in",
      ({ n }) => ({
        ...{
          object: "invoice",
          number: `2A8A-${n}`,
          status: "paid",
          customer: "cus_1",
          customer_email: "j@example.com",
        },
        ...{
          subscription: "sub_1",
          collection_method: "charge_automatically",
          currency: "usd",
          amount_due: 999,
          tax: null,
        },
        ...{
          amount_paid: 999,
          amount_remaining: 0,
          subtotal: 999,
          total: 999,
          attempted: true,
          attempt_count: 1,
          paid: true,
        },
        ...{
          due_date: null,
          period_start: 1_767_225_600,
          period_end: 1_769_904_000,
          lines: { object: "list", data: [] },
        },
      }),
      ["status", "subscription", "collection_method"],
    ),
    // Without `status` the cancelled ones are left out.
    subscriptions: {
      ...listed("subscriptions", "sub", ({ n }) => ({
        ...{ object: "subscription", status: n % 2 ? "active" : "canceled", customer: "cus_1", currency: "usd" },
        ...{
          billing_cycle_anchor: 1_767_225_600,
          current_period_start: 1_767_225_600,
          current_period_end: 1_769_904_000,
        },
        ...{ trial_start: null, trial_end: null, cancel_at: null, cancel_at_period_end: false, ended_at: null },
        ...{ items: { object: "list", data: [{ id: "si_1", quantity: 1 }] }, latest_invoice: "in_1", metadata: {} },
      })),
      params: { status: "all" },
    },
    refunds: listed("refunds", "re", () => ({
      ...{ object: "refund", ...money, status: "succeeded", reason: null, charge: "ch_1", payment_intent: "pi_1" },
      ...{ balance_transaction: "txn_1", receipt_number: null, metadata: {} },
    })),
    balance_transactions: listed("balance_transactions", "txn", () => ({
      ...{ object: "balance_transaction", amount: -400, fee: 0, net: -400, currency: "usd", exchange_rate: null },
      ...{
        available_on: 1_767_225_600,
        type: "transfer",
        reporting_category: "transfer",
        status: "available",
        source: "tr_1",
      },
      ...{ description: null, fee_details: [] },
    })),
    events: listed("events", "evt", () => ({
      ...{
        object: "event",
        type: "setup_intent.created",
        api_version: "2024-06-20",
        livemode: false,
        pending_webhooks: 0,
      },
      ...{ data: { object: { id: "seti_1", object: "setup_intent" } }, request: { id: null, idempotency_key: "k" } },
    })),
  },
} satisfies Vendor;
