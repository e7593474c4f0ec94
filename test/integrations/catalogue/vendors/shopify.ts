// Shopify's Admin API: REST for orders, customers, collections and locations (links with page_info), GraphQL for products.
import { header, oauth } from "../auth.ts";
import { type Field, rootOf, select, unknownArgument } from "../graphql.ts";
import { type Ask, type Collection, iso, isoTime, type PageOf, type Rec, retryAfter, type Vendor } from "../vendor.ts";

const shop = "https://acme.myshopify.com";
const admin = `${shop}/admin/api/2026-01`;

/** In the shop's time zone, as Shopify writes times in REST. */
const local = (time: Date): string =>
  new Date(time.getTime() - 4 * 3_600_000).toISOString().replace(/\.\d+Z$/, "-04:00");

const rest = (
  name: string,
  record: Collection["record"],
  first: Readonly<Record<string, string>> = {},
): Collection => ({
  url: `${admin}/${name}.json`,
  optional: ["fields", "ids", "since_id", "created_at_min", ...Object.keys(first)],
  pages: { kind: "cursor", at: "page_info", size: "limit", default: 50, max: 250 },
  since: { at: "updated_at_min", read: isoTime },
  body(_body, { query }) {
    if (!query.has("page_info"))
      return Object.keys(first).find((each) => query.get(each) !== first[each]) && "this mock wants every status";
    const other = [...query.keys()].find((each) => !["page_info", "limit", "fields"].includes(each));
    return other && `${other}: cannot be passed together with page_info`;
  },
  record: (item) => ({ id: 450_789_469 + item.n, updated_at: local(item.time), ...record(item) }),
  answer: ({ records, next, size, ask }: PageOf) => ({
    headers:
      next === null
        ? {}
        : { link: `<${ask.url.origin}${ask.url.pathname}?limit=${size}&page_info=${next}>; rel="next"` },
    body: { [name]: records },
  }),
});

const SEARCH = /^updated_at:>='([^']+)'$/;

function asked(ask: Ask): string | undefined {
  const search = rootOf(ask).args["query"];
  if (search === undefined) return undefined;
  const [, since] = SEARCH.exec(String(search)) ?? [];
  if (!since) throw new Error(`this mock does not know the search ${search}`);
  return since;
}

const connection = (name: string, sortKeys: readonly string[], record: Collection["record"]): Collection => ({
  ...{ url: `${admin}/graphql.json`, method: "POST" },
  when: (ask) => rootOf(ask).name === name,
  body(_body, ask) {
    const root: Field = rootOf(ask);
    if (!sortKeys.includes(String(root.args["sortKey"] ?? "ID"))) return `sortKey ${root.args["sortKey"]} is invalid`;
    return unknownArgument(root, ["first", "after", "last", "before", "query", "reverse", "sortKey", "savedSearchId"]);
  },
  pages: {
    ...{ kind: "cursor", default: 50, max: 250 },
    at: (ask) => rootOf(ask).args["after"] as string | undefined,
    size: (ask) => rootOf(ask).args["first"]?.toString(),
  },
  since: { at: asked, read: isoTime },
  record,
  answer({ records, next, ask }: PageOf) {
    const data = {
      [name]: select({ nodes: records, pageInfo: { hasNextPage: next !== null, endCursor: next } }, rootOf(ask).fields),
    };
    return { data, extensions: { cost: { requestedQueryCost: 12, throttleStatus: { currentlyAvailable: 1988 } } } };
  },
});

const address: Rec = { address1: "Chestnut Street 92", city: "Louisville", country_code: "US", zip: "40202" };

export default {
  documentation: [
    "https://shopify.dev/docs/apps/build/authentication-authorization/access-tokens/client-credentials-grant",
    "https://shopify.dev/docs/api/admin-rest/usage/pagination",
    "https://shopify.dev/docs/api/admin-rest/latest/resources/order",
    "https://shopify.dev/docs/api/admin-rest/latest/resources/customer",
    "https://shopify.dev/docs/api/admin-rest/latest/resources/customcollection",
    "https://shopify.dev/docs/api/admin-rest/latest/resources/location",
    "https://shopify.dev/docs/api/admin-graphql/latest/queries/products",
    "https://shopify.dev/docs/api/admin-graphql/latest/queries/productVariants",
    "https://shopify.dev/docs/api/usage/limits",
  ],
  config: { shop: "acme", client_id: "app-1", client_secret: "secret-app", start_date: "2026-01-01T00:00:00Z" },
  auth: oauth({
    url: `${shop}/admin/oauth/access_token`,
    form: { grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
    more: { scope: "read_orders,read_products,read_customers" },
    use: (token) => header("x-shopify-access-token", token),
  }),
  unauthorized: {
    status: 401,
    body: { errors: "[API] Invalid API key or access token (unrecognized login or wrong password)" },
  },
  limited: retryAfter({ errors: "Exceeded 2 calls per second for api client. Reduce request rates." }),
  collections: {
    orders: rest(
      "orders",
      ({ n, time }) => ({
        ...{
          admin_graphql_api_id: `gid://shopify/Order/${n}`,
          name: `#${1000 + n}`,
          number: n,
          order_number: 1000 + n,
        },
        ...{
          email: "bob@example.com",
          phone: null,
          note: null,
          tags: "vip",
          token: "b1946ac92492d2347c6235b4d2611184",
        },
        ...{ currency: "USD", presentment_currency: "USD", total_price: "598.94", subtotal_price: "597.00" },
        ...{
          total_tax: "11.94",
          total_discounts: "10.00",
          total_line_items_price: "597.00",
          total_outstanding: "0.00",
        },
        ...{ total_weight: 0, taxes_included: false, test: false, confirmed: true, financial_status: "paid" },
        ...{ fulfillment_status: null, cancel_reason: null, cancelled_at: null, closed_at: null, user_id: null },
        ...{
          created_at: local(time),
          processed_at: local(time),
          source_name: "web",
          location_id: null,
          app_id: 1_966_818,
        },
        ...{ customer: { id: 207_119_551 }, billing_address: address, shipping_address: address, fulfillments: [] },
        ...{ line_items: [{ id: 466_157_049, quantity: 1, price: "199.00" }], refunds: [], shipping_lines: [] },
        ...{ tax_lines: [], discount_codes: [{ code: "TENOFF" }], discount_applications: [], note_attributes: [] },
      }),
      { status: "any" },
    ),
    customers: rest("customers", ({ n }) => ({
      ...{ admin_graphql_api_id: `gid://shopify/Customer/${n}`, email: `user${n}@example.com`, first_name: "Bob" },
      ...{ last_name: "Norman", phone: "+16136120707", state: "disabled", note: null, tags: "", currency: "USD" },
      ...{ verified_email: true, tax_exempt: false, tax_exemptions: [], orders_count: 1, total_spent: "199.65" },
      ...{ last_order_id: 450_789_469, last_order_name: "#1001", created_at: "2025-06-01T10:00:00-04:00" },
      ...{ default_address: address, addresses: [address], sms_marketing_consent: null },
      email_marketing_consent: { state: "not_subscribed" },
    })),
    custom_collections: rest("custom_collections", ({ n }) => ({
      ...{ admin_graphql_api_id: `gid://shopify/Collection/${n}`, handle: `c-${n}`, title: `Collection ${n}` },
      ...{ body_html: "<p></p>", sort_order: "manual", template_suffix: null, published_scope: "web", image: null },
      published_at: "2025-06-01T10:00:00-04:00",
    })),
    locations: {
      ...{ url: `${admin}/locations.json`, pages: { kind: "none" } },
      record: ({ n }) => ({
        ...{ id: n, admin_graphql_api_id: `gid://shopify/Location/${n}`, name: `Location ${n}`, address1: "Main St 1" },
        ...{ address2: null, city: "Ottawa", zip: "K1A", province: "Ontario", province_code: "ON", country: "CA" },
        ...{ country_code: "CA", phone: "", active: true, legacy: false, created_at: "2025-06-01T10:00:00-04:00" },
        updated_at: "2025-06-01T10:00:00-04:00",
      }),
      answer: ({ records }: PageOf) => ({ locations: records }),
    },
    products: connection(
      "products",
      ["ID", "TITLE", "UPDATED_AT", "CREATED_AT", "PUBLISHED_AT", "VENDOR"],
      ({ n, time }) => ({
        ...{ id: `gid://shopify/Product/${n}`, legacyResourceId: String(n), title: `Product ${n}`, handle: `p-${n}` },
        ...{ descriptionHtml: "errors: THROTTLED", vendor: "Burton", productType: "Snowboard", status: "ACTIVE" },
        ...{ tags: ["a", "b"], templateSuffix: null, totalInventory: 12, tracksInventory: true, isGiftCard: false },
        ...{ onlineStoreUrl: null, createdAt: "2025-06-01T14:00:00Z", publishedAt: null, updatedAt: iso(time) },
        options: [{ id: "gid://shopify/ProductOption/1", name: "Colour", position: 1, values: ["red"] }],
      }),
    ),
    product_variants: connection(
      "productVariants",
      ["ID", "FULL_TITLE", "NAME", "POSITION", "SKU", "TITLE"],
      ({ n, time }) => ({
        ...{
          id: `gid://shopify/ProductVariant/${n}`,
          legacyResourceId: String(n),
          title: "red",
          displayName: "P - red",
        },
        ...{ sku: `SKU-${n}`, barcode: null, price: "19.90", compareAtPrice: null, position: 1, taxable: true },
        ...{ availableForSale: true, inventoryQuantity: 3, inventoryPolicy: "DENY", createdAt: "2025-06-01T14:00:00Z" },
        ...{ updatedAt: iso(time), product: { id: "gid://shopify/Product/1" } },
        ...{
          inventoryItem: { id: "gid://shopify/InventoryItem/1" },
          selectedOptions: [{ name: "Colour", value: "red" }],
        },
      }),
    ),
  },
} satisfies Vendor;
