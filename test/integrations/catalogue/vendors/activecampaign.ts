// ActiveCampaign: the account's own host, offsets, numbers as text, times with the account's offset.
import { header } from "../auth.ts";
import { type Collection, type Item, isoTime, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

/** The time in Chicago's summer, as the vendor writes it. */
const local = (time: Date): string =>
  new Date(time.getTime() - 5 * 3_600_000).toISOString().replace(/\.000Z$/, "-05:00");
const made = "2026-01-02T03:04:05-06:00";

const listed = (name: string, record: (item: Item) => object, optional: string[] = []): Collection => ({
  url: `https://acme.api-us1.com/api/3/${name}`,
  optional: ["orders[id]", ...optional],
  pages: { kind: "offset", at: "offset", size: "limit", default: 20, max: 100 },
  record: (item) => ({ id: String(item.n), ...record(item), links: {} }),
  answer: ({ records, total }: PageOf) => ({ [name]: records, meta: { total: String(total) } }),
});

export default {
  documentation: [
    "https://developers.activecampaign.com/reference/authentication",
    "https://developers.activecampaign.com/reference/pagination",
    "https://developers.activecampaign.com/reference/rate-limits",
    "https://developers.activecampaign.com/reference/list-all-contacts",
    "https://developers.activecampaign.com/reference/list-all-deals",
    "https://developers.activecampaign.com/reference/retrieve-all-lists",
    "https://developers.activecampaign.com/reference/list-all-campaigns",
    "https://developers.activecampaign.com/reference/list-all-automations",
    "https://developers.activecampaign.com/reference/retrieve-all-tags",
  ],
  config: { api_url: "https://acme.api-us1.com", api_key: "secret-ac", start_date: "2026-01-01T00:00:00Z" },
  auth: header("api-token", "secret-ac"),
  // A wrong token is forbidden, not unauthorized.
  unauthorized: { status: 403, body: { message: "You do not have permission to access this resource" } },
  limited: retryAfter({ message: "Too many requests" }),
  collections: {
    lists: listed("lists", ({ n }) => ({
      ...{ stringid: `list-${n}`, name: `List ${n}`, userid: "1", cdate: made, udate: null, private: "0" },
      ...{ sender_name: "A", sender_city: "Chicago", sender_url: "http://example.com", p_use_tracking: "1" },
    })),
    contacts: {
      ...listed(
        "contacts",
        ({ n, time }) => ({
          ...{ email: `c${n}@example.com`, phone: "", firstName: "John", lastName: "Doe", orgid: "0", deleted: "0" },
          ...{ cdate: made, udate: local(time), adate: null, edate: null, ip: "0", hash: "8309", scoreValues: [] },
          ...{ bounced_hard: "0", bounced_soft: "0", bounced_date: null, rating: "0", accountContacts: [] },
        }),
        ["email", "listid", "search", "status", "filters[updated_before]", "filters[created_after]"],
      ),
      params: { "orders[id]": "ASC" },
      pages: { kind: "after", at: "id_greater", key: ({ id }) => String(id), size: "limit", default: 20, max: 100 },
      since: { at: "filters[updated_after]", read: isoTime, inclusive: false },
    },
    deals: listed("deals", ({ n, time }) => ({
      ...{
        title: `Deal ${n}`,
        description: "",
        status: "0",
        value: "45600",
        currency: "usd",
        percent: "0",
        contact: "51",
      },
      ...{ organization: null, account: "2", group: "1", stage: "1", owner: "1", hash: "b5f0", winProbability: null },
      ...{ nextdate: null, cdate: made, mdate: local(time) },
    })),
    campaigns: listed("campaigns", ({ n, time }) => ({
      ...{ type: "single", userid: "1", segmentid: "0", name: `Campaign ${n}`, status: "5", public: "1", cdate: made },
      ...{ mdate: local(time), sdate: made, ldate: null, send_amt: "1", total_amt: "1", opens: "0", uniqueopens: "0" },
    })),
    automations: listed("automations", ({ n, time }) => ({
      ...{
        name: `Automation ${n}`,
        cdate: made,
        mdate: local(time),
        userid: "1",
        status: "1",
        entered: "6",
        hidden: "0",
      },
    })),
    tags: listed("tags", ({ n }) => ({
      ...{ tag: `tag ${n}`, tagType: "contact", description: "", subscriber_count: "2", cdate: made },
    })),
  },
} satisfies Vendor;
