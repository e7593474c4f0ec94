// Sentry: bare arrays; the Link header always has a next cursor, and says in `results` whether anything is there.
import { bearer } from "../auth.ts";
import { type Collection, iso, isoMs, type PageOf, type Rec, type Vendor } from "../vendor.ts";

const api = "https://sentry.io/api/0";

const listed = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `${api}/${path}/`,
  pages: { kind: "cursor", at: "cursor", default: 100, max: 100 },
  record,
  answer({ records, next, ask }: PageOf) {
    const link = (cursor: string, rel: string, results: boolean): string =>
      `<${ask.url.origin}${ask.url.pathname}?&cursor=${cursor}>; rel="${rel}"; results="${results}"; cursor="${cursor}"`;
    const links = [link("0:0:1", "previous", false), link(next ?? "0:100:0", "next", next !== null)];
    return { headers: { link: links.join(", ") }, body: records };
  },
  ...more,
});

const ofOrganization = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection =>
  listed(`organizations/acme/${path}`, record, more);

export default {
  documentation: [
    "https://docs.sentry.io/api/pagination/",
    "https://docs.sentry.io/api/ratelimits/",
    "https://docs.sentry.io/api/organizations/list-an-organizations-projects/",
    "https://docs.sentry.io/api/events/list-an-organizations-issues/",
    "https://docs.sentry.io/api/events/list-a-projects-error-events/",
    "https://docs.sentry.io/api/releases/list-an-organizations-releases/",
    "https://docs.sentry.io/api/teams/list-an-organizations-teams/",
    "https://docs.sentry.io/api/organizations/list-an-organizations-members/",
  ],
  config: { organization: "acme", auth_token: "secret-sntrys", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-sntrys"),
  unauthorized: { status: 401, body: { detail: "Invalid token" } },
  limited: {
    ...{ status: 429, body: { detail: "You are attempting to use this endpoint too frequently." }, seconds: 7 },
    headers: {
      "x-sentry-rate-limit-remaining": "0",
      "x-sentry-rate-limit-reset": String(Date.parse("2026-05-15T00:00:07Z") / 1000),
    },
  },
  collections: {
    projects: ofOrganization(
      "projects",
      ({ n }) => ({
        ...{
          id: String(n),
          slug: `app-${n}`,
          name: `App ${n}`,
          platform: "node",
          platforms: ["node"],
          firstEvent: null,
        },
        ...{ dateCreated: "2025-06-01T00:00:00.123456Z", firstTransactionEvent: true, isBookmarked: false },
        ...{ isMember: true, hasAccess: true, environments: ["production"], features: ["releases"], team: { id: "2" } },
        ...{ latestRelease: { version: "1.0" }, teams: [{ id: "2", slug: "web" }] },
      }),
      { optional: ["query", "all_projects"] },
    ),
    issues: ofOrganization(
      "issues",
      ({ n, time }) => ({
        ...{ id: String(n), shortId: `APP-${n}`, title: "TypeError", culprit: "raven.scripts", type: "error" },
        ...{ level: "error", status: "resolved", substatus: null, priority: "medium", platform: "node", logger: null },
        ...{ permalink: `https://acme.sentry.io/issues/${n}/`, count: "12", userCount: 3, numComments: 0 },
        ...{ isUnhandled: true, isBookmarked: false, isPublic: false, hasSeen: true, issueType: "error" },
        ...{ issueCategory: "error", project: { id: "1", slug: "app-1" }, metadata: { type: "TypeError" } },
        ...{ assignedTo: null, statusDetails: {}, annotations: [], firstSeen: "2025-06-01T00:00:00Z" },
        lastSeen: isoMs(time).replace("Z", "000Z"),
      }),
      {
        order: "newest first",
        pages: { kind: "cursor", at: "cursor", size: "limit", default: 100, max: 100 },
        optional: ["query", "sort", "project", "environment", "statsPeriod", "start", "end", "expand", "collapse"],
        body(_body, { query }) {
          // "If not provided, an implied query is:unresolved issue.priority:[high,medium] is assumed."
          if (query.get("query") !== "") return "this mock has every status: ask for it";
          return query.get("sort") === "date" || !query.has("sort") ? undefined : "this mock sorts by date only";
        },
      },
    ),
    events: listed(
      "projects/acme/:project/events",
      ({ n, time, parent }) => ({
        ...{
          id: `9fac2ceed9344f2bbfdd${n}`,
          eventID: `9fac2ceed9344f2bbfdd${n}`,
          groupID: "1",
          projectID: parent["id"],
        },
        ...{ "event.type": "error", title: "TypeError", message: "", culprit: "/", location: null, platform: "node" },
        ...{ crashFile: null, user: { ip_address: "198.51.100.7" }, tags: [{ key: "level", value: "error" }] },
        dateCreated: iso(time),
      }),
      {
        parent: { of: "projects", at: { path: "project" }, key: ({ slug }: Rec) => String(slug) },
        ...{ order: "newest first", optional: ["full", "sample", "statsPeriod", "start", "end"] },
      },
    ),
    releases: ofOrganization(
      "releases",
      ({ n, time }) => ({
        ...{
          id: n,
          version: `app@1.${n}`,
          shortVersion: `1.${n}`,
          versionInfo: null,
          ref: null,
          url: null,
          status: "open",
        },
        ...{ dateCreated: isoMs(time), dateReleased: null, firstEvent: null, lastEvent: isoMs(time), newGroups: 0 },
        ...{ commitCount: 2, deployCount: 0, lastCommit: null, lastDeploy: null, authors: [], owner: null, data: {} },
        projects: [{ id: 1, slug: "app-1" }],
      }),
      { optional: ["query"] },
    ),
    teams: ofOrganization(
      "teams",
      ({ n }) => ({
        ...{ id: String(n), slug: `team-${n}`, name: `Team ${n}`, dateCreated: "2025-06-01T00:00:00.123Z" },
        ...{ isMember: true, teamRole: "admin", hasAccess: true, isPending: false, memberCount: 3 },
        ...{ avatar: { avatarType: "letter_avatar" }, access: ["team:read"], flags: { "idp:provisioned": false } },
      }),
      { optional: ["detailed"] },
    ),
    members: ofOrganization("members", ({ n }) => ({
      ...{ id: String(n), email: `user${n}@example.com`, name: `User ${n}`, orgRole: "member", pending: false },
      ...{ expired: false, inviteStatus: "approved", inviterName: null, user: { id: String(n), isActive: true } },
      ...{ flags: { "sso:linked": false }, dateCreated: "2025-06-01T00:00:00.123Z" },
    })),
  },
} satisfies Vendor;
