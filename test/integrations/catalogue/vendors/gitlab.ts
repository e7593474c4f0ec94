// GitLab: bare arrays with Link headers; projects by keyset, their own things by page.
import { bearer } from "../auth.ts";
import { type Collection, isoMs, isoTime, linked, type PageOf, type Rec, retryAfter, type Vendor } from "../vendor.ts";

const api = "https://gitlab.com/api/v4";
const user = { id: 1, username: "ann", name: "Ann", state: "active" };

const ofProject = (path: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `${api}/projects/:project/${path}`,
  parent: { of: "projects", at: { path: "project" }, key: ({ id }) => String(id) },
  pages: { kind: "number", at: "page", size: "per_page", default: 20, max: 100 },
  record,
  answer: (page: PageOf) => linked(page, page.records),
  ...more,
});

const byUpdate = {
  since: { at: "updated_after", read: isoTime },
  order: "oldest first",
  params: { order_by: "updated_at", sort: "asc" },
  optional: ["scope", "state", "status", "labels", "with_labels_details"],
} as const;

const withProject = (record: Rec, parent: Rec): Rec => ({ ...record, project_id: parent["id"] });
const web = "https://gitlab.com/acme/app/-";

export default {
  documentation: [
    "https://docs.gitlab.com/api/rest/#pagination",
    "https://docs.gitlab.com/api/projects/#list-all-projects",
    "https://docs.gitlab.com/api/issues/#list-project-issues",
    "https://docs.gitlab.com/api/merge_requests/#list-project-merge-requests",
    "https://docs.gitlab.com/api/pipelines/#list-project-pipelines",
    "https://docs.gitlab.com/api/commits/#list-repository-commits",
    "https://docs.gitlab.com/api/releases/#list-releases",
  ],
  config: { access_token: "secret-glpat", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-glpat"),
  unauthorized: { status: 401, body: { message: "401 Unauthorized" } },
  limited: retryAfter("Retry later\n"),
  collections: {
    projects: {
      url: `${api}/projects`,
      params: { pagination: "keyset", order_by: "id", sort: "asc" },
      optional: ["membership", "owned", "archived", "simple", "statistics"],
      pages: { kind: "after", at: "id_after", size: "per_page", default: 20, max: 100, key: ({ id }) => String(id) },
      since: { at: "last_activity_after", read: isoTime },
      order: "oldest first",
      record: ({ n, time }) => ({
        ...{ id: n, name: `App ${n}`, path: `app-${n}`, name_with_namespace: `Acme / App ${n}`, description: null },
        ...{ path_with_namespace: `acme/app-${n}`, default_branch: "main", visibility: "private", archived: false },
        ...{ empty_repo: false, topics: ["a"], web_url: `https://gitlab.com/acme/app-${n}`, namespace: { id: 2 } },
        ...{ owner: user, creator_id: 1, star_count: 0, forks_count: 0, open_issues_count: 3 },
        ...{ created_at: "2025-06-01T10:00:00.123Z", updated_at: isoMs(time), last_activity_at: isoMs(time) },
      }),
      answer: (page: PageOf) => linked(page, page.records),
    },
    issues: ofProject(
      "issues",
      ({ n, time, parent }) => ({
        ...{ id: n, iid: n, project_id: parent["id"], title: `Issue ${n}`, description: null, state: "opened" },
        ...{ issue_type: "issue", type: "ISSUE", severity: "UNKNOWN", confidential: false, discussion_locked: null },
        ...{ labels: ["bug"], author: user, assignees: [], closed_by: null, milestone: null, due_date: "2026-06-01" },
        ...{ weight: null, user_notes_count: 1, upvotes: 0, downvotes: 0, time_stats: { time_estimate: 0 } },
        ...{ references: { full: `acme/app#${n}` }, web_url: `${web}/issues/${n}`, closed_at: null },
        ...{ created_at: "2026-01-02T10:00:00.123Z", updated_at: isoMs(time) },
      }),
      byUpdate,
    ),
    merge_requests: ofProject(
      "merge_requests",
      ({ n, time, parent }) => ({
        ...{ id: n, iid: n, project_id: parent["id"], title: `Change ${n}`, description: "", state: "merged" },
        ...{ draft: false, source_branch: "x", target_branch: "main", source_project_id: 2, target_project_id: 3 },
        ...{ sha: "8888888888888888888888888888888888888888", merge_commit_sha: null, squash_commit_sha: null },
        ...{ detailed_merge_status: "not_open", labels: [], author: user, assignees: [user], reviewers: [] },
        ...{ milestone: null, merge_user: user, user_notes_count: 1, web_url: `${web}/merge_requests/${n}` },
        ...{ created_at: "2026-01-02T10:00:00.123Z", updated_at: isoMs(time), merged_at: isoMs(time), closed_at: null },
      }),
      byUpdate,
    ),
    pipelines: ofProject(
      "pipelines",
      ({ n, time, parent }) => ({
        ...{ id: n, iid: n, project_id: parent["id"], name: null, status: "success", source: "push", ref: "main" },
        ...{ sha: "a91957a858320c0e17f3a0eca7cfacbff50ea29a", web_url: `${web}/pipelines/${n}` },
        ...{ created_at: "2026-01-02T10:00:00.123Z", updated_at: isoMs(time) },
      }),
      byUpdate,
    ),
    commits: ofProject(
      "repository/commits",
      ({ n, time }) => {
        const local = isoMs(new Date(time.getTime() + 2 * 3_600_000)).replace("Z", "+02:00");
        return {
          ...{
            id: (0xed899a2f + n).toString(16).padEnd(40, "a"),
            short_id: "ed899a2f",
            title: "Fix",
            message: "Fix\n",
          },
          ...{ author_name: "Ann", author_email: "ann@example.com", authored_date: local, committer_name: "Ann" },
          ...{
            committer_email: "ann@example.com",
            committed_date: local,
            created_at: local,
            parent_ids: ["6104942438"],
          },
          web_url: `${web}/commit/${n}`,
        };
      },
      {
        ...{ since: { at: "since", read: isoTime }, order: "newest first", expect: withProject },
        optional: ["ref_name", "until", "all", "with_stats", "order"],
      },
    ),
    releases: ofProject(
      "releases",
      ({ n, time }) => ({
        ...{ tag_name: `v0.${n}`, name: `Release ${n}`, description: "", author: user, commit: { id: "079e90101242" } },
        ...{ milestones: [], assets: { count: 4 }, upcoming_release: false, created_at: isoMs(time) },
        released_at: isoMs(time),
      }),
      { order: "newest first", expect: withProject, optional: ["order_by", "sort"] },
    ),
  },
} satisfies Vendor;
