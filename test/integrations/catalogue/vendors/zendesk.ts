// Zendesk Support: incremental exports by cursor and by time, lists by JSON:API-like cursors.
import { basic } from "../auth.ts";
import {
  type Collection,
  type Item,
  iso,
  type PageOf,
  retryAfter,
  seconds,
  secondsTime,
  type Vendor,
} from "../vendor.ts";

const api = "https://acme.zendesk.com/api/v2";

// The first request says the start time, the following ones the cursor instead.
const exported = (name: string, by: Collection["record"]): Collection => ({
  url: `${api}/incremental/${name}/cursor.json`,
  optional: ["include", "exclude_deleted", "support_type_scope"],
  body: (_body, { query }) =>
    query.has("start_time") === query.has("cursor") ? "either start_time or cursor is needed" : undefined,
  pages: { kind: "cursor", at: "cursor", size: "per_page", default: 1000, max: 1000 },
  since: { at: "start_time", read: secondsTime },
  order: "oldest first",
  record: by,
  answer: ({ records, next, ask }: PageOf) => ({
    ...{ [name]: records, after_cursor: next ?? "ZW5k", before_cursor: null, before_url: null },
    after_url: `${ask.url.origin}${ask.url.pathname}?cursor=${next ?? "ZW5k"}`,
    end_of_stream: next === null,
  }),
});

const listed = (name: string, record: Collection["record"]): Collection => ({
  url: `${api}/${name}.json`,
  pages: { kind: "cursor", at: "page[after]", size: "page[size]", default: 100, max: 100 },
  record,
  answer: ({ records, next, nextUrl }: PageOf) => ({
    [name]: records,
    meta: { has_more: next !== null, after_cursor: next, before_cursor: null },
    links: { next: nextUrl, prev: null },
  }),
});

const times = ({ time }: Item) => ({ created_at: "2026-01-02T03:04:05Z", updated_at: iso(time) });

export default {
  documentation: [
    "https://developer.zendesk.com/api-reference/ticketing/ticket-management/incremental_exports/",
    "https://developer.zendesk.com/api-reference/introduction/pagination/",
    "https://developer.zendesk.com/api-reference/introduction/security-and-auth/#api-token",
    "https://developer.zendesk.com/api-reference/introduction/rate-limits/",
    "https://developer.zendesk.com/api-reference/ticketing/groups/groups/",
    "https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_fields/",
    "https://developer.zendesk.com/api-reference/ticketing/business-rules/macros/",
  ],
  config: {
    ...{ subdomain: "acme", email: "agent@example.com", api_token: "secret-zendesk" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: basic("agent@example.com/token", "secret-zendesk"),
  unauthorized: { status: 401, body: { error: "Couldn't authenticate you" } },
  limited: retryAfter({ error: "APIRateLimitExceeded", description: "Number of allowed API requests exceeded" }),
  collections: {
    groups: listed("groups", (item) => ({
      ...{
        id: 211 + item.n,
        url: `${api}/groups/${211 + item.n}.json`,
        name: `DJs ${item.n}`,
        description: "",
        deleted: false,
      },
      ...{ default: item.n === 1, is_public: true, ...times(item) },
    })),
    ticket_fields: listed("ticket_fields", (item) => ({
      ...{
        id: 34 + item.n,
        url: `${api}/ticket_fields/${34 + item.n}.json`,
        type: "tagger",
        title: "Colour",
        raw_title: "Colour",
      },
      ...{ description: "", position: item.n, active: true, required: false, regexp_for_validation: null, tag: null },
      ...{ custom_field_options: [{ id: item.n, name: "Red", raw_name: "Red", value: "red" }], removable: true },
      ...times(item),
    })),
    macros: listed("macros", (item) => ({
      ...{ id: 25 + item.n, url: `${api}/macros/${25 + item.n}.json`, title: "Close", active: true, position: item.n },
      ...{
        actions: [
          { field: "status", value: "solved" },
          { field: "comment_value", value: ["channel:all", "Hi"] },
        ],
      },
      ...{ description: null, restriction: null, ...times(item) },
    })),
    tickets: exported("tickets", (item) => ({
      ...{
        id: 35436 + item.n,
        url: `${api}/tickets/${item.n}.json`,
        external_id: null,
        type: "incident",
        subject: "Help",
      },
      ...{ raw_subject: "{{dc.printer_on_fire}}", description: "The fire is very colorful.", priority: "high" },
      ...{
        status: "open",
        recipient: "support@company.com",
        requester_id: 20978392,
        submitter_id: 76872,
        assignee_id: null,
      },
      ...{
        organization_id: 509974,
        group_id: 98738,
        collaborator_ids: [35334, 234],
        follower_ids: [],
        problem_id: null,
      },
      ...{ has_incidents: false, due_at: null, tags: ["enterprise", "other_tag"], via: { channel: "web", source: {} } },
      ...{
        custom_fields: [{ id: 27642, value: "745" }],
        satisfaction_rating: { score: "unoffered" },
        brand_id: 360002,
      },
      ...{ is_public: true, created_at: "2026-01-02T03:04:05Z", updated_at: "2026-01-02T03:04:05Z" },
      generated_timestamp: seconds(item.time),
    })),
    users: exported("users", (item) => ({
      ...{
        id: 35436 + item.n,
        url: `${api}/users/${item.n}.json`,
        name: "Johnny Agent",
        email: `u${item.n}@example.com`,
      },
      ...{
        role: "end-user",
        organization_id: 57542,
        locale: "en-US",
        time_zone: "Copenhagen",
        active: true,
        phone: null,
      },
      ...{ verified: true, suspended: false, shared: false, tags: [], user_fields: { department: "sales" } },
      ...{ last_login_at: null, ...times(item) },
    })),
    organizations: {
      url: `${api}/incremental/organizations.json`,
      params: { start_time: /^\d+$/ },
      optional: ["per_page", "page"],
      pages: { kind: "cursor", at: "page", size: "per_page", default: 1000, max: 1000 },
      since: { at: "start_time", read: secondsTime },
      order: "oldest first",
      record: (item) => ({
        ...{
          id: 35436 + item.n,
          url: `${api}/organizations/${item.n}.json`,
          name: `One ${item.n}`,
          external_id: "ABC198",
        },
        ...{ domain_names: ["example.com"], details: "", notes: "", group_id: null, shared_tickets: true, tags: [] },
        ...{ shared_comments: true, organization_fields: { tier: "gold" }, deleted_at: null, ...times(item) },
      }),
      // The last page names a next one as well: for the next time.
      answer: ({ records, next, nextUrl, ask, number }) => ({
        ...{ organizations: records, count: records.length, end_of_stream: next === null },
        ...{ end_time: 1_777_593_600 + number, next_page: nextUrl ?? ask.url.href },
      }),
    },
  },
} satisfies Vendor;
