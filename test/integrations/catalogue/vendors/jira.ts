// Jira Cloud: JQL search with page tokens, offsets elsewhere, and the Agile API's boards. The token's owner lives in Phoenix (UTC-7).
import { basic } from "../auth.ts";
import { type Collection, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const site = "https://acme.atlassian.net";
const AWAY = 7 * 3_600_000;

const local = (time: Date): string => new Date(time.getTime() - AWAY).toISOString().replace("Z", "-0700");

/** A JQL time: minutes, in the owner's time zone. */
function jqlTime(text: string): number {
  if (!/^\d{4}-\d\d-\d\d \d\d:\d\d$/.test(text))
    throw new Error(`Date value '${text}' for field 'updated' is invalid.`);
  return Date.parse(`${text.replace(" ", "T")}:00Z`) + AWAY;
}

const JQL = /^updated >= "([^"]+)" ORDER BY updated ASC$/;

const offsets = (path: string, member: string | null, record: Collection["record"], max = 50): Collection => ({
  url: `${site}/${path}`,
  pages: { kind: "offset", at: "startAt", size: "maxResults", default: 50, max },
  record,
  answer: ({ records, offset, size, total, next }: PageOf) =>
    member ? { maxResults: size, startAt: offset, total, isLast: next === null, [member]: records } : records,
});

export default {
  documentation: [
    "https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-search/",
    "https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-projects/",
    "https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-users/",
    "https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-fields/",
    "https://developer.atlassian.com/cloud/jira/software/rest/api-group-board/",
    "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/",
  ],
  config: {
    ...{ domain: "acme.atlassian.net", email: "ann@example.com", api_token: "secret-token" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: basic("ann@example.com", "secret-token"),
  unauthorized: { status: 401, body: "Client must be authenticated to access this resource." },
  limited: retryAfter({ errorMessages: ["Rate limit exceeded."] }),
  collections: {
    issues: {
      url: `${site}/rest/api/3/search/jql`,
      params: { jql: JQL, fields: "*all" },
      optional: ["expand", "properties", "fieldsByKeys"],
      pages: { kind: "cursor", at: "nextPageToken", size: "maxResults", default: 50, max: 100 },
      since: { at: (ask) => JQL.exec(ask.query.get("jql") ?? "")?.[1], read: jqlTime },
      order: "oldest first",
      record: ({ n, time }) => ({
        ...{ id: String(10_000 + n), key: `ENG-${n}`, self: `${site}/rest/api/3/issue/${n}`, expand: "names" },
        fields: {
          ...{ summary: `Issue ${n}`, created: "2026-01-02T03:04:05.678-0700", updated: local(time) },
          ...{ labels: ["a"], assignee: null, status: { id: "3", name: "In Progress" }, customfield_10016: 3.5 },
        },
      }),
      answer: ({ records, next }: PageOf) => ({
        ...{ issues: records, isLast: next === null },
        ...(next === null ? {} : { nextPageToken: next }),
      }),
      expect: (record) => {
        const { created, updated } = record["fields"] as { created: string; updated: string };
        return { ...record, created, updated };
      },
    },
    projects: {
      ...offsets("rest/api/3/project/search", "values", ({ n }) => ({
        ...{ id: String(n), key: `P${n}`, name: `Project ${n}`, description: "", projectTypeKey: "software" },
        ...{ style: "next-gen", simplified: true, isPrivate: false, lead: { accountId: "5b1" } },
        ...{ avatarUrls: { "48x48": `${site}/a.png` }, self: `${site}/rest/api/3/project/${n}` },
      })),
      optional: ["orderBy", "query", "typeKey", "expand", "status"],
    },
    users: offsets(
      "rest/api/3/users/search",
      null,
      ({ n }) => ({
        ...{ accountId: `5b10a:${n}`, accountType: "atlassian", displayName: `User ${n}`, active: true },
        ...{ emailAddress: `user${n}@example.com`, timeZone: "America/Phoenix", locale: "en_US" },
        ...{ avatarUrls: {}, self: `${site}/rest/api/3/user?accountId=${n}` },
      }),
      1000,
    ),
    fields: {
      url: `${site}/rest/api/3/field`,
      pages: { kind: "none" },
      record: ({ n }) => ({
        ...{ id: `customfield_${n}`, key: `customfield_${n}`, name: `Field ${n}`, custom: true, orderable: true },
        ...{ navigable: true, searchable: true, clauseNames: [`cf[${n}]`], schema: { type: "number", customId: n } },
      }),
      answer: ({ records }: PageOf) => records,
    },
    boards: {
      ...offsets("rest/agile/1.0/board", "values", ({ n }) => ({
        ...{ id: n, self: `${site}/rest/agile/1.0/board/${n}`, name: `Board ${n}`, type: "scrum", isPrivate: false },
        location: { projectId: 1, projectKey: "P1" },
      })),
      optional: ["type", "name", "projectKeyOrId"],
    },
    sprints: {
      ...offsets("rest/agile/1.0/board/:board/sprint", "values", ({ n, parent }) => ({
        ...{ id: n, self: `${site}/rest/agile/1.0/sprint/${n}`, state: "closed", name: `Sprint ${n}`, goal: "" },
        ...{ startDate: "2026-03-01T08:00:00.000Z", endDate: "2026-03-15T08:00:00.000Z", originBoardId: parent["id"] },
        ...{ completeDate: "2026-03-15T09:10:11.000Z", createdDate: "2026-02-20T08:00:00.000Z" },
      })),
      parent: { of: "boards", at: { path: "board" }, key: ({ id }) => String(id) },
      optional: ["state"],
    },
  },
} satisfies Vendor;
