// ClickUp: a tree of workspaces, spaces, folders and lists, each given whole; tasks of a workspace by page. Times are milliseconds, as text.
import { header } from "../auth.ts";
import { type Collection, millisTime, type PageOf, type Rec, type Vendor } from "../vendor.ts";

const api = "https://api.clickup.com/api/v2";
const key = ({ id }: Rec): string => String(id);

const whole = (path: string, member: string, record: Collection["record"], of?: string): Collection => ({
  url: `${api}/${path}`,
  optional: of ? ["archived"] : [],
  pages: { kind: "none" },
  ...(of ? { parent: { of, at: { path: "parent" }, key } } : {}),
  record,
  answer: ({ records }: PageOf) => ({ [member]: records }),
});

const list: Collection["record"] = ({ n, parent }) => ({
  ...{ id: String(n), name: `List ${n}`, content: "", orderindex: n, status: null, priority: null, assignee: null },
  ...{ task_count: 3, due_date: null, start_date: "1770000000000", archived: false },
  ...{ folder: { id: parent["id"], name: "Folder" }, space: { id: "1", name: "Space" } },
});

export default {
  documentation: [
    "https://developer.clickup.com/docs/authentication",
    "https://developer.clickup.com/docs/rate-limits",
    "https://developer.clickup.com/reference/getauthorizedteams",
    "https://developer.clickup.com/reference/getspaces",
    "https://developer.clickup.com/reference/getfolders",
    "https://developer.clickup.com/reference/getlists",
    "https://developer.clickup.com/reference/getfolderlesslists",
    "https://developer.clickup.com/reference/getfilteredteamtasks",
  ],
  config: { api_token: "secret-pk", start_date: "2026-01-01T00:00:00Z" },
  auth: header("authorization", "secret-pk"),
  unauthorized: { status: 401, body: { err: "Token invalid", ECODE: "OAUTH_025" } },
  limited: {
    ...{ status: 429, body: { err: "Rate limit reached", ECODE: "APP_002" }, seconds: 7 },
    headers: {
      ...{ "x-ratelimit-limit": "100", "x-ratelimit-remaining": "0" },
      "x-ratelimit-reset": String(Date.parse("2026-05-15T00:00:07Z") / 1000),
    },
  },
  collections: {
    workspaces: whole("team", "teams", ({ n }) => ({
      ...{ id: String(n), name: `Workspace ${n}`, color: "#000000", avatar: null, members: [{ user: { id: 1 } }] },
    })),
    spaces: whole(
      "team/:parent/space",
      "spaces",
      ({ n }) => ({
        ...{
          id: String(n),
          name: `Space ${n}`,
          color: null,
          private: false,
          archived: false,
          multiple_assignees: true,
        },
        ...{ statuses: [{ status: "to do", type: "open" }], features: { due_dates: { enabled: true } } },
      }),
      "workspaces",
    ),
    folders: whole(
      "space/:parent/folder",
      "folders",
      ({ n, parent }) => ({
        ...{ id: String(n), name: `Folder ${n}`, orderindex: 0, override_statuses: false, hidden: false },
        ...{ archived: false, task_count: "20", space: { id: parent["id"], name: "Space" }, lists: [] },
      }),
      "spaces",
    ),
    lists: whole("folder/:parent/list", "lists", list, "folders"),
    folderless_lists: whole("space/:parent/list", "lists", list, "spaces"),
    tasks: {
      url: `${api}/team/:parent/task`,
      parent: { of: "workspaces", at: { path: "parent" }, key },
      params: { subtasks: "true", include_closed: "true" },
      optional: ["order_by", "reverse", "include_markdown_description", "custom_items"],
      // "date_updated_gt: filter by date updated greater than Unix time in milliseconds"
      since: { at: "date_updated_gt", read: millisTime, inclusive: false },
      pages: { kind: "number", at: "page", first: 0, default: 100 },
      record: ({ n, time, parent }) => ({
        ...{ id: `9hx${n}`, custom_id: null, custom_item_id: 0, name: `Task ${n}`, text_content: "", description: "" },
        ...{ status: { status: "done", type: "closed" }, orderindex: "1.00000", date_created: "1770000000000" },
        ...{ date_updated: String(time.getTime()), date_closed: null, date_done: null, archived: false },
        ...{ creator: { id: 1 }, assignees: [{ id: 1 }], group_assignees: [], watchers: [], checklists: [], tags: [] },
        ...{ parent: null, top_level_parent: null, priority: null, due_date: null, start_date: null, points: 2.5 },
        ...{ time_estimate: 3_600_000, time_spent: 0, custom_fields: [{ id: "f", value: 1 }], dependencies: [] },
        ...{ linked_tasks: [], team_id: parent["id"], url: `https://app.clickup.com/t/9hx${n}`, list: { id: "1" } },
        ...{ project: { id: "2" }, folder: { id: "2" }, space: { id: "3" } },
      }),
      answer: ({ records, next }: PageOf) => ({ tasks: records, last_page: next === null }),
    },
  },
} satisfies Vendor;
