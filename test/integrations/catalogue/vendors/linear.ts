// Linear: one GraphQL endpoint, Relay connections, filters by comparators. Going too fast is 400 with a code.
import { header } from "../auth.ts";
import { rootOf, select, unknownArgument } from "../graphql.ts";
import { type Collection, day, isoMs, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const known = ["first", "after", "last", "before", "filter", "orderBy", "includeArchived"];

const connection = (name: string, record: Collection["record"]): Collection => ({
  ...{ url: "https://api.linear.app/graphql", method: "POST" },
  when: (ask) => rootOf(ask).name === name,
  body(_body, ask) {
    const root = rootOf(ask);
    const order = root.args["orderBy"] ?? "createdAt";
    if (!["createdAt", "updatedAt"].includes(String(order))) return `orderBy cannot be ${order}`;
    return unknownArgument(root, name === "users" ? [...known, "includeDisabled"] : known);
  },
  pages: {
    ...{ kind: "cursor", default: 50, max: 250 },
    at: (ask) => rootOf(ask).args["after"] as string | undefined,
    size: (ask) => rootOf(ask).args["first"]?.toString(),
  },
  since: {
    read: isoTime,
    at: (ask) => (rootOf(ask).args["filter"] as { updatedAt?: { gte?: string } } | undefined)?.updatedAt?.gte,
  },
  record: (item) => ({
    ...{
      id: `${name}-${item.n}`,
      createdAt: "2025-06-01T00:00:00.000Z",
      updatedAt: isoMs(item.time),
      archivedAt: null,
    },
    ...record(item),
  }),
  answer({ records, next, ask }: PageOf) {
    const root = rootOf(ask);
    const pageInfo = { hasNextPage: next !== null, endCursor: next };
    return { data: { [name]: select({ nodes: records, pageInfo }, root.fields) } };
  },
});

const failed = (message: string, code: string) => ({ errors: [{ message, extensions: { code, userError: true } }] });

export default {
  documentation: [
    "https://linear.app/developers/graphql",
    "https://linear.app/developers/pagination",
    "https://linear.app/developers/filtering",
    "https://linear.app/developers/rate-limiting",
  ],
  config: { api_key: "secret-lin_api", start_date: "2026-01-01T00:00:00Z" },
  auth: header("authorization", "secret-lin_api"),
  unauthorized: { status: 401, body: failed("Authentication required, not authenticated", "AUTHENTICATION_ERROR") },
  limited: {
    status: 400,
    headers: { "x-ratelimit-requests-reset": String(Date.parse("2026-05-15T00:00:07Z")) },
    body: failed("Rate limit exceeded. Only 5000 requests are allowed per 1 hour.", "RATELIMITED"),
    seconds: 7,
  },
  collections: {
    teams: connection("teams", ({ n }) => ({
      ...{ key: `T${n}`, name: `Team ${n}`, description: null, private: false, timezone: "Europe/Berlin" },
      ...{ cyclesEnabled: true, issueCount: 12 },
    })),
    users: connection("users", ({ n, time }) => ({
      ...{ name: `User ${n}`, displayName: `user${n}`, email: `user${n}@example.com`, active: true, admin: false },
      ...{ guest: false, timezone: "Europe/Berlin", url: `https://linear.app/acme/profiles/u${n}` },
      lastSeen: isoMs(time),
    })),
    projects: connection("projects", ({ n, time }) => ({
      ...{ name: `Project ${n}`, description: "", slugId: `p${n}`, url: `https://linear.app/acme/project/p${n}` },
      ...{ icon: null, color: "#bec2c8", priority: 2, progress: 0.25, scope: 12.5, health: "onTrack" },
      ...{
        startDate: "2026-03-01",
        targetDate: day(time),
        startedAt: isoMs(time),
        completedAt: null,
        canceledAt: null,
      },
      ...{ status: { id: "s1", name: "In Progress", type: "started" }, lead: { id: "u1" }, creator: null },
    })),
    cycles: connection("cycles", ({ n, time }) => ({
      ...{ number: n, name: null, description: null, startsAt: isoMs(time), endsAt: isoMs(time), completedAt: null },
      ...{ progress: 0.5, team: { id: "t1" } },
    })),
    issues: connection("issues", ({ n, time }) => ({
      ...{ identifier: `ENG-${n}`, number: n, title: `Issue ${n}: RATELIMITED`, description: "errors", priority: 3 },
      ...{ priorityLabel: "Medium", estimate: n % 2 ? 1.5 : null, sortOrder: -n / 4, branchName: `eng-${n}` },
      ...{ url: `https://linear.app/acme/issue/ENG-${n}`, dueDate: null, startedAt: isoMs(time), completedAt: null },
      ...{ canceledAt: null, state: { id: "s1", name: "Todo", type: "unstarted" }, team: { id: "t1", key: "ENG" } },
      ...{ assignee: null, creator: { id: "u1" }, project: null, cycle: null, parent: null, labelIds: ["l1", "l2"] },
    })),
    comments: connection("comments", ({ n }) => ({
      ...{ body: `Comment ${n}`, url: `https://linear.app/acme/issue/ENG-1#comment-${n}`, editedAt: null },
      ...{ resolvedAt: null, issue: { id: "i1" }, user: { id: "u1" }, parent: null },
    })),
  },
} satisfies Vendor;
