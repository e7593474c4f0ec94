// Mailchimp Marketing: the data centre in the host, offsets, filters by time that leave out the moment itself.
import { type Collection, type Filter, type Item, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const api = "https://us21.api.mailchimp.com/3.0";

/** Times with an offset, as the vendor writes them. */
const offset = (time: Date): string => time.toISOString().replace(/\.000Z$/, "+00:00");
const after = (at: string): Filter => ({ at, read: isoTime, inclusive: false });

const listed = (path: string, record: (item: Item) => object, more: Partial<Collection> = {}): Collection => {
  const name = path.split("/").at(-1) ?? "";
  return {
    url: `${api}/${path}`,
    pages: { kind: "offset", at: "offset", size: "count", default: 10, max: 1000 },
    record: (item) => ({ ...record(item) }),
    answer: ({ records, total }: PageOf) => ({ [name]: records, total_items: total }),
    ...more,
    optional: ["fields", "exclude_fields", "sort_field", "sort_dir", ...(more.optional ?? [])],
  };
};

const ofList = { of: "lists", at: { path: "list" }, key: ({ id }) => String(id) } satisfies Collection["parent"];
const settings = { subject_line: "Hi", title: "t", from_name: "A", reply_to: "a@example.com" };

export default {
  documentation: [
    "https://mailchimp.com/developer/marketing/docs/fundamentals/",
    "https://mailchimp.com/developer/marketing/docs/methods-parameters/#pagination",
    "https://mailchimp.com/developer/marketing/docs/errors/",
    "https://mailchimp.com/developer/marketing/api/lists/get-lists-info/",
    "https://mailchimp.com/developer/marketing/api/list-members/list-members-info/",
    "https://mailchimp.com/developer/marketing/api/list-segments/list-segments/",
    "https://mailchimp.com/developer/marketing/api/campaigns/list-campaigns/",
    "https://mailchimp.com/developer/marketing/api/reports/list-campaign-reports/",
    "https://mailchimp.com/developer/marketing/api/automation/list-automations/",
  ],
  config: { api_key: "secret-us21", start_date: "2026-01-01T00:00:00Z" },
  // Any user name will do.
  auth: {
    accepts: ({ headers }) =>
      Buffer.from((headers["authorization"] ?? "").replace(/^Basic /, ""), "base64")
        .toString()
        .endsWith(":secret-us21"),
  },
  unauthorized: {
    status: 401,
    body: {
      type: "https://mailchimp.com/developer/docs/",
      title: "API Key Invalid",
      status: 401,
      detail: "Your API key may be invalid.",
    },
  },
  limited: {
    status: 429,
    body: {
      title: "Too Many Requests",
      status: 429,
      detail: "You have exceeded the limit of 10 simultaneous connections.",
    },
    seconds: 1,
  },
  collections: {
    lists: listed(
      "lists",
      ({ n }) => ({
        ...{
          id: `list${n}`,
          web_id: n,
          name: `Audience ${n}`,
          contact: { company: "Acme", city: "Atlanta", country: "US" },
        },
        ...{ permission_reminder: "You signed up", use_archive_bar: true, date_created: "2026-01-02T03:04:05+00:00" },
        ...{ list_rating: 3, email_type_option: false, visibility: "prv", double_optin: false, modules: [] },
        ...{ campaign_defaults: { from_name: "A", from_email: "a@example.com", subject: "", language: "en" } },
        ...{ stats: { member_count: 3, open_rate: 0.5, last_sub_date: "2026-01-02T03:04:05+00:00" } },
      }),
      { optional: ["since_date_created", "before_date_created", "email"] },
    ),
    list_members: listed(
      "lists/:list/members",
      ({ n, time, parent }) => ({
        ...{
          id: `62eeb292278cc15f5817cb78f7790b${n}`,
          email_address: `m${n}@example.com`,
          unique_email_id: "u",
          web_id: n,
        },
        ...{
          contact_id: "c",
          full_name: "Freddie",
          email_type: "html",
          status: "subscribed",
          merge_fields: { FNAME: "F" },
        },
        ...{ interests: {}, stats: { avg_open_rate: 0.25, avg_click_rate: 0 }, ip_signup: "", timestamp_signup: "" },
        ...{
          timestamp_opt: "2026-01-02T03:04:05+00:00",
          member_rating: 2,
          last_changed: offset(time),
          language: "",
          vip: false,
        },
        ...{ location: { latitude: 33.7, longitude: -84.3, gmtoff: 0, country_code: "US" }, source: "API - Generic" },
        ...{ tags_count: 1, tags: [{ id: 1, name: "x" }], list_id: parent["id"] },
      }),
      {
        ...{ parent: ofList, since: after("since_last_changed"), order: "newest first" },
        params: { sort_field: /^(timestamp_opt|timestamp_signup|last_changed)$/, sort_dir: "DESC" },
        optional: ["status", "email_type", "before_last_changed", "unsubscribed_since"],
      },
    ),
    segments: listed(
      "lists/:list/segments",
      ({ n, time, parent }) => ({
        ...{ id: n, name: `Segment ${n}`, member_count: 2, type: "static", created_at: "2026-01-02T03:04:05+00:00" },
        ...{ updated_at: offset(time), options: { match: "any", conditions: [] }, list_id: parent["id"] },
      }),
      { parent: ofList, since: after("since_updated_at"), optional: ["type", "before_updated_at", "since_created_at"] },
    ),
    campaigns: listed(
      "campaigns",
      ({ n, time }) => ({
        ...{
          id: `camp${n}`,
          web_id: n,
          type: "regular",
          create_time: offset(time),
          archive_url: "http://eepurl.com/x",
        },
        ...{
          long_archive_url: "https://mailchi.mp/x",
          status: "sent",
          emails_sent: 10,
          send_time: "",
          content_type: "html",
        },
        ...{
          recipients: { list_id: "list1", list_is_active: true, recipient_count: 10 },
          settings,
          tracking: { opens: true },
        },
        ...{
          report_summary: { opens: 5, unique_opens: 5, open_rate: 0.5, clicks: 1 },
          delivery_status: { enabled: false },
        },
      }),
      {
        since: after("since_create_time"),
        optional: ["type", "status", "list_id", "before_create_time"],
        order: "oldest first",
      },
    ),
    reports: listed(
      "reports",
      ({ n, time }) => ({
        ...{
          id: `camp${n}`,
          campaign_title: "t",
          type: "regular",
          list_id: "list1",
          list_name: "A",
          subject_line: "Hi",
        },
        ...{
          emails_sent: 10,
          abuse_reports: 0,
          unsubscribed: 1,
          send_time: offset(time),
          forwards: { forwards_count: 0 },
        },
        ...{
          bounces: { hard_bounces: 0, soft_bounces: 1, syntax_errors: 0 },
          opens: { opens_total: 5, open_rate: 0.5 },
        },
        ...{ clicks: { clicks_total: 1, click_rate: 0.1 }, ecommerce: { total_orders: 0, total_spent: 0 } },
      }),
      { since: after("since_send_time"), optional: ["type", "before_send_time"] },
    ),
    automations: listed(
      "automations",
      ({ n, time }) => ({
        ...{ id: `auto${n}`, create_time: offset(time), start_time: "", status: "sending", emails_sent: 0 },
        ...{
          recipients: { list_id: "list1", list_name: "A" },
          settings: { title: "t" },
          trigger_settings: { runtime: {} },
        },
      }),
      { since: after("since_create_time"), optional: ["status", "before_create_time", "since_start_time"] },
    ),
  },
} satisfies Vendor;
