// QuickBooks Online: one address that takes queries; tokens by refresh token, the client in a Basic header; times with the company's offset.
import { oauth } from "../auth.ts";
import { type Ask, type Collection, type Item, isoTime, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const GRAMMAR =
  /^SELECT \* FROM (\w+) WHERE (?:Active IN \(true, false\) AND )?MetaData\.LastUpdatedTime >= '([^']+)' ORDERBY MetaData\.LastUpdatedTime DESC(?: STARTPOSITION (\d+))?(?: MAXRESULTS (\d+))?$/;

const parsed = ({ query }: Ask): RegExpExecArray => {
  const found = GRAMMAR.exec((query.get("query") ?? "").replace(/\s+/g, " ").trim());
  if (!found) throw new Error("QueryParserError: Invalid query");
  return found;
};

/** The time in Pacific Daylight Time, as the vendor writes it. */
const local = (time: Date): string =>
  new Date(time.getTime() - 7 * 3_600_000).toISOString().replace(/\.000Z$/, "-07:00");

const entity = (name: string, record: (item: Item) => object, inactive = false): Collection => ({
  url: "https://quickbooks.api.intuit.com/v3/company/1234/query",
  when: (ask) => ask.query.get("query")?.includes(` ${name} `) ?? false,
  params: { query: /^SELECT /, minorversion: /^\d+$/ },
  headers: { accept: "application/json" },
  // Without it deactivated entries are left out.
  body: (_body, ask) =>
    inactive === parsed(ask)[0].includes("Active IN") ? undefined : `Active is wrong in the query of ${name}`,
  pages: {
    ...{ kind: "offset", at: (ask) => String(Number(parsed(ask)[3] ?? 1) - 1) },
    ...{ size: (ask) => parsed(ask)[4], default: 100, max: 1000 },
  },
  since: { at: (ask) => parsed(ask)[2], read: isoTime },
  order: "newest first",
  record: (item) => ({
    ...{ Id: String(item.n), SyncToken: "0", domain: "QBO", sparse: false, ...record(item) },
    MetaData: { CreateTime: "2026-01-01T10:00:00-08:00", LastUpdatedTime: local(item.time) },
  }),
  answer: ({ records, offset, total }: PageOf) => ({
    // An empty result has no list at all.
    QueryResponse: records.length
      ? { [name]: records, startPosition: offset + 1, maxResults: records.length, total }
      : {},
    time: "2026-05-15T00:00:00.000-07:00",
  }),
});

const ref = (value: string) => ({ value, name: `name of ${value}` });
const line = [
  { Id: "1", LineNum: 1, Amount: 362.07, DetailType: "SalesItemLineDetail", SalesItemLineDetail: { Qty: 1 } },
];

export default {
  documentation: [
    "https://developer.intuit.com/app/developer/qbo/docs/develop/authentication-and-authorization/oauth-2.0",
    "https://developer.intuit.com/app/developer/qbo/docs/learn/explore-the-quickbooks-online-api/data-queries",
    "https://developer.intuit.com/app/developer/qbo/docs/learn/rest-api-features",
    "https://developer.intuit.com/app/developer/qbo/docs/api/accounting/all-entities/account",
    "https://developer.intuit.com/app/developer/qbo/docs/api/accounting/all-entities/invoice",
  ],
  config: {
    ...{ realm_id: "1234", client_id: "app-1", client_secret: "secret-app", refresh_token: "secret-refresh" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: oauth({
    url: "https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer",
    form: { grant_type: "refresh_token", refresh_token: "secret-refresh" },
    basic: ["app-1", "secret-app"],
    more: { refresh_token: "secret-refresh", x_refresh_token_expires_in: 8_726_400 },
  }),
  unauthorized: {
    status: 401,
    body: {
      fault: {
        error: [{ message: "message=AuthenticationFailed; errorCode=003200", code: "3200" }],
        type: "AUTHENTICATION",
      },
    },
  },
  limited: retryAfter({ fault: { error: [{ message: "message=ThrottleExceeded; errorCode=003001", code: "3001" }] } }),
  collections: {
    accounts: entity(
      "Account",
      ({ n }) => ({
        ...{
          Name: `MyJobs ${n}`,
          FullyQualifiedName: "MyJobs",
          Active: true,
          SubAccount: false,
          Classification: "Asset",
        },
        ...{ AccountType: "Accounts Receivable", AccountSubType: "AccountsReceivable", CurrentBalance: 12.5 },
        ...{ CurrentBalanceWithSubAccounts: 12.5, CurrencyRef: ref("USD") },
      }),
      true,
    ),
    customers: entity(
      "Customer",
      ({ n }) => ({
        ...{
          DisplayName: `Bill ${n}`,
          GivenName: "Bill",
          FullyQualifiedName: "Bill",
          Active: n % 2 === 0,
          Taxable: false,
        },
        ...{ Job: false, BillWithParent: false, Balance: 239.0, BalanceWithJobs: 239.0, PrintOnCheckName: "Bill" },
        ...{
          PrimaryEmailAddr: { Address: "b@example.com" },
          BillAddr: { Id: "2", Line1: "4581 Finch St.", City: "Bayshore" },
        },
      }),
      true,
    ),
    invoices: entity("Invoice", ({ n }) => ({
      ...{
        DocNumber: String(1000 + n),
        TxnDate: "2026-02-03",
        DueDate: "2026-03-05",
        TotalAmt: 362.07,
        Balance: 362.07,
      },
      ...{
        EmailStatus: "NotSet",
        PrintStatus: "NeedToPrint",
        CustomerRef: ref("1"),
        CurrencyRef: ref("USD"),
        Line: line,
      },
      ...{ LinkedTxn: [], TxnTaxDetail: { TotalTax: 26.82 }, CustomerMemo: { value: "Thank you" } },
    })),
    payments: entity("Payment", () => ({
      ...{ TxnDate: "2026-02-03", TotalAmt: 55.0, UnappliedAmt: 0, ProcessPayment: false, CustomerRef: ref("1") },
      ...{
        DepositToAccountRef: { value: "87" },
        Line: [{ Amount: 55.0, LinkedTxn: [{ TxnId: "70", TxnType: "Invoice" }] }],
      },
    })),
    bills: entity("Bill", () => ({
      ...{ TxnDate: "2026-02-03", DueDate: "2026-03-05", TotalAmt: 103.55, Balance: 103.55, VendorRef: ref("46") },
      ...{ APAccountRef: ref("33"), CurrencyRef: ref("USD"), Line: line, LinkedTxn: [] },
    })),
    vendors: entity(
      "Vendor",
      ({ n }) => ({
        ...{
          DisplayName: `Books by Bessie ${n}`,
          CompanyName: "Books by Bessie",
          Active: true,
          Vendor1099: false,
          Balance: 0,
        },
        ...{ PrimaryPhone: { FreeFormNumber: "(650) 555-7745" }, BillAddr: { City: "Palo Alto" }, AcctNum: "1345" },
      }),
      true,
    ),
    items: entity(
      "Item",
      ({ n }) => ({
        ...{ Name: `Garden Supplies ${n}`, FullyQualifiedName: "Garden Supplies", Type: "Inventory", Active: true },
        ...{
          Taxable: false,
          UnitPrice: 0,
          PurchaseCost: 6.5,
          QtyOnHand: 10,
          TrackQtyOnHand: true,
          InvStartDate: "2026-01-01",
        },
        ...{ IncomeAccountRef: ref("79"), AssetAccountRef: ref("81") },
      }),
      true,
    ),
  },
} satisfies Vendor;
