// Greenhouse's Harvest v3: bare arrays, a Link header whose cursor is the only parameter, filters as `gte|TIME`.
import { oauth } from "../auth.ts";
import { type Collection, day, isoMs, isoTime, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const api = "https://harvest.greenhouse.io/v3";

const listed = (name: string, record: Collection["record"]): Collection => ({
  url: `${api}/${name}`,
  optional: ["updated_at", "created_at", "ids", "fields"],
  pages: { kind: "cursor", at: "cursor", size: "per_page", default: 100, max: 500 },
  since: {
    read: isoTime,
    at({ query }) {
      const asked = query.get("updated_at");
      const since = asked === null ? undefined : /^gte\|(.+)$/.exec(asked)?.[1];
      if (asked !== null && since === undefined) throw new Error("updated_at: OPERATOR|TIME is expected");
      return since;
    },
  },
  body: (_body, { query }) =>
    query.has("cursor") && [...query.keys()].length > 1 ? "cursor must be the only query parameter" : undefined,
  record: (item) => ({
    id: 4_000_000_000 + item.n,
    ...{ created_at: "2025-06-01T10:00:00.123Z", updated_at: isoMs(item.time), ...record(item) },
  }),
  answer: ({ records, next, ask }: PageOf) => ({
    headers: next === null ? {} : { link: `<${ask.url.origin}${ask.url.pathname}?cursor=${next}>; rel="next"` },
    body: records,
  }),
});

export default {
  documentation: [
    "https://harvestdocs.greenhouse.io/docs/authentication",
    "https://harvestdocs.greenhouse.io/docs/pagination",
    "https://harvestdocs.greenhouse.io/docs/list-endpoints",
    "https://harvestdocs.greenhouse.io/docs/api-rate-limiting",
  ],
  config: { client_id: "app-1", client_secret: "secret-app", user_id: "4321", start_date: "2026-01-01T00:00:00Z" },
  auth: oauth({
    url: "https://auth.greenhouse.io/token",
    form: { grant_type: "client_credentials", sub: "4321" },
    basic: ["app-1", "secret-app"],
  }),
  unauthorized: { status: 401, body: { message: "Unauthorized" } },
  limited: retryAfter({ message: "Rate limit exceeded" }),
  collections: {
    candidates: listed("candidates", ({ n, time }) => ({
      ...{ first_name: "Ann", last_name: `No ${n}`, preferred_name: null, company: "", title: null, private: false },
      ...{ can_email: true, recruiter_id: null, coordinator_id: 5, photo_url: null, tags: ["a"], addresses: [] },
      ...{
        email_addresses: [{ type: "personal", value: "ann@example.com" }],
        phone_numbers: [],
        website_addresses: [],
      },
      ...{ social_media_addresses: [], custom_fields: [{ name: "Level", value: 3 }], last_activity_at: isoMs(time) },
    })),
    applications: listed("applications", ({ n, time }) => ({
      ...{ candidate_id: n, job_id: 7, job_post_id: null, status: "active", prospect: false, stage_id: 3 },
      ...{ stage_name: "Phone screen", source_id: 2, referrer_id: null, recruiter_id: null, coordinator_id: null },
      ...{ rejection_reason_id: null, answers: [], custom_fields: [], applied_at: isoMs(time), rejected_at: null },
      ...{ hired_at: null, last_activity_at: isoMs(time) },
    })),
    jobs: listed("jobs", ({ n, time }) => ({
      ...{ name: `Engineer ${n}`, requisition_id: null, status: "open", confidential: false, template: false },
      ...{
        notes: null,
        department_id: 1,
        office_ids: [1, 2],
        custom_fields: [],
        opened_at: isoMs(time),
        closed_at: null,
      },
    })),
    offers: listed("offers", ({ n, time }) => ({
      ...{ application_id: n, candidate_id: n, job_id: 7, opening_id: null, version: 1, status: "accepted" },
      ...{ starts_at: day(time), sent_at: day(time), resolved_at: isoMs(time), custom_fields: [] },
    })),
    users: listed("users", ({ n }) => ({
      ...{ first_name: "Ann", last_name: `No ${n}`, primary_email_address: `user${n}@example.com`, employee_id: null },
      ...{
        job_title: null,
        site_admin: false,
        deactivated: false,
        department_ids: [],
        office_ids: [],
        custom_fields: [],
      },
    })),
    departments: listed("departments", ({ n }) => ({ name: `Department ${n}`, external_id: null, parent_id: null })),
  },
} satisfies Vendor;
