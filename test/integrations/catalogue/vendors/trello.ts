// Trello: bare arrays; cards and actions go back in time from an id, which begins with the time of creation.
import { header } from "../auth.ts";
import { type Collection, isoMs, isoTime, type PageOf, type Rec, type Vendor } from "../vendor.ts";

const api = "https://api.trello.com/1";
const id = (n: number): string => (0x60000000 + n).toString(16).padEnd(24, "0");
const key = (record: Rec): string => String(record["id"]);

const all = (path: string, record: Collection["record"], optional: readonly string[] = []): Collection => ({
  url: `${api}/${path}`,
  optional: ["fields", "filter", ...optional],
  pages: { kind: "none" },
  record: (item) => ({ id: id(item.n), ...record(item) }),
  answer: ({ records }: PageOf) => records,
});

const ofBoard = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  ...all(`boards/:board/${path}`, record),
  parent: { of: "boards", at: { path: "board" }, key },
  ...more,
});

export default {
  documentation: [
    "https://developer.atlassian.com/cloud/trello/guides/rest-api/authorization/",
    "https://developer.atlassian.com/cloud/trello/rest/api-group-boards/",
    "https://developer.atlassian.com/cloud/trello/rest/api-group-members/#api-members-id-boards-get",
    "https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits/",
  ],
  config: { api_key: "secret-key", api_token: "secret-token", start_date: "2026-01-01T00:00:00Z" },
  auth: header("authorization", 'OAuth oauth_consumer_key="secret-key", oauth_token="secret-token"'),
  unauthorized: { status: 401, headers: { "content-type": "text/plain" }, body: "invalid token" },
  limited: {
    ...{ status: 429, body: { error: "API_TOKEN_LIMIT_EXCEEDED", message: "Rate limit exceeded" } },
    // "100 requests per 10 second interval for each token"
    seconds: 10,
  },
  collections: {
    boards: all(
      "members/me/boards",
      ({ n, time }) => ({
        ...{
          name: `Board ${n}`,
          desc: "",
          closed: false,
          starred: false,
          pinned: null,
          url: `https://trello.com/b/${n}`,
        },
        ...{
          shortUrl: `https://trello.com/b/${n}`,
          shortLink: `b${n}`,
          idOrganization: id(900),
          idMemberCreator: id(1),
        },
        ...{ dateLastActivity: isoMs(time), dateLastView: null, dateClosed: null, prefs: { permissionLevel: "org" } },
        ...{ labelNames: { green: "" }, memberships: [{ id: id(5), memberType: "admin" }], idTags: [] },
      }),
      ["lists", "memberships", "organization"],
    ),
    lists: ofBoard("lists", ({ n, parent }) => ({
      ...{ name: `List ${n}`, closed: false, idBoard: parent["id"], pos: 16_384.5 * n, subscribed: false, color: null },
    })),
    cards: ofBoard(
      "cards",
      ({ n, time, parent }) => ({
        ...{ idBoard: parent["id"], idList: id(7), idShort: n, name: `Card ${n}`, desc: "", closed: n % 3 === 0 },
        ...{ due: isoMs(time), dueComplete: false, dueReminder: -1, start: null, dateLastActivity: isoMs(time) },
        ...{
          pos: n + 0.5,
          url: `https://trello.com/c/${n}`,
          shortUrl: `https://trello.com/c/${n}`,
          shortLink: `c${n}`,
        },
        ...{ idMembers: [id(1)], idLabels: [], idChecklists: [], labels: [{ id: id(3), color: "green" }] },
        ...{ badges: { votes: 0 }, cover: { size: "normal" }, isTemplate: false, subscribed: false },
      }),
      { order: "newest first", pages: { kind: "after", at: "before", size: "limit", default: 1000, max: 1000, key } },
    ),
    actions: ofBoard(
      "actions",
      ({ n, time, parent }) => ({
        ...{ type: "updateCard", date: isoMs(time), idMemberCreator: id(1), data: { board: { id: parent["id"] }, n } },
        ...{ memberCreator: { id: id(1), username: "ann" }, appCreator: null, limits: {} },
      }),
      {
        ...{ order: "newest first", since: { at: "since", read: isoTime } },
        pages: { kind: "after", at: "before", size: "limit", default: 50, max: 1000, key },
      },
    ),
    checklists: ofBoard("checklists", ({ n, parent }) => ({
      ...{
        name: `Checklist ${n}`,
        idBoard: parent["id"],
        idCard: id(8),
        pos: n,
        checkItems: [{ id: id(2), state: "complete" }],
      },
    })),
    members: ofBoard("members", ({ n }) => ({
      ...{ username: `user${n}`, fullName: `User ${n}`, initials: "U", memberType: "normal", confirmed: true },
      ...{ activityBlocked: false, avatarHash: null, avatarUrl: null, bio: "", url: `https://trello.com/user${n}` },
    })),
  },
} satisfies Vendor;
