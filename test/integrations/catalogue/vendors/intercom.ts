// Intercom: searches by POST with cursors in the body, companies by page number, small lists at once.
import { bearer } from "../auth.ts";
import { type Ask, type Collection, type Item, type PageOf, seconds, type Vendor } from "../vendor.ts";

const api = "https://api.intercom.io";
const version = { "intercom-version": /^2\.\d+$/ };
const DAY = 86_400_000;

interface Query {
  readonly field?: string;
  readonly operator?: string;
  readonly value?: unknown;
}

const queryOf = (ask: Ask): Query => (ask.body as { query?: Query }).query ?? {};

// `days`: contacts compare whole days, and `>` begins with the next one.
const search = (name: string, { member, type, days = false, record }: Searched): Collection => ({
  url: `${api}/${name}/search`,
  method: "POST",
  headers: version,
  body(body, ask) {
    const unknown = Object.keys(body).find((key) => !["query", "pagination", "sort"].includes(key));
    if (unknown) return `${unknown} is not known`;
    const { field, operator, value } = queryOf(ask);
    if (field !== "updated_at" || operator !== ">") return "the query is not one of a single date";
    return typeof value === "number" ? undefined : "a date's value must be a number";
  },
  pages: {
    ...{ kind: "cursor", at: { body: "pagination.starting_after" } },
    ...{ size: { body: "pagination.per_page" }, default: days ? 50 : 20, max: 150 },
  },
  since: {
    at: { body: "query.value" },
    read: (text) => (days ? (Math.floor((Number(text) * 1000) / DAY) + 1) * DAY : Number(text) * 1000),
    inclusive: days,
  },
  order: "oldest first",
  record: (item) => ({ ...record(item), created_at: 1_767_225_600, updated_at: seconds(item.time) }),
  answer: ({ records, next, total, size, number }: PageOf) => ({
    ...{ type, [member]: records, total_count: total },
    pages: {
      ...{ type: "pages", page: number, per_page: size, total_pages: Math.ceil(total / size) },
      ...(next === null ? {} : { next: { page: number + 1, starting_after: next } }),
    },
  }),
});

interface Searched {
  readonly member: string;
  readonly type: string;
  readonly days?: boolean;
  readonly record: (item: Item) => Record<string, unknown>;
}

const listed = (name: string, member: string, type: string, record: Collection["record"]): Collection => ({
  ...{ url: `${api}/${name}`, headers: version, pages: { kind: "none" }, record },
  answer: ({ records }: PageOf) => ({ type, [member]: records }),
});

export default {
  documentation: [
    "https://developers.intercom.com/docs/references/2.11/rest-api/api.intercom.io/contacts/searchcontacts",
    "https://developers.intercom.com/docs/references/2.11/rest-api/api.intercom.io/conversations/searchconversations",
    "https://developers.intercom.com/docs/references/2.11/rest-api/api.intercom.io/tickets/searchtickets",
    "https://developers.intercom.com/docs/references/2.11/rest-api/api.intercom.io/companies/listallcompanies",
    "https://developers.intercom.com/docs/references/rest-api/errors/rate-limiting",
    "https://developers.intercom.com/docs/build-an-integration/learn-more/rest-apis/pagination",
  ],
  config: { access_token: "secret-intercom", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-intercom"),
  unauthorized: {
    status: 401,
    body: { type: "error.list", request_id: "r1", errors: [{ code: "token_unauthorized", message: "Not authorized" }] },
  },
  // There is no Retry-After: the time when the window begins anew is told.
  limited: {
    status: 429,
    headers: { "x-ratelimit-limit": "83", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1778803209" },
    body: { type: "error.list", errors: [{ code: "rate_limit_exceeded", message: "Exceeded rate limit" }] },
    seconds: 9,
  },
  collections: {
    contacts: search("contacts", {
      ...{ member: "data", type: "list", days: true },
      record: ({ n }) => ({
        ...{
          type: "contact",
          id: `5ba682d23d7cf92bef87b${n}`,
          workspace_id: "ecahpwf5",
          external_id: `ext-${n}`,
          role: "user",
        },
        ...{
          email: `joe${n}@example.com`,
          phone: null,
          name: "Joe Bloggs",
          avatar: null,
          owner_id: 127,
          signed_up_at: 1_667_228_131,
        },
        ...{
          has_hard_bounced: false,
          unsubscribed_from_emails: false,
          last_seen_at: null,
          custom_attributes: { plan: "pro" },
        },
        location: { type: "location", country: "Ireland", region: "Dublin", city: "Dublin" },
      }),
    }),
    conversations: search("conversations", {
      ...{ member: "conversations", type: "conversation.list" },
      record: ({ n }) => ({
        ...{
          type: "conversation",
          id: String(1000 + n),
          title: null,
          waiting_since: null,
          snoozed_until: null,
          open: true,
        },
        ...{ state: "open", read: false, priority: "not_priority", admin_assignee_id: 0, team_assignee_id: "5017691" },
        source: { type: "conversation", id: "3", delivered_as: "operator_initiated", subject: "", body: "<p>hi</p>" },
        contacts: { type: "contact.list", contacts: [{ type: "contact", id: "5ba6" }] },
      }),
    }),
    tickets: search("tickets", {
      ...{ member: "tickets", type: "ticket.list" },
      record: ({ n }) => ({
        ...{
          type: "ticket",
          id: String(n),
          ticket_id: String(900 + n),
          category: "Customer",
          ticket_state: "submitted",
        },
        ...{
          ticket_attributes: { _default_title_: "Broken" },
          admin_assignee_id: "0",
          team_assignee_id: "0",
          open: true,
        },
        ...{ is_shared: true, snoozed_until: null, ticket_type: { type: "ticket_type", id: "1", name: "Bug" } },
      }),
    }),
    companies: {
      ...{ url: `${api}/companies/list`, method: "POST", headers: version, optional: ["order"] },
      pages: { kind: "number", at: "page", size: "per_page", default: 15, max: 60 },
      record: ({ n, time }) => ({
        ...{
          type: "company",
          id: `531ee472cce572a6ec${n}`,
          company_id: String(n),
          app_id: "ecahpwf5",
          name: "Blue Sun",
          plan: {},
        },
        ...{
          remote_created_at: 1_394_531_169,
          created_at: 1_394_533_506,
          updated_at: seconds(time),
          monthly_spend: 12.5,
        },
        ...{ session_count: 0, user_count: 4, tags: { type: "tag.list", tags: [] }, custom_attributes: {} },
      }),
      answer: ({ records, number, size, total, nextUrl }) => ({
        ...{ type: "list", data: records, total_count: total },
        pages: { type: "pages", next: nextUrl, page: number, per_page: size, total_pages: Math.ceil(total / size) },
      }),
    },
    admins: listed("admins", "admins", "admin.list", ({ n }) => ({
      ...{ type: "admin", id: String(1295 + n), name: "Hoban", email: `h${n}@example.com`, away_mode_enabled: false },
      ...{ away_mode_reassign: false, has_inbox_seat: true, job_title: "Pilot", team_ids: [] },
    })),
    tags: listed("tags", "data", "list", ({ n }) => ({ type: "tag", id: String(n), name: `tag ${n}` })),
  },
} satisfies Vendor;
