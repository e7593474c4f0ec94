// Notion, version 2025-09-03: searches and queries by POST, cursors in the body there and in the query elsewhere.
import { bearer } from "../auth.ts";
import { type Collection, isoMs, isoTime, type PageOf, type Rec, retryAfter, type Vendor } from "../vendor.ts";

const api = "https://api.notion.com/v1";
const key = ({ id }: Rec): string => String(id);
const headers = { "notion-version": "2025-09-03" };

const listed = ({ records, next }: PageOf) => ({
  ...{ object: "list", results: records, next_cursor: next, has_more: next !== null, type: "page_or_data_source" },
});

const inQuery: Collection["pages"] = { kind: "cursor", at: "start_cursor", size: "page_size", default: 100, max: 100 };
const inBody: Collection["pages"] = {
  ...{ kind: "cursor", at: { body: "start_cursor" }, size: { body: "page_size" }, default: 100, max: 100 },
};

const unknownMember = (body: Rec, known: readonly string[]): string | undefined => {
  const other = Object.keys(body).find((name) => !known.includes(name));
  return other && `body failed validation: body.${other} should be not present`;
};

const person = { object: "user", id: "u-1" };

const object = (kind: string, prefix: string, more: Rec): Collection["record"] =>
  function record({ n, time }) {
    return {
      ...{
        object: kind,
        id: `${prefix}-${n}`,
        created_time: "2026-01-02T03:04:00.000Z",
        last_edited_time: isoMs(time),
      },
      ...{ created_by: person, last_edited_by: person, archived: false, in_trash: false, ...more },
    };
  };

const page: Rec = {
  ...{ icon: null, cover: null, parent: { type: "workspace", workspace: true }, url: "https://www.notion.so/p" },
  ...{ properties: { title: { id: "title", type: "title", title: [] } }, public_url: null },
};

const found = (kind: string, record: Collection["record"]): Collection => ({
  ...{ url: `${api}/search`, method: "POST", headers, pages: inBody, order: "newest first", record, answer: listed },
  when: ({ body }) => (body as { filter?: { value?: string } } | undefined)?.filter?.value === kind,
  body(body) {
    const { filter, sort } = body as { filter?: { property?: string }; sort?: Rec };
    if (filter?.property !== "object") return "body.filter.property should be 'object'";
    // Descending is the default too.
    if (sort && (sort["timestamp"] !== "last_edited_time" || sort["direction"] !== "descending"))
      return "this mock knows the last edited first only";
    return unknownMember(body, ["query", "filter", "sort", "start_cursor", "page_size"]);
  },
});

export default {
  documentation: [
    "https://developers.notion.com/reference/get-users",
    "https://developers.notion.com/reference/post-search",
    "https://developers.notion.com/reference/query-a-data-source",
    "https://developers.notion.com/reference/get-block-children",
    "https://developers.notion.com/reference/request-limits",
  ],
  config: { access_token: "secret-ntn", start_date: "2026-01-01T00:00:00Z" },
  auth: bearer("secret-ntn"),
  unauthorized: {
    status: 401,
    body: { object: "error", status: 401, code: "unauthorized", message: "API token is invalid." },
  },
  limited: retryAfter({ object: "error", status: 429, code: "rate_limited", message: "You have been rate limited." }),
  collections: {
    users: {
      ...{ url: `${api}/users`, headers, pages: inQuery, answer: listed },
      record: ({ n }) => ({
        ...{ object: "user", id: `u-${n}`, type: "person", name: `User ${n}`, avatar_url: null },
        person: { email: `user${n}@example.com` },
      }),
    },
    pages: found("page", object("page", "p", page)),
    data_sources: found(
      "data_source",
      object("data_source", "d", {
        ...{ icon: null, cover: null, title: [{ type: "text", plain_text: "Tasks" }], description: [], properties: {} },
        ...{ parent: { type: "database_id", database_id: "db-1" }, database_parent: { type: "workspace" } },
        ...{ is_inline: false, url: "https://www.notion.so/d", public_url: null },
      }),
    ),
    rows: {
      ...{ url: `${api}/data_sources/:source/query`, method: "POST", headers, pages: inBody, answer: listed },
      parent: { of: "data_sources", at: { path: "source" }, key },
      since: { at: { body: "filter.last_edited_time.on_or_after" }, read: isoTime },
      record: object("page", "r", page),
      body(body) {
        const { filter } = body as { filter?: Rec };
        if (filter && filter["timestamp"] !== "last_edited_time") return "body.filter.timestamp should be defined";
        return unknownMember(body, ["filter", "sorts", "start_cursor", "page_size", "in_trash", "archived"]);
      },
    },
    blocks: {
      ...{ url: `${api}/blocks/:page/children`, headers, pages: inQuery, answer: listed },
      parent: { of: "pages", at: { path: "page" }, key },
      record: object("block", "b", {
        ...{ type: "paragraph", has_children: false, parent: { type: "page_id" }, paragraph: { rich_text: [] } },
      }),
    },
  },
} satisfies Vendor;
