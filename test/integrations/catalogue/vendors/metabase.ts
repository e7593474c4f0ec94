// Metabase: a key in a header, whole lists but for users. It has no rate limit of its own: the proxy before it may.
import { header } from "../auth.ts";
import { type Collection, type Item, isoMs, retryAfter, type Vendor } from "../vendor.ts";

const times = ({ time }: Item) => ({ created_at: "2025-01-01T00:00:00.123Z", updated_at: isoMs(time) });

const whole = (path: string, record: Collection["record"], wrap = false): Collection => ({
  url: `https://metabase.example.com/api/${path}`,
  optional: ["f"],
  pages: { kind: "none" },
  record,
  answer: ({ records, total }) => (wrap ? { data: records, total } : records),
});

export default {
  documentation: [
    "https://www.metabase.com/docs/latest/people-and-groups/api-keys",
    "https://www.metabase.com/docs/latest/api",
  ],
  config: { instance_url: "https://metabase.example.com", api_key: "secret-key" },
  auth: header("x-api-key", "secret-key"),
  unauthorized: { status: 401, headers: { "content-type": "text/plain" }, body: "Unauthenticated" },
  limited: retryAfter("Too many requests"),
  collections: {
    cards: whole("card", (item) => ({
      ...{ id: item.n, name: `Orders ${item.n}`, description: null, display: "bar", database_id: 1 },
      ...{ collection_id: null, archived: false, ...times(item) },
    })),
    dashboards: whole("dashboard", (item) => ({
      ...{ id: item.n, name: `Board ${item.n}`, description: null, collection_id: 3, archived: false, ...times(item) },
    })),
    databases: whole(
      "database",
      (item) => ({ id: item.n, name: `DB ${item.n}`, engine: "postgres", is_sample: false, ...times(item) }),
      true,
    ),
    users: {
      url: "https://metabase.example.com/api/user",
      optional: ["status", "query", "group_id"],
      pages: { kind: "offset", at: "offset", size: "limit", default: 50, max: 1000 },
      record: ({ n, time }) => ({
        ...{ id: n, email: `ann${n}@example.com`, first_name: "Ann", last_name: String(n), common_name: `Ann ${n}` },
        ...{ is_active: true, is_superuser: false, date_joined: "2025-01-01T00:00:00.1Z", last_login: null },
        updated_at: isoMs(time),
      }),
      answer: ({ records, total, size, offset }) => ({ data: records, total, limit: size, offset }),
    },
  },
} satisfies Vendor;
