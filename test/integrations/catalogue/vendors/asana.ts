// Asana: `data` in an envelope, opaque offsets, and only the fields that `opt_fields` names.
import { bearer } from "../auth.ts";
import { type Collection, day, isoMs, isoTime, type PageOf, type Rec, retryAfter, type Vendor } from "../vendor.ts";

const api = "https://app.asana.com/api/1.0";

function listed(path: string, type: string, record: Collection["record"], more: Partial<Collection> = {}): Collection {
  return {
    url: `${api}/${path}`,
    optional: ["opt_fields", "opt_pretty"],
    pages: { kind: "cursor", at: "offset", size: "limit", default: 20, max: 100 },
    record: (item) => ({ gid: String(120_000_000_000_000 + item.n), resource_type: type, ...record(item) }),
    answer: ({ records, next, ask }: PageOf) => ({
      data: records.map((each) => named(each, ask.query.get("opt_fields") ?? "name,resource_type")),
      next_page: next === null ? null : { offset: next, path: `/${path}?offset=${next}`, uri: `${api}/${path}` },
    }),
    ...more,
  };
}

/** The key always; the rest where it is named. */
function named(record: Rec, fields: string): Rec {
  const wanted = new Set(["gid", ...fields.split(",").map((field) => field.split(".")[0])]);
  return Object.fromEntries(Object.entries(record).filter(([name]) => wanted.has(name)));
}

const gid = ({ gid: key }: Rec): string => String(key);
const ofWorkspace = { parent: { of: "workspaces", at: "workspace", key: gid } } as const;
const compact = (n: number) => ({ gid: String(n), resource_type: "user" });

export default {
  documentation: [
    "https://developers.asana.com/reference/getworkspaces",
    "https://developers.asana.com/reference/getusers",
    "https://developers.asana.com/reference/getprojects",
    "https://developers.asana.com/reference/getsectionsforproject",
    "https://developers.asana.com/reference/gettasks",
    "https://developers.asana.com/reference/gettags",
    "https://developers.asana.com/docs/pagination",
    "https://developers.asana.com/docs/rate-limits",
  ],
  config: { access_token: "secret-pat", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-pat"),
  unauthorized: { status: 401, body: { errors: [{ message: "Not Authorized" }] } },
  limited: retryAfter({ errors: [{ message: "You have made too many requests recently." }] }),
  collections: {
    workspaces: listed("workspaces", "workspace", ({ n }) => ({
      ...{ name: `Workspace ${n}`, is_organization: true, email_domains: ["example.com"] },
    })),
    users: listed(
      "users",
      "user",
      ({ n }) => ({ name: `User ${n}`, email: `user${n}@example.com`, photo: null, workspaces: [{ gid: "1" }] }),
      ofWorkspace,
    ),
    projects: listed(
      "projects",
      "project",
      ({ n, time, parent }) => ({
        ...{ name: `Project ${n}`, archived: false, color: "light-green", completed: false, completed_at: null },
        ...{ created_at: "2026-01-02T03:04:05.678Z", modified_at: isoMs(time), due_on: day(time), start_on: null },
        ...{ current_status_update: null, custom_fields: [], default_view: "list", followers: [compact(1)] },
        ...{ members: [compact(1), compact(2)], notes: "", owner: compact(1), privacy_setting: "public_to_workspace" },
        ...{ permalink_url: `https://app.asana.com/0/${n}`, team: { gid: "9" }, workspace: { gid: parent["gid"] } },
      }),
      { ...ofWorkspace, optional: ["opt_fields", "archived", "team"] },
    ),
    sections: listed(
      "projects/:project/sections",
      "section",
      ({ n, parent }) => ({
        ...{ name: `Section ${n}`, created_at: "2026-01-02T03:04:05.678Z", project: { gid: parent["gid"] } },
      }),
      { parent: { of: "projects", at: { path: "project" }, key: gid } },
    ),
    tasks: listed(
      "tasks",
      "task",
      ({ n, time, parent }) => ({
        ...{ resource_subtype: "default_task", name: `Task ${n}`, approval_status: null, assignee: compact(1) },
        ...{ completed: true, completed_at: isoMs(time), completed_by: compact(1), created_by: compact(2) },
        ...{ created_at: "2026-01-02T03:04:05.678Z", custom_fields: [{ gid: "5", text_value: "x" }], due_at: null },
        ...{ due_on: day(time), followers: [], memberships: [{ project: { gid: parent["gid"] } }], notes: "" },
        ...{ modified_at: isoMs(time), num_likes: 0, num_subtasks: 2, parent: null, start_at: null, start_on: null },
        ...{ permalink_url: `https://app.asana.com/0/0/${n}`, projects: [{ gid: parent["gid"] }], tags: [] },
        workspace: { gid: "1" },
      }),
      {
        ...{ parent: { of: "projects", at: "project", key: gid }, since: { at: "modified_since", read: isoTime } },
        optional: ["opt_fields", "assignee", "section", "workspace", "completed_since"],
      },
    ),
    tags: listed(
      "tags",
      "tag",
      ({ n, parent }) => ({
        ...{ name: `Tag ${n}`, color: null, created_at: "2026-01-02T03:04:05.678Z", notes: "" },
        ...{ permalink_url: `https://app.asana.com/0/${n}`, workspace: { gid: parent["gid"] } },
      }),
      ofWorkspace,
    ),
  },
} satisfies Vendor;
