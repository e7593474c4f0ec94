// Xero's Accounting API: a tenant in a header, page numbers, If-Modified-Since without a zone, times as /Date(...)/.
import { oauth } from "../auth.ts";
import { type Collection, type Item, retryAfter, type Vendor } from "../vendor.ts";

const entity = (name: string, key: string, record: (item: Item) => Record<string, unknown>): Collection => ({
  url: `https://api.xero.com/api.xro/2.0/${name}`,
  headers: { "xero-tenant-id": "tenant-1", accept: "application/json" },
  optional: ["where", "order", "summaryOnly"],
  pages: { kind: "number", at: "page", size: "pageSize", default: 100, max: 1000 },
  since: {
    at: { header: "If-Modified-Since" },
    read(text) {
      if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)) throw new Error(`'${text}' is no time without a zone`);
      return Date.parse(`${text}Z`);
    },
  },
  record: (item) => ({
    ...{ [key]: `00000000-0000-0000-0000-${String(item.n).padStart(12, "0")}`, ...record(item) },
    UpdatedDateUTC: `/Date(${item.time.getTime()}+0000)/`,
  }),
  answer: ({ records, number, size, total }) => ({
    ...{ Id: "1", Status: "OK", [name]: records },
    pagination: { page: number, pageSize: size, pageCount: Math.ceil(total / size), itemCount: total },
  }),
});

const docs = "https://developer.xero.com/documentation";

export default {
  documentation: [
    `${docs}/guides/oauth2/token-types`,
    `${docs}/guides/oauth2/limits`,
    `${docs}/api/accounting/requests-and-responses`,
    `${docs}/api/accounting/invoices`,
    `${docs}/api/accounting/contacts`,
    `${docs}/api/accounting/payments`,
  ],
  config: {
    ...{ client_id: "app-1", client_secret: "secret-app", refresh_token: "secret-refresh", tenant_id: "tenant-1" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: oauth({
    url: "https://identity.xero.com/connect/token",
    form: { grant_type: "refresh_token", refresh_token: "secret-refresh" },
    basic: ["app-1", "secret-app"],
    more: { refresh_token: "secret-refresh", scope: "offline_access accounting.invoices.read" },
  }),
  unauthorized: {
    status: 401,
    body: { Type: null, Title: "Unauthorized", Status: 401, Detail: "AuthenticationUnsuccessful" },
  },
  limited: retryAfter(""),
  collections: {
    invoices: entity("Invoices", "InvoiceID", ({ n }) => ({
      ...{ Type: "ACCREC", InvoiceNumber: `INV-${n}`, Status: "PAID", Total: 115, AmountDue: 0, CurrencyCode: "EUR" },
      Contact: { ContactID: "1", Name: "Acme" },
    })),
    contacts: entity("Contacts", "ContactID", ({ n }) => ({
      ...{ Name: `Acme ${n}`, EmailAddress: "a@example.com", ContactStatus: "ACTIVE" },
    })),
    payments: entity("Payments", "PaymentID", () => ({
      ...{ Amount: 46, Status: "AUTHORISED", PaymentType: "ACCRECPAYMENT" },
    })),
  },
} satisfies Vendor;
