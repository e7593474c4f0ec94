// Help Scout's Inbox API 2.0: client credentials, HAL answers, pages by number with a fixed size.
import { oauth } from "../auth.ts";
import { type Collection, iso, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const listed = (name: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `https://api.helpscout.net/v2/${name}`,
  pages: { kind: "number", at: "page", default: name === "conversations" ? 25 : 50 },
  record,
  answer: ({ records, total, size, number, nextUrl }: PageOf) => ({
    _embedded: { [name]: records },
    _links: {
      ...(nextUrl === null ? {} : { next: { href: nextUrl } }),
      page: { href: `https://api.helpscout.net/v2/${name}{?page}`, templated: true },
    },
    page: { size, totalElements: total, totalPages: Math.ceil(total / size), number },
  }),
  ...more,
});

const sorting = { sortField: /^(createdAt|modifiedAt|number|score|firstName|lastName)$/, sortOrder: /^(asc|desc)$/ };

export default {
  documentation: [
    "https://developer.helpscout.com/mailbox-api/overview/authentication/",
    "https://developer.helpscout.com/mailbox-api/overview/rate-limiting/",
    "https://developer.helpscout.com/mailbox-api/endpoints/conversations/list/",
    "https://developer.helpscout.com/mailbox-api/endpoints/customers/list/",
    "https://developer.helpscout.com/mailbox-api/endpoints/mailboxes/list/",
    "https://developer.helpscout.com/mailbox-api/endpoints/users/list/",
    "https://developer.helpscout.com/mailbox-api/endpoints/tags/list/",
    "https://developer.helpscout.com/mailbox-api/endpoints/teams/list-teams/",
  ],
  config: { client_id: "app-1", client_secret: "secret-app", start_date: "2026-01-01T00:00:00Z" },
  auth: oauth({
    url: "https://api.helpscout.net/v2/oauth2/token",
    form: { grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
  }),
  unauthorized: { status: 401, body: { error: "invalid_token", error_description: "The access token is invalid" } },
  limited: {
    status: 429,
    headers: { "x-ratelimit-limit-minute": "400", "x-ratelimit-retry-after": "8" },
    body: { message: "Throttle limit reached" },
    seconds: 8,
  },
  collections: {
    mailboxes: listed("mailboxes", ({ n, time }) => ({
      ...{
        id: n,
        name: `Inbox ${n}`,
        slug: `slug${n}`,
        email: `inbox${n}@example.com`,
        createdAt: "2026-01-02T03:04:05Z",
      },
      ...{ updatedAt: iso(time), _links: { self: { href: `https://api.helpscout.net/v2/mailboxes/${n}` } } },
    })),
    conversations: listed(
      "conversations",
      ({ n, time }) => ({
        ...{ id: 10_000 + n, number: n, threads: 2, type: "email", folderId: 11, status: "active", state: "published" },
        ...{
          subject: "Help",
          preview: "I need help",
          mailboxId: 13,
          createdAt: "2026-01-02T03:04:05Z",
          closedAt: null,
        },
        ...{
          createdBy: { id: 12, type: "customer", email: "bear@example.com" },
          userUpdatedAt: iso(time),
          closedBy: 0,
        },
        ...{
          customerWaitingSince: { time: "2026-02-02T03:04:05Z", friendly: "20 hours ago" },
          cc: [],
          bcc: [],
          tags: [],
        },
        ...{
          source: { type: "email", via: "customer" },
          customFields: [],
          primaryCustomer: { id: 238604, type: "customer" },
        },
      }),
      {
        params: { status: /^(active|all|closed|open|pending|spam)$/, ...sorting },
        optional: ["mailbox", "embed", "tag", "query"],
        since: { at: "modifiedSince", read: isoTime, inclusive: false },
        order: "oldest first",
      },
    ),
    customers: listed(
      "customers",
      ({ n, time }) => ({
        ...{ id: n, firstName: "Bear", lastName: "Cub", gender: "Unknown", jobTitle: "", location: "Canada", age: "" },
        ...{ organization: "Cubs", photoType: "default", photoUrl: null, background: "", draft: false },
        ...{ createdAt: "2026-01-02T03:04:05Z", updatedAt: iso(time), _embedded: { emails: [] } },
      }),
      {
        params: { ...sorting, sortOrder: "desc" },
        optional: ["mailbox", "firstName", "lastName", "query"],
        since: { at: "modifiedSince", read: isoTime, inclusive: false },
        order: "newest first",
      },
    ),
    users: listed("users", ({ n, time }) => ({
      ...{ id: n, firstName: "Vernon", lastName: "Bear", email: `v${n}@example.com`, role: "owner", type: "user" },
      ...{ timezone: "America/New_York", photoUrl: null, jobTitle: "", phone: "", mention: "vernon", initials: "VB" },
      ...{ createdAt: "2026-01-02T03:04:05Z", updatedAt: iso(time) },
    })),
    tags: listed("tags", ({ n, time }) => ({
      ...{ id: n, slug: `t${n}`, name: `t ${n}`, color: "none", ticketCount: 3, createdAt: "2026-01-02T03:04:05Z" },
      updatedAt: iso(time),
    })),
    teams: listed("teams", ({ n, time }) => ({
      ...{ id: n, name: `Team ${n}`, timezone: "UTC", photoUrl: null, mention: "team", initials: "T" },
      ...{ createdAt: "2026-01-02T03:04:05Z", updatedAt: iso(time) },
    })),
  },
} satisfies Vendor;
