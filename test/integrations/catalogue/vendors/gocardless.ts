// GoCardless: cursors in `meta`, filters by the time of creation, a version in a header.
import { bearer } from "../auth.ts";
import { type Collection, type Item, isoMs, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const listed = (name: string, prefix: string, record: (item: Item) => object): Collection => ({
  url: `https://api.gocardless.com/${name}`,
  headers: { "gocardless-version": "2015-07-06" },
  optional: ["before", "created_at[gt]", "created_at[lt]", "created_at[lte]"],
  pages: { kind: "cursor", at: "after", size: "limit", default: 50, max: 500 },
  since: { at: "created_at[gte]", read: isoTime },
  order: "newest first",
  record: (item) => ({ id: `${prefix}${item.n}`, created_at: isoMs(item.time), ...record(item), metadata: {} }),
  answer: ({ records, next, size }: PageOf) => ({
    [name]: records,
    meta: { cursors: { before: null, after: next }, limit: size },
  }),
});

export default {
  documentation: [
    "https://developer.gocardless.com/api-reference/#making-requests-headers",
    "https://developer.gocardless.com/api-reference/#api-usage-rate-limiting",
    "https://developer.gocardless.com/api-reference/#api-usage-cursor-pagination",
    "https://developer.gocardless.com/api-reference/#payments-list-payments",
    "https://developer.gocardless.com/api-reference/#events-list-events",
  ],
  config: { access_token: "secret-gocardless", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-gocardless"),
  unauthorized: {
    status: 401,
    body: {
      error: {
        message: "Unauthorized",
        type: "invalid_api_usage",
        code: 401,
        errors: [{ reason: "access_token_not_found" }],
      },
    },
  },
  limited: {
    status: 429,
    headers: {
      "ratelimit-limit": "1000",
      "ratelimit-remaining": "0",
      "ratelimit-reset": "Fri, 15 May 2026 00:00:11 GMT",
    },
    body: { error: { message: "Rate limit exceeded", type: "invalid_api_usage", code: 429 } },
    seconds: 11,
  },
  collections: {
    customers: listed("customers", "CU", ({ n }) => ({
      ...{
        email: `user${n}@example.com`,
        given_name: "Frank",
        family_name: "Osborne",
        company_name: null,
        language: "en",
      },
      ...{ address_line1: "27 Acer Road", city: "London", region: null, postal_code: "E8 3GX", country_code: "GB" },
    })),
    mandates: listed("mandates", "MD", () => ({
      ...{
        reference: "REF-123",
        status: "pending_submission",
        scheme: "bacs",
        next_possible_charge_date: "2026-06-05",
      },
      ...{ payments_require_approval: false, links: { customer_bank_account: "BA123", creditor: "CR123" } },
    })),
    payments: listed("payments", "PM", () => ({
      ...{
        charge_date: "2026-05-21",
        amount: 100,
        amount_refunded: 0,
        currency: "GBP",
        description: null,
        reference: "WINE",
      },
      ...{ status: "pending_submission", fx: { fx_currency: "EUR", fx_amount: null, exchange_rate: null } },
      ...{ links: { mandate: "MD123", creditor: "CR123" }, retry_if_possible: false },
    })),
    subscriptions: listed("subscriptions", "SB", () => ({
      ...{
        amount: 2500,
        currency: "GBP",
        status: "active",
        name: "Monthly Magazine",
        start_date: "2026-06-25",
        end_date: null,
      },
      ...{ interval: 1, interval_unit: "monthly", day_of_month: 1, month: null, links: { mandate: "MD123" } },
      upcoming_payments: [{ charge_date: "2026-06-25", amount: 2500 }],
    })),
    refunds: listed("refunds", "RF", () => ({
      ...{
        amount: 150,
        currency: "GBP",
        reference: "partial refund",
        status: "submitted",
        links: { payment: "PM123" },
      },
    })),
    payouts: listed("payouts", "PO", () => ({
      ...{
        amount: 1000,
        deducted_fees: 20,
        currency: "GBP",
        payout_type: "merchant",
        reference: "ref-1",
        status: "pending",
      },
      ...{
        arrival_date: "2026-06-16",
        tax_currency: null,
        links: { creditor: "CR123", creditor_bank_account: "BA123" },
      },
    })),
    events: listed("events", "EV", () => ({
      ...{ resource_type: "payments", action: "confirmed", links: { payment: "PM123" } },
      details: { origin: "gocardless", cause: "payment_confirmed", description: "Payment was confirmed" },
    })),
  },
} satisfies Vendor;
