// monday.com: one GraphQL endpoint; pages by number at the root, by cursor within a board. The token stands alone in the header.
import { header } from "../auth.ts";
import { type Field, rootOf, select, unknownArgument } from "../graphql.ts";
import { type Ask, type Collection, iso, isoTime, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const endpoint = {
  url: "https://api.monday.com/v2",
  method: "POST",
  headers: { "api-version": /^20\d\d-\d\d$/ },
} as const;

/** `boards` is itself a collection and the way to those of a board. */
const within = (ask: Ask, name: string): Field | undefined => {
  const root = rootOf(ask);
  return root.name === "boards" ? root.fields.find((field) => field.name === name) : undefined;
};

const inBoards = (ask: Ask): Field | undefined => within(ask, "items_page") ?? within(ask, "activity_logs");

const text = (value: unknown): string | undefined => value?.toString();

const rooted = (name: string, known: readonly string[], record: Collection["record"]): Collection => ({
  ...endpoint,
  when: (ask) => rootOf(ask).name === name && !inBoards(ask),
  body: (_body, ask) => unknownArgument(rootOf(ask), ["limit", "page", "ids", ...known]),
  pages: {
    ...{ kind: "number", default: 25, max: 500 },
    at: (ask) => text(rootOf(ask).args["page"]),
    size: (ask) => text(rootOf(ask).args["limit"]),
  },
  record,
  answer: ({ records, ask }: PageOf) => ({ data: { [name]: select(records, rootOf(ask).fields) }, account_id: 1 }),
});

const ofBoard = (
  name: string,
  known: readonly string[],
  rest: Pick<Collection, "pages" | "record" | "since" | "until" | "order"> & {
    readonly value: (page: PageOf) => unknown;
    readonly wrong?: (field: Field) => string | undefined;
    readonly expect?: Collection["expect"];
  },
): Collection => {
  const { value, wrong, ...described } = rest;
  return {
    ...endpoint,
    when: (ask) => within(ask, name) !== undefined,
    body(_body, ask) {
      const field = within(ask, name) as Field;
      return unknownArgument(rootOf(ask), ["ids"]) ?? unknownArgument(field, known) ?? wrong?.(field);
    },
    parent: {
      ...{ of: "boards", key: ({ id }) => String(id) },
      at: (ask) => text([rootOf(ask).args["ids"]].flat()[0]),
    },
    answer: (page: PageOf) => ({ data: { boards: [select({ [name]: value(page) }, rootOf(page.ask).fields)] } }),
    ...described,
  } as Collection;
};

export default {
  documentation: [
    "https://developer.monday.com/api-reference/reference/boards",
    "https://developer.monday.com/api-reference/reference/items-page",
    "https://developer.monday.com/api-reference/reference/activity-logs",
    "https://developer.monday.com/api-reference/reference/updates",
    "https://developer.monday.com/api-reference/reference/users",
    "https://developer.monday.com/api-reference/reference/workspaces",
    "https://developer.monday.com/api-reference/docs/rate-limits",
  ],
  config: { access_token: "secret-monday", start_date: "2026-01-01T00:00:00Z" },
  auth: header("authorization", "secret-monday"),
  unauthorized: { status: 401, body: { errors: ["Not Authenticated"] } },
  limited: retryAfter({
    errors: [{ message: "Complexity budget exhausted", extensions: { code: "COMPLEXITY_BUDGET_EXHAUSTED" } }],
  }),
  collections: {
    workspaces: rooted("workspaces", ["state", "kind", "order_by"], ({ n }) => ({
      ...{ id: String(n), name: `Workspace ${n}`, kind: "open", description: null, state: "active" },
      created_at: "2025-01-01T00:00:00Z",
    })),
    users: rooted("users", ["kind", "emails", "name", "newest_first", "non_active"], ({ n }) => ({
      ...{ id: String(n), name: `User ${n}`, email: `user${n}@example.com`, title: null, phone: "", location: null },
      ...{ enabled: true, is_admin: false, is_guest: false, is_pending: false, is_view_only: false },
      ...{ created_at: "2025-01-01T00:00:00Z", last_activity: "2026-05-01T00:00:00Z", teams: [{ id: "1", name: "A" }] },
      url: `https://acme.monday.com/users/${n}`,
    })),
    boards: rooted("boards", ["state", "board_kind", "order_by", "workspace_ids"], ({ n, time }) => ({
      ...{ id: String(n), name: `Board ${n}`, description: "", state: "active", type: "board", board_kind: "public" },
      ...{ board_folder_id: null, workspace_id: "7", permissions: "everyone", items_count: 3, updated_at: iso(time) },
      url: `https://acme.monday.com/boards/${n}`,
      columns: [{ id: "status", title: "Status", type: "status", archived: false }],
      groups: [{ id: "topics", title: "Topics", color: "#037f4c", position: "65536", archived: false, deleted: false }],
      owners: [{ id: "1", name: "User 1" }],
    })),
    items: ofBoard("items_page", ["limit", "cursor", "query_params"], {
      order: "newest first",
      pages: {
        ...{ kind: "cursor", default: 25, max: 500 },
        at: (ask) => text(within(ask, "items_page")?.args["cursor"]),
        size: (ask) => text(within(ask, "items_page")?.args["limit"]),
      },
      wrong({ args }) {
        if (args["cursor"] !== undefined && args["query_params"] !== undefined)
          return "query_params and cursor may not come together";
        const order = (args["query_params"] as { order_by?: { column_id?: string; direction?: string }[] } | undefined)
          ?.order_by?.[0];
        const newestFirst = order?.column_id === "__last_updated__" && order.direction === "desc";
        return args["cursor"] === undefined && !newestFirst ? "this mock knows the newest first only" : undefined;
      },
      record: ({ n, time, parent }) => ({
        ...{ id: String(n), name: `Item ${n}`, state: "active", url: `https://acme.monday.com/boards/1/pulses/${n}` },
        ...{ created_at: "2026-01-02T00:00:00Z", updated_at: iso(time), creator_id: "1", board: { id: parent["id"] } },
        ...{ group: { id: "topics", title: "Topics" }, parent_item: null },
        column_values: [{ id: "status", type: "status", text: "Done", value: '{"index":1}' }],
      }),
      value: ({ records, next }) => ({ cursor: next, items: records }),
    }),
    updates: rooted("updates", ["from_date", "to_date"], ({ n, time }) => ({
      ...{ id: String(n), item_id: "5", creator_id: "1", body: "<p>Hello</p>", text_body: "Hello" },
      ...{ created_at: "2026-01-02T00:00:00Z", updated_at: iso(time), edited_at: iso(time) },
      replies: [{ id: `${n}1`, creator_id: "2", text_body: "Yes", created_at: iso(time) }],
    })),
    activity_logs: ofBoard("activity_logs", ["limit", "page", "from", "to", "user_ids", "column_ids", "group_ids"], {
      order: "newest first",
      pages: {
        ...{ kind: "number", default: 25, max: 10_000 },
        at: (ask) => text(within(ask, "activity_logs")?.args["page"]),
        size: (ask) => text(within(ask, "activity_logs")?.args["limit"]),
      },
      since: { at: (ask) => text(within(ask, "activity_logs")?.args["from"]), read: isoTime },
      until: { at: (ask) => text(within(ask, "activity_logs")?.args["to"]), read: isoTime },
      record: ({ n, time }) => ({
        ...{ id: `log-${n}`, event: "update_column_value", entity: "pulse", data: '{"pulse_id":1}', user_id: "1" },
        ...{ account_id: "1", created_at: `${time.getTime()}0000` },
      }),
      value: ({ records }) => records,
      expect: (record) => ({
        ...record,
        created_time: iso(new Date(Number(String(record["created_at"]).slice(0, 13)))),
      }),
    }),
  },
} satisfies Vendor;
