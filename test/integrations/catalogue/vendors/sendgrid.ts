// SendGrid v3: suppressions as bare lists with offsets, marketing resources with a link to the next page.
import { bearer } from "../auth.ts";
import { type Collection, type Item, iso, type PageOf, seconds, secondsTime, type Vendor } from "../vendor.ts";

const api = "https://api.sendgrid.com/v3";

const suppression = (name: string, record: (n: number) => object): Collection => ({
  url: `${api}/suppression/${name}`,
  optional: ["end_time", "email"],
  pages: { kind: "offset", at: "offset", size: "limit", default: 500, max: 500 },
  since: { at: "start_time", read: secondsTime },
  record: ({ n, time }: Item) => ({ created: seconds(time), email: `bounce${n}@example.com`, ...record(n) }),
  answer: ({ records }: PageOf) => records,
});

const marketing = (name: string, max: number, record: (item: Item) => object): Collection => ({
  url: `${api}/marketing/${name}`,
  pages: { kind: "cursor", at: "page_token", size: "page_size", default: 100, max },
  record: (item) => ({ ...record(item) }),
  answer: ({ records, nextUrl, ask, total }: PageOf) => ({
    result: records,
    _metadata: { self: ask.url.href, count: total, ...(nextUrl === null ? {} : { next: nextUrl }) },
  }),
});

export default {
  documentation: [
    "https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/authentication",
    "https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/rate-limits",
    "https://www.twilio.com/docs/sendgrid/api-reference/bounces-api/retrieve-all-bounces",
    "https://www.twilio.com/docs/sendgrid/api-reference/blocks-api/retrieve-all-blocks",
    "https://www.twilio.com/docs/sendgrid/api-reference/lists/get-all-lists",
    "https://www.twilio.com/docs/sendgrid/api-reference/single-sends/get-all-single-sends",
  ],
  config: { api_key: "secret-sendgrid", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-sendgrid"),
  unauthorized: {
    status: 401,
    body: { errors: [{ field: null, message: "The provided authorization grant is invalid, expired, or revoked" }] },
  },
  limited: {
    status: 429,
    headers: { "x-ratelimit-limit": "600", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1778803212" },
    body: { errors: [{ field: null, message: "too many requests" }] },
    seconds: 12,
  },
  collections: {
    suppression_groups: {
      ...{ url: `${api}/asm/groups`, optional: ["id"], pages: { kind: "none" }, answer: ({ records }) => records },
      record: ({ n }) => ({
        id: n,
        name: `Group ${n}`,
        description: "Weekly news",
        is_default: false,
        unsubscribes: 400,
      }),
    },
    bounces: suppression("bounces", () => ({ reason: "550 5.1.1 no such user", status: "5.1.1" })),
    blocks: suppression("blocks", () => ({ reason: "error dialing remote address", status: "4.0.0" })),
    spam_reports: suppression("spam_reports", () => ({ ip: "10.63.202.100" })),
    invalid_emails: suppression("invalid_emails", () => ({
      reason: "Mail domain mentioned in email address is unknown",
    })),
    global_unsubscribes: suppression("unsubscribes", () => ({})),
    marketing_lists: marketing("lists", 1000, ({ n }) => ({
      ...{
        id: `ca7b0a53-${n}`,
        name: `list ${n}`,
        contact_count: 0,
        _metadata: { self: `${api}/marketing/lists/${n}` },
      },
    })),
    single_sends: marketing("singlesends", 100, ({ n, time }) => ({
      ...{
        id: `27c21bbf-${n}`,
        name: "Cyber Monday",
        abtest: null,
        status: "draft",
        categories: ["x"],
        is_abtest: false,
      },
      ...{ updated_at: iso(time), created_at: "2026-01-02T03:04:05Z" },
    })),
  },
} satisfies Vendor;
