// Salesforce's REST API: SOQL in `q`, the following pages at `nextRecordsUrl`, times as +0000, errors as a list.
import { oauth } from "../auth.ts";
import { type Collection, type Item, isoMs, isoTime, type Vendor } from "../vendor.ts";

const offset = (time: Date): string => isoMs(time).replace("Z", "+0000");

function entity(name: string, record: (item: Item) => Record<string, unknown>): Collection {
  const soql = new RegExp(
    `^SELECT ([\\w,]+) FROM ${name}(?: WHERE SystemModstamp >= (\\S+))? ORDER BY SystemModstamp$`,
  );
  return {
    url: "https://acme.my.salesforce.com/services/data/v62.0/query",
    when: ({ query }) => new RegExp(` FROM ${name} `).test(query.get("q") ?? ""),
    params: { q: soql },
    // The vendor may give fewer than 2,000 at once.
    pages: { kind: "cursor", at: { path: "cursor" }, default: 200 },
    more: `https://acme.my.salesforce.com/services/data/v62.0/query/:cursor`,
    since: { at: ({ query }) => soql.exec(query.get("q") ?? "")?.[2], read: isoTime },
    record: (item) => ({
      attributes: { type: name, url: `/services/data/v62.0/sobjects/${name}/${item.n}` },
      ...{ Id: `001${String(item.n).padStart(15, "0")}`, ...record(item) },
      ...{ CreatedDate: "2025-01-01T00:00:00.000+0000", SystemModstamp: offset(item.time) },
    }),
    answer: ({ records, next, total }) => ({
      ...{ totalSize: total, done: next === null, records },
      ...(next === null ? {} : { nextRecordsUrl: `/services/data/v62.0/query/${next}` }),
    }),
  };
}

const docs = "https://developer.salesforce.com/docs/atlas.en-us";

export default {
  documentation: [
    `${docs}.api_rest.meta/api_rest/resources_query.htm`,
    `${docs}.api_rest.meta/api_rest/errorcodes.htm`,
    `${docs}.soql_sosl.meta/soql_sosl/sforce_api_calls_soql_select_dateformats.htm`,
  ],
  config: {
    ...{ instance_url: "https://acme.my.salesforce.com", client_id: "app-1", client_secret: "secret-app" },
    ...{ refresh_token: "secret-refresh", start_date: "2026-01-01T00:00:00Z" },
  },
  auth: oauth({
    url: "https://login.salesforce.com/services/oauth2/token",
    form: {
      ...{ grant_type: "refresh_token", client_id: "app-1", client_secret: "secret-app" },
      refresh_token: "secret-refresh",
    },
  }),
  unauthorized: { status: 401, body: [{ message: "Session expired or invalid", errorCode: "INVALID_SESSION_ID" }] },
  limited: {
    ...{ status: 403, seconds: 1 },
    body: [{ message: "TotalRequests Limit exceeded.", errorCode: "REQUEST_LIMIT_EXCEEDED" }],
  },
  collections: {
    Account: entity("Account", ({ n }) => ({
      ...{ Name: `Acme ${n}`, Type: "Customer", Industry: null, BillingCountry: "DE", AnnualRevenue: 1e6 },
      OwnerId: "005000000000001",
    })),
    Contact: entity("Contact", ({ n }) => ({
      ...{ AccountId: null, FirstName: "Ann", LastName: String(n), Email: "ann@example.com", Phone: null },
    })),
    Opportunity: entity("Opportunity", ({ n }) => ({
      ...{ AccountId: null, Name: `Deal ${n}`, StageName: "Prospecting", Amount: 99.5, CloseDate: "2026-06-30" },
      ...{ IsClosed: false, IsWon: false },
    })),
    Lead: entity("Lead", ({ n }) => ({
      ...{ FirstName: null, LastName: String(n), Company: "Acme", Email: null, Status: "Open - Not Contacted" },
    })),
  },
} satisfies Vendor;
