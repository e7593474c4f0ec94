// Personio's API v2: client credentials, at most 50 a page, the next page as a link in `_meta`.
import { oauth } from "../auth.ts";
import { type Collection, iso, isoTime, retryAfter, type Vendor } from "../vendor.ts";

const listed = (path: string, max: number, record: Collection["record"]): Collection => ({
  url: `https://api.personio.de/v2/${path}`,
  pages: { kind: "cursor", at: "cursor", size: "limit", default: 10, max },
  record,
  answer: ({ records, nextUrl }) => ({
    _data: records,
    _meta: { links: nextUrl === null ? {} : { next: { href: nextUrl } } },
  }),
});

export default {
  documentation: [
    "https://developer.personio.de/reference/post_v2-auth-token",
    "https://developer.personio.de/reference/get_v2-persons",
    "https://developer.personio.de/reference/get_v2-absence-periods",
  ],
  config: { client_id: "app-1", client_secret: "secret-app", start_date: "2026-01-01T00:00:00Z" },
  auth: oauth({
    url: "https://api.personio.de/v2/auth/token",
    form: { grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
  }),
  unauthorized: {
    status: 401,
    body: { personio_trace_id: "1", timestamp: "2026-05-15", errors: [{ title: "Unauthorized", detail: "No token" }] },
  },
  limited: retryAfter({ errors: [{ title: "Too many requests", detail: "Slow down" }] }),
  collections: {
    persons: {
      ...listed("persons", 50, ({ n, time }) => ({
        ...{ id: String(n), email: `ann${n}@example.com`, first_name: "Ann", last_name: String(n), status: "ACTIVE" },
        ...{ created_at: "2025-01-01T00:00:00Z", updated_at: iso(time) },
      })),
      since: { at: "updated_at.gt", read: isoTime, inclusive: false },
    },
    absence_periods: listed("absence-periods", 100, ({ n }) => ({
      ...{ id: `a-${n}`, person: { id: "7" }, starts_from: { date_time: "2026-03-01T00:00:00" } },
      ...{ ends_at: { date_time: "2026-03-02T00:00:00" }, approval: { status: "APPROVED" } },
    })),
  },
} satisfies Vendor;
