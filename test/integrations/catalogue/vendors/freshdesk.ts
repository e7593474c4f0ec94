// Freshdesk: pages by number, the next one in the Link header; filters by a time of change.
import { basic } from "../auth.ts";
import { type Collection, type Item, iso, isoTime, linked, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const listed = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `https://acme.freshdesk.com/api/v2/${path}`,
  pages: { kind: "number", at: "page", size: "per_page", default: 30, max: 100 },
  record,
  answer: (page: PageOf) => linked(page, page.records),
  ...more,
});

const times = ({ time }: Item) => ({ created_at: "2026-01-02T03:04:05Z", updated_at: iso(time) });

export default {
  documentation: [
    "https://developers.freshdesk.com/api/#authentication",
    "https://developers.freshdesk.com/api/#pagination",
    "https://developers.freshdesk.com/api/#ratelimit",
    "https://developers.freshdesk.com/api/#list_all_tickets",
    "https://developers.freshdesk.com/api/#list_all_contacts",
    "https://developers.freshdesk.com/api/#view_all_satisfaction_ratings",
  ],
  config: { domain: "acme.freshdesk.com", api_key: "secret-freshdesk", start_date: "2026-01-01T00:00:00Z" },
  auth: basic("secret-freshdesk", "X"),
  unauthorized: {
    status: 401,
    body: { code: "invalid_credentials", message: "You have to be logged in to perform this action." },
  },
  limited: retryAfter({ message: "You have exceeded the limit of requests per hour" }),
  collections: {
    agents: listed("agents", (item) => ({
      ...{
        id: 432 + item.n,
        available: true,
        occasional: false,
        ticket_scope: 1,
        type: "support_agent",
        signature: null,
      },
      ...{ group_ids: [4, 5], role_ids: [1], available_since: null, ...times(item) },
      contact: { active: true, email: `a${item.n}@example.com`, name: "Rachel", language: "en", time_zone: "Hawaii" },
    })),
    tickets: listed(
      "tickets",
      (item) => ({
        ...{ id: item.n, subject: "Support needed", description: "<div>Hi</div>", description_text: "Hi", type: null },
        ...{
          status: 2,
          priority: 1,
          source: 1,
          requester_id: 129,
          responder_id: null,
          group_id: 156,
          company_id: null,
        },
        ...{
          spam: false,
          is_escalated: false,
          fr_escalated: true,
          to_emails: null,
          cc_emails: ["c@example.com"],
          tags: [],
        },
        ...{ custom_fields: { cf_colour: "red" }, due_by: "2026-06-01T00:00:00Z", fr_due_by: "2026-06-01T00:00:00Z" },
        ...{ stats: { closed_at: null, resolved_at: null, first_responded_at: null }, ...times(item) },
      }),
      {
        params: { order_by: /^(created_at|due_by|updated_at|status)$/, order_type: /^(asc|desc)$/ },
        optional: ["include", "filter"],
        since: { at: "updated_since", read: isoTime },
        order: "oldest first",
      },
    ),
    contacts: listed(
      "contacts",
      (item) => ({
        ...{
          id: item.n,
          name: "Rachel Doe",
          email: `r${item.n}@example.com`,
          phone: null,
          mobile: "+1",
          address: null,
        },
        ...{ active: false, deleted: false, job_title: null, language: "en", time_zone: "UTC", company_id: 23 },
        ...{ other_emails: [], tags: [], custom_fields: {}, view_all_tickets: false, ...times(item) },
      }),
      { optional: ["email", "state"], since: { at: "_updated_since", read: isoTime } },
    ),
    satisfaction_ratings: listed(
      "surveys/satisfaction_ratings",
      (item) => ({
        ...{ id: item.n, survey_id: 4, user_id: 5, agent_id: 6, group_id: 7, ticket_id: 8, feedback: "Thanks" },
        ...{ ratings: { default_question: 103 }, created_at: iso(item.time), updated_at: iso(item.time) },
      }),
      { optional: ["user_id"], since: { at: "created_since", read: isoTime } },
    ),
    companies: listed("companies", (item) => ({
      ...{ id: item.n, name: `Super Nova ${item.n}`, description: null, note: null, domains: ["supernova.example"] },
      ...{ health_score: "Happy", account_tier: "Premium", renewal_date: "2026-12-31T00:00:00Z", industry: null },
      ...{ custom_fields: {}, ...times(item) },
    })),
    groups: listed("groups", (item) => ({
      ...{ id: item.n, name: `Group ${item.n}`, description: "", escalate_to: null, unassigned_for: "30m" },
      ...{ business_hour_id: null, group_type: "support_agent_group", ...times(item) },
    })),
  },
} satisfies Vendor;
