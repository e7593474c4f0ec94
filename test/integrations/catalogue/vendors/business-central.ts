// Business Central's OData: filters as OData writes them, pages by `@odata.nextLink`, their size by a Prefer header.
import { oauth } from "../auth.ts";
import { type Collection, type Item, isoMs, isoTime, retryAfter, type Vendor } from "../vendor.ts";

const entity = (name: string, record: (item: Item) => Record<string, unknown>): Collection => ({
  url: `https://api.businesscentral.dynamics.com/v2.0/tenant-1/production/api/v2.0/companies(company-1)/${name}`,
  optional: ["$filter", "$orderby", "$select"],
  pages: {
    ...{ kind: "cursor", at: "$skiptoken", default: 20_000, max: 20_000 },
    size: ({ headers }) => /odata\.maxpagesize=(\d+)/.exec(headers["prefer"] ?? "")?.[1],
  },
  since: {
    at({ query }) {
      const filter = query.get("$filter");
      const [, time] = /^lastModifiedDateTime ge (\S+)$/.exec(filter ?? "") ?? [];
      if (filter !== null && time === undefined) throw new Error(`the filter '${filter}' cannot be read`);
      return time;
    },
    read: isoTime,
  },
  record: (item) => ({
    ...{ "@odata.etag": `W/"${item.n}"`, id: `5d115c9c-44e3-ea11-bb43-${String(item.n).padStart(12, "0")}` },
    ...record(item),
    lastModifiedDateTime: isoMs(item.time),
  }),
  answer: ({ records, nextUrl }) => ({
    ...{ "@odata.context": "$metadata", value: records },
    ...(nextUrl === null ? {} : { "@odata.nextLink": nextUrl }),
  }),
});

const docs = "https://learn.microsoft.com/en-us/dynamics365/business-central/dev-itpro";

export default {
  documentation: [
    `${docs}/api-reference/v2.0/endpoints-apis-for-dynamics`,
    `${docs}/developer/devenv-connect-apps-filtering`,
    `${docs}/webservices/odata-client-performance`,
  ],
  config: {
    ...{ tenant_id: "tenant-1", client_id: "app-1", client_secret: "secret-app", environment: "production" },
    ...{ company_id: "company-1", start_date: "2026-01-01T00:00:00Z" },
  },
  auth: oauth({
    url: "https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token",
    form: {
      ...{ grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
      scope: "https://api.businesscentral.dynamics.com/.default",
    },
  }),
  unauthorized: {
    status: 401,
    body: { error: { code: "Authentication_InvalidCredentials", message: "The server has rejected the credentials." } },
  },
  limited: retryAfter({ error: { code: "Application_TooManyRequests", message: "Too many requests reached." } }),
  collections: {
    customers: entity("customers", ({ n }) => ({
      ...{ number: `C${n}`, displayName: `Customer ${n}`, email: "a@example.com", country: "DE", balance: 12.5 },
    })),
    items: entity("items", ({ n }) => ({
      ...{ number: String(1000 + n), displayName: `Bicycle ${n}`, unitPrice: 1000.8, inventory: 12 },
    })),
    salesInvoices: entity("salesInvoices", ({ n }) => ({
      ...{ number: `S${n}`, customerId: "5d115c9c-44e3-ea11-bb43-000000000001", invoiceDate: "2026-03-05" },
      ...{ totalAmountIncludingTax: 119.99, status: "Paid" },
    })),
    vendors: entity("vendors", ({ n }) => ({
      ...{ number: `V${n}`, displayName: `Vendor ${n}`, email: "", balance: 0 },
    })),
  },
} satisfies Vendor;
