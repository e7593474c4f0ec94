// Brevo: offsets with a largest page for each resource, the key in a header, its own header for the wait.
import { header } from "../auth.ts";
import { type Collection, type Item, isoMs, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const listed = (path: string, member: string, max: number, record: (item: Item) => object): Collection => ({
  url: `https://api.brevo.com/v3/${path}`,
  optional: ["sort"],
  pages: { kind: "offset", at: "offset", size: "limit", default: Math.min(50, max), max },
  record: (item) => ({ ...record(item) }),
  answer: ({ records, total }: PageOf) => ({ [member]: records, count: total }),
});

/** With milliseconds and an offset, as the vendor writes it. */
const offset = (time: Date): string => isoMs(time).replace(/Z$/, "+02:00");
const local = (time: Date): string => offset(new Date(time.getTime() + 2 * 3_600_000));

const sender = { name: "Marketing", email: "m@example.com", id: "1" };

export default {
  documentation: [
    "https://developers.brevo.com/docs/authentication-schemes",
    "https://developers.brevo.com/docs/api-limits",
    "https://developers.brevo.com/reference/get-contacts",
    "https://developers.brevo.com/reference/getlists-1",
    "https://developers.brevo.com/reference/getfolders-1",
    "https://developers.brevo.com/reference/getemailcampaigns-1",
    "https://developers.brevo.com/reference/getsmtptemplates",
    "https://developers.brevo.com/reference/getsenders-1",
  ],
  config: { api_key: "secret-xkeysib", start_date: "2026-01-01T00:00:00Z" },
  auth: header("api-key", "secret-xkeysib"),
  unauthorized: { status: 401, body: { message: "Key not found", code: "unauthorized" } },
  limited: {
    status: 429,
    headers: { "x-sib-ratelimit-limit": "100", "x-sib-ratelimit-remaining": "0", "x-sib-ratelimit-reset": "8" },
    body: { message: "Rate limit exceeded", code: "too_many_requests" },
    seconds: 8,
  },
  collections: {
    senders: {
      ...listed("senders", "senders", 1, ({ n }) => ({
        ...{ id: n, name: "Newsletter", email: `s${n}@example.com`, active: true, ips: [] },
      })),
      pages: { kind: "none" },
      optional: ["ip", "domain"],
      answer: ({ records }) => ({ senders: records }),
    },
    contacts: {
      ...listed("contacts", "contacts", 1000, ({ n, time }) => ({
        ...{ id: n, email: `c${n}@example.com`, emailBlacklisted: false, smsBlacklisted: false, listIds: [4, 5] },
        ...{
          createdAt: "2026-01-02T03:04:05.123+02:00",
          modifiedAt: local(time),
          attributes: { FIRSTNAME: "Ann", AGE: 33 },
        },
      })),
      since: { at: "modifiedSince", read: isoTime, inclusive: false },
    },
    contact_lists: listed("contacts/lists", "lists", 50, ({ n }) => ({
      ...{ id: n, name: `List ${n}`, folderId: 1, uniqueSubscribers: 10, totalSubscribers: 10, totalBlacklisted: 0 },
    })),
    contact_folders: listed("contacts/folders", "folders", 50, ({ n }) => ({
      ...{ id: n, name: `Folder ${n}`, uniqueSubscribers: 10, totalSubscribers: 10, totalBlacklisted: 0 },
    })),
    email_campaigns: {
      ...listed("emailCampaigns", "campaigns", 100, ({ n, time }) => ({
        ...{
          id: n,
          name: `Campaign ${n}`,
          subject: "Hi",
          previewText: "",
          type: "classic",
          status: "sent",
          abTesting: false,
        },
        ...{
          scheduledAt: "2026-02-02T03:04:05.000+02:00",
          testSent: false,
          sender,
          replyTo: "r@example.com",
          toField: "",
        },
        ...{
          createdAt: "2026-01-02T03:04:05.000+02:00",
          modifiedAt: local(time),
          recipients: { lists: [4], exclusionLists: [] },
        },
        ...{ statistics: { globalStats: { delivered: 10 } }, inlineImageActivation: false, recurring: false, tag: "" },
      })),
      optional: ["type", "status", "statistics", "startDate", "endDate", "sort", "excludeHtmlContent"],
    },
    smtp_templates: {
      ...listed("smtp/templates", "templates", 1000, ({ n, time }) => ({
        ...{
          id: n,
          name: `Template ${n}`,
          subject: "Hi",
          isActive: true,
          testSent: false,
          sender,
          replyTo: "",
          toField: "",
        },
        ...{ tag: "", htmlContent: "<p>Hi</p>", createdAt: "2026-01-02T03:04:05.000+02:00", modifiedAt: local(time) },
      })),
      optional: ["templateStatus", "sort"],
    },
  },
} satisfies Vendor;
