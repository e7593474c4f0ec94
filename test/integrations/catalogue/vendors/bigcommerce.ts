// BigCommerce: v3 with `data` and `meta`, v2 with bare arrays, RFC 2822 dates and 204 where there is nothing.
import { header } from "../auth.ts";
import { type Collection, iso, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const api = "https://api.bigcommerce.com/stores/abc123";
const rfc2822 = (time: Date): string => time.toUTCString().replace("GMT", "+0000");

const v3 = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `${api}/v3/${path}`,
  optional: ["sort", "direction", "include", "include_fields"],
  pages: { kind: "number", at: "page", size: "limit", default: 50, max: 250 },
  record,
  answer: ({ records, total, number, size }: PageOf) => ({
    data: records,
    meta: { pagination: { total, count: records.length, per_page: size, current_page: number } },
  }),
  ...more,
});

const v2 = (path: string, record: Collection["record"], more: Partial<Collection>): Collection => ({
  url: `${api}/v2/${path}`,
  pages: { kind: "number", at: "page", size: "limit", default: 50, max: 250 },
  record,
  answer: ({ records }: PageOf) => (records.length > 0 ? records : { status: 204, body: "" }),
  ...more,
});

const changed = { since: { at: "date_modified:min", read: isoTime } } as const;

export default {
  documentation: [
    "https://developer.bigcommerce.com/docs/rest-management/orders",
    "https://developer.bigcommerce.com/docs/rest-management/orders/order-products",
    "https://developer.bigcommerce.com/docs/rest-catalog/products",
    "https://developer.bigcommerce.com/docs/rest-management/customers",
    "https://developer.bigcommerce.com/docs/rest-catalog/brands",
    "https://developer.bigcommerce.com/docs/rest-catalog/category-trees/categories",
    "https://developer.bigcommerce.com/docs/start/best-practices/api-rate-limits",
  ],
  config: { store_hash: "abc123", access_token: "secret-token", start_date: "2026-01-01T00:00:00Z" },
  auth: header("x-auth-token", "secret-token"),
  unauthorized: { status: 401, body: { status: 401, title: "X-Auth-Token header is required", type: "/errors" } },
  limited: {
    ...{ status: 429, body: { status: 429, title: "Too many requests", type: "/errors" }, seconds: 7 },
    headers: { "x-rate-limit-requests-left": "0", "x-rate-limit-time-reset-ms": "7000" },
  },
  collections: {
    orders: v2(
      "orders",
      ({ n, time }) => ({
        ...{ id: n, customer_id: 11, date_created: rfc2822(time), date_modified: rfc2822(time), date_shipped: "" },
        ...{ status_id: 11, status: "Awaiting Fulfillment", custom_status: "Awaiting Fulfillment", items_total: 2 },
        ...{ subtotal_ex_tax: "62.9500", subtotal_inc_tax: "62.9500", total_ex_tax: "62.9500", total_tax: "0.0000" },
        ...{ total_inc_tax: "62.9500", shipping_cost_ex_tax: "0.0000", shipping_cost_inc_tax: "0.0000" },
        ...{ discount_amount: "0.0000", coupon_discount: "0.0000", refunded_amount: "0.0000", items_shipped: 0 },
        ...{ payment_method: "Manual", payment_status: "captured", currency_code: "USD", order_source: "manual" },
        ...{ default_currency_code: "USD", channel_id: 1, external_id: null, is_deleted: false, staff_notes: "" },
        ...{ customer_message: "", billing_address: { first_name: "Jane", country_iso2: "US" } },
      }),
      {
        since: { at: "min_date_modified", read: isoTime },
        optional: ["sort", "min_id", "max_id", "status_id", "is_deleted", "include"],
      },
    ),
    order_products: v2(
      "orders/:order/products",
      ({ n, parent }) => ({
        ...{
          id: n,
          order_id: parent["id"],
          product_id: 20,
          variant_id: 69,
          name: "Fog Linen",
          sku: "SLCTBS-A9",
          type: "physical",
        },
        ...{ quantity: 1, quantity_shipped: 0, quantity_refunded: 0, base_price: "49.0000", price_ex_tax: "49.0000" },
        ...{ price_inc_tax: "49.0000", total_ex_tax: "49.0000", total_inc_tax: "49.0000", total_tax: "0.0000" },
        ...{
          refund_amount: "0.0000",
          weight: "1.0000",
          is_refunded: false,
          product_options: [],
          applied_discounts: [],
        },
      }),
      { parent: { of: "orders", at: { path: "order" }, key: ({ id }) => String(id) } },
    ),
    products: v3(
      "catalog/products",
      ({ n, time }) => ({
        ...{ id: n, name: `Product ${n}`, type: "physical", sku: `SKU-${n}`, description: "<p></p>", weight: 1.25 },
        ...{ price: 49, cost_price: 0, retail_price: 0, sale_price: 0, calculated_price: 49, categories: [23, 21] },
        ...{
          brand_id: 0,
          inventory_level: 5,
          inventory_warning_level: 0,
          inventory_tracking: "none",
          is_visible: true,
        },
        ...{
          is_featured: false,
          availability: "available",
          condition: "New",
          upc: "",
          mpn: "",
          gtin: "",
          total_sold: 0,
        },
        ...{ view_count: 4, base_variant_id: null, custom_url: { url: `/p-${n}/`, is_customized: false } },
        ...{ date_created: "2025-06-01T14:00:00+00:00", date_modified: iso(time).replace("Z", "+00:00") },
      }),
      changed,
    ),
    customers: v3(
      "customers",
      ({ n, time }) => ({
        ...{ id: n, email: `user${n}@example.com`, first_name: "Jane", last_name: "Doe", company: "", phone: "" },
        ...{
          notes: "",
          customer_group_id: 0,
          tax_exempt_category: "",
          registration_ip_address: "",
          origin_channel_id: 1,
        },
        ...{ accepts_product_review_abandoned_cart_emails: true, date_created: iso(time), date_modified: iso(time) },
      }),
      changed,
    ),
    brands: v3("catalog/brands", ({ n }) => ({
      ...{ id: n, name: `Brand ${n}`, page_title: "", meta_keywords: [""], meta_description: "", search_keywords: "" },
      ...{ image_url: "", custom_url: { url: `/b-${n}/`, is_customized: false } },
    })),
    categories: v3("catalog/trees/categories", ({ n }) => ({
      ...{ category_id: n, category_uuid: `c-${n}`, parent_id: 0, tree_id: 1, name: `Category ${n}`, description: "" },
      ...{ views: 0, sort_order: n, page_title: "", meta_keywords: [], meta_description: "", search_keywords: "" },
      ...{ layout_file: "category.html", is_visible: true, default_product_sort: "use_store_settings", image_url: "" },
      url: { path: `/c-${n}/`, is_customized: false },
    })),
  },
} satisfies Vendor;
