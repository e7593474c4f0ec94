// WooCommerce REST API v3: pages by number with a Link header, local times beside those in GMT.
import { basic } from "../auth.ts";
import { type Collection, type Item, linked, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

/** In GMT without saying so, as the vendor writes and reads it. */
const gmt = (time: Date): string => time.toISOString().slice(0, 19);
const gmtTime = (text: string): number => {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)) throw new Error("Invalid parameter(s): modified_after");
  return Date.parse(`${text}Z`);
};

const common = ["context", "search", "after", "before", "exclude", "include", "offset", "order", "orderby"];

const listed = (path: string, record: (item: Item) => object, more: Partial<Collection> = {}): Collection => ({
  url: `https://shop.example.com/wp-json/wc/v3/${path}`,
  pages: { kind: "number", at: "page", size: "per_page", default: 10, max: 100 },
  record: (item) => ({
    id: item.n,
    ...record(item),
    _links: { self: [{ href: `https://shop.example.com/${item.n}` }] },
  }),
  answer: (page: PageOf) => {
    const answer = linked(page, page.records);
    const pages = Math.ceil(page.total / page.size);
    return { ...answer, headers: { ...answer.headers, "x-wp-total": `${page.total}`, "x-wp-totalpages": `${pages}` } };
  },
  ...more,
  optional: [...common, ...(more.optional ?? [])],
});

// Without dates_are_gmt the bound is in the shop's own time.
const changed = (status: boolean): Partial<Collection> => ({
  params: { dates_are_gmt: "true" },
  optional: ["modified_before", ...(status ? ["status"] : [])],
  since: { at: "modified_after", read: gmtTime, inclusive: false },
});

const made = { date_created: "2026-01-02T05:04:05", date_created_gmt: "2026-01-02T03:04:05" };

export default {
  documentation: [
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#authentication-over-https",
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#pagination",
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#list-all-orders",
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#list-all-products",
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#list-all-coupons",
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#list-all-customers",
    "https://woocommerce.github.io/woocommerce-rest-api-docs/#list-all-product-reviews",
  ],
  config: {
    ...{ store_url: "https://shop.example.com", consumer_key: "secret-ck", consumer_secret: "secret-cs" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: basic("secret-ck", "secret-cs"),
  unauthorized: {
    status: 401,
    body: { code: "woocommerce_rest_cannot_view", message: "Sorry, you cannot list resources.", data: { status: 401 } },
  },
  limited: retryAfter({ code: "rate_limited", message: "Too many requests", data: { status: 429 } }),
  collections: {
    products: listed(
      "products",
      ({ n, time }) => ({
        ...{
          name: `Premium ${n}`,
          slug: `premium-${n}`,
          ...made,
          date_modified_gmt: gmt(time),
          type: "simple",
          price: "21.99",
        },
        ...{ status: "publish", featured: false, sku: "", regular_price: "21.99", sale_price: "", on_sale: false },
        ...{ manage_stock: false, stock_quantity: null, stock_status: "instock", weight: "", total_sales: 0 },
        ...{
          dimensions: { length: "", width: "", height: "" },
          categories: [{ id: 9, name: "C", slug: "c" }],
          images: [],
        },
        ...{
          average_rating: "0.00",
          rating_count: 0,
          variations: [],
          menu_order: 0,
          meta_data: [{ id: 1, key: "k", value: {} }],
        },
      }),
      changed(true),
    ),
    orders: listed(
      "orders",
      ({ n, time }) => ({
        ...{ parent_id: 0, number: String(n), order_key: "wc_order_58", created_via: "rest-api", status: "processing" },
        ...{
          currency: "USD",
          ...made,
          date_modified_gmt: gmt(time),
          discount_total: "0.00",
          total: "29.35",
          total_tax: "1.35",
        },
        ...{ prices_include_tax: false, customer_id: 0, billing: { first_name: "John", email: "j@example.com" } },
        ...{
          date_paid_gmt: "2026-01-02T03:04:08",
          date_completed_gmt: null,
          coupon_lines: [],
          refunds: [],
          fee_lines: [],
        },
        line_items: [{ id: 315, name: "Woo", product_id: 93, quantity: 2, total: "6.00", price: 3, sku: "Bar3" }],
      }),
      changed(true),
    ),
    coupons: listed(
      "coupons",
      ({ n, time }) => ({
        ...{ code: `10off${n}`, amount: "10.00", ...made, date_modified_gmt: gmt(time), discount_type: "percent" },
        ...{
          description: "",
          date_expires_gmt: null,
          usage_count: 0,
          individual_use: true,
          usage_limit: null,
          used_by: [],
        },
        ...{ product_ids: [], free_shipping: false, minimum_amount: "100.00", email_restrictions: [], meta_data: [] },
      }),
      changed(false),
    ),
    customers: listed(
      "customers",
      ({ n, time }) => ({
        ...{
          date_created_gmt: made.date_created_gmt,
          date_modified_gmt: gmt(time),
          email: `j${n}@example.com`,
          role: "customer",
        },
        ...{
          first_name: "John",
          last_name: "Doe",
          username: `john.${n}`,
          billing: { city: "San Francisco" },
          shipping: {},
        },
        ...{ is_paying_customer: false, avatar_url: "https://secure.gravatar.com/avatar/8eb1", meta_data: [] },
      }),
      { optional: ["email", "role"] },
    ),
    product_categories: listed(
      "products/categories",
      ({ n }) => ({
        ...{
          name: `Clothing ${n}`,
          slug: `clothing-${n}`,
          parent: 0,
          description: "",
          display: "default",
          image: null,
        },
        ...{ menu_order: 0, count: 36 },
      }),
      { optional: ["hide_empty", "parent", "product", "slug"] },
    ),
    product_reviews: listed(
      "products/reviews",
      ({ n }) => ({
        ...{
          date_created_gmt: made.date_created_gmt,
          product_id: 22,
          product_name: "Woo",
          status: "approved",
          rating: 5,
        },
        ...{ reviewer: `R ${n}`, reviewer_email: "r@example.com", review: "<p>Nice</p>", verified: false },
      }),
      { optional: ["status", "product", "reviewer", "reviewer_email"] },
    ),
  },
} satisfies Vendor;
