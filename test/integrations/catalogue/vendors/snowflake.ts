// Snowflake's REST API: whole lists, told apart by the kind of token.
import { all, bearer, header } from "../auth.ts";
import { type Collection, iso, retryAfter, type Vendor } from "../vendor.ts";

const listed = (path: string, record: Collection["record"]): Collection => ({
  url: `https://acme-main.snowflakecomputing.com/api/v2/${path}`,
  optional: ["like", "startsWith", "showLimit", "fromName", "history"],
  pages: { kind: "none" },
  record,
  answer: ({ records }) => records,
});

const docs = "https://docs.snowflake.com/en/developer-guide/snowflake-rest-api";

export default {
  documentation: [
    ...[
      `${docs}/authentication`,
      `${docs}/reference/database`,
      `${docs}/reference/warehouse`,
      `${docs}/reference/user`,
    ],
  ],
  config: { account: "acme-main", token: "secret-token" },
  auth: all(bearer("secret-token"), header("x-snowflake-authorization-token-type", "PROGRAMMATIC_ACCESS_TOKEN")),
  unauthorized: { status: 401, body: { code: "390101", message: "Authorization header not found or invalid." } },
  limited: retryAfter({ code: "390429", message: "Too many requests" }),
  collections: {
    databases: listed("databases", ({ n, time }) => ({
      ...{
        name: `DB_${n}`,
        kind: "PERMANENT",
        owner: "SYSADMIN",
        comment: "",
        retention_time: 1,
        created_on: iso(time),
      },
    })),
    warehouses: listed("warehouses", ({ n, time }) => ({
      ...{ name: `WH_${n}`, warehouse_size: "X-Small", state: "STARTED", auto_suspend: 600, created_on: iso(time) },
    })),
    users: listed("users", ({ n, time }) => ({
      ...{ name: `U_${n}`, login_name: `U_${n}`, email: "u@example.com", disabled: false, created_on: iso(time) },
    })),
  },
} satisfies Vendor;
