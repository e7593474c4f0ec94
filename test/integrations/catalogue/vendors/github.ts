// GitHub's REST API: bare arrays with Link headers. The primary limit is 403 with the time of its end.
import { bearer } from "../auth.ts";
import { type Collection, iso, isoTime, linked, type PageOf, type Rec, type Vendor } from "../vendor.ts";

const api = "https://api.github.com";
const user = { login: "octocat", id: 1, type: "User" };

const listed = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `${api}/${path}`,
  headers: { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28", "user-agent": /./ },
  pages: { kind: "number", at: "page", size: "per_page", default: 30, max: 100 },
  record: (item) => ({ node_id: `N_${item.n}`, ...record(item) }),
  answer: (page: PageOf) => linked(page, page.records),
  ...more,
});

const ofRepository = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection =>
  listed(`repos/:owner/:name/${path}`, record, {
    parent: {
      of: "repositories",
      at: ({ path: at }) => `${at["owner"]}/${at["name"]}`,
      key: ({ full_name: name }) => String(name),
    },
    expect: (each, parent) => ({ ...each, repository: parent["full_name"] }),
    ...more,
  });

const since = { at: "since", read: isoTime } as const;

const committed = (record: Rec): unknown => (record["commit"] as { committer: { date: string } }).committer.date;

export default {
  documentation: [
    "https://docs.github.com/en/rest/repos/repos",
    "https://docs.github.com/en/rest/issues/issues",
    "https://docs.github.com/en/rest/issues/comments",
    "https://docs.github.com/en/rest/pulls/pulls",
    "https://docs.github.com/en/rest/commits/commits",
    "https://docs.github.com/en/rest/releases/releases",
    "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api",
  ],
  config: { access_token: "secret-pat", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-pat"),
  unauthorized: {
    status: 401,
    body: { message: "Bad credentials", documentation_url: "https://docs.github.com/rest" },
  },
  limited: {
    ...{ status: 403, body: { message: "API rate limit exceeded for user ID 1.", documentation_url: "" }, seconds: 7 },
    headers: {
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(Date.parse("2026-05-15T00:00:07Z") / 1000),
    },
  },
  collections: {
    repositories: listed(
      "user/repos",
      ({ n, time }) => ({
        ...{ id: n, name: `repo-${n}`, full_name: `octo/repo-${n}`, owner: user, private: false, visibility: "public" },
        ...{ description: null, html_url: `https://github.com/octo/repo-${n}`, homepage: null, language: "TypeScript" },
        ...{ topics: ["api"], default_branch: "main", fork: false, archived: false, disabled: false, license: null },
        ...{
          size: 108,
          stargazers_count: 80,
          forks_count: 9,
          open_issues_count: 0,
          created_at: "2025-06-01T00:00:00Z",
        },
        ...{ pushed_at: iso(time), updated_at: iso(time) },
      }),
      { since, optional: ["visibility", "affiliation", "type", "sort", "direction"] },
    ),
    issues: ofRepository(
      "issues",
      ({ n, time }) => ({
        ...{ id: n, number: n, title: `Issue ${n}`, body: "API rate limit", state: "open", state_reason: null, user },
        ...{ locked: false, assignee: null, assignees: [], labels: [{ id: 1, name: "bug" }], milestone: null },
        ...{ comments: 2, author_association: "OWNER", reactions: { total_count: 0 }, closed_at: null },
        ...{
          html_url: `https://github.com/octo/r/issues/${n}`,
          created_at: "2026-01-02T00:00:00Z",
          updated_at: iso(time),
        },
      }),
      {
        since,
        order: "oldest first",
        params: { state: "all", sort: "updated", direction: "asc" },
        optional: ["labels"],
      },
    ),
    pull_requests: ofRepository(
      "pulls",
      ({ n, time }) => ({
        ...{ id: n, number: n, title: `Pull ${n}`, body: null, state: "closed", draft: false, locked: false, user },
        ...{
          assignees: [],
          requested_reviewers: [user],
          labels: [],
          milestone: null,
          head: { ref: "x" },
          base: { ref: "main" },
        },
        ...{
          merge_commit_sha: "e5bd3914e2e596debea16f433f57875b5b90bcd6",
          auto_merge: null,
          author_association: "OWNER",
        },
        ...{
          html_url: `https://github.com/octo/r/pull/${n}`,
          created_at: "2026-01-02T00:00:00Z",
          updated_at: iso(time),
        },
        ...{ closed_at: iso(time), merged_at: iso(time) },
      }),
      {
        order: "newest first",
        params: { state: "all", sort: "updated", direction: "desc" },
        optional: ["head", "base"],
      },
    ),
    commits: ofRepository(
      "commits",
      ({ n, time }) => ({
        ...{ sha: (0xabc00000 + n).toString(16).padEnd(40, "0"), html_url: `https://github.com/octo/r/commit/${n}` },
        ...{ commit: { message: `Commit ${n}`, committer: { name: "Ann", date: iso(time) } }, author: user },
        ...{ committer: null, parents: [{ sha: "7638417db6d59f3c431d3e1f261cc637155684cd" }] },
      }),
      {
        ...{ since, order: "newest first", optional: ["sha", "path", "author", "until"] },
        expect: (each, parent) => ({ ...each, repository: parent["full_name"], committed_at: committed(each) }),
      },
    ),
    issue_comments: ofRepository(
      "issues/comments",
      ({ n, time }) => ({
        ...{
          id: n,
          body: "You have exceeded a secondary rate limit",
          user,
          author_association: "MEMBER",
          reactions: {},
        },
        ...{ issue_url: `${api}/repos/octo/r/issues/1`, html_url: `https://github.com/octo/r/issues/1#${n}` },
        ...{ created_at: "2026-01-02T00:00:00Z", updated_at: iso(time) },
      }),
      { since, optional: ["sort", "direction"] },
    ),
    releases: ofRepository("releases", ({ n, time }) => ({
      ...{ id: n, tag_name: `v1.${n}`, target_commitish: "main", name: `v1.${n}`, body: "", draft: false },
      ...{ prerelease: false, author: user, assets: [], html_url: `https://github.com/octo/r/releases/v1.${n}` },
      ...{ tarball_url: `${api}/t`, zipball_url: null, created_at: iso(time), published_at: iso(time) },
    })),
  },
} satisfies Vendor;
