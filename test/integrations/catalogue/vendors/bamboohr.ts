// BambooHR: a Basic header of the key, lists that are not paged, and 503 when there are too many requests.
import { basic } from "../auth.ts";
import { type Collection, iso, type Vendor } from "../vendor.ts";

const listed = (path: string, record: Collection["record"], answer: Collection["answer"]): Collection => ({
  url: `https://acme.bamboohr.com/api/v1/${path}`,
  headers: { accept: "application/json" },
  pages: { kind: "none" },
  record,
  answer,
});

export default {
  documentation: [
    "https://documentation.bamboohr.com/docs/getting-started",
    "https://documentation.bamboohr.com/reference/get-employees-directory",
    "https://documentation.bamboohr.com/reference/get-a-list-of-users",
  ],
  config: { subdomain: "acme", api_key: "secret-key" },
  auth: basic("secret-key", "x"),
  unauthorized: { status: 401, headers: { "content-type": "text/html" }, body: "" },
  limited: { status: 503, headers: { "retry-after": "7" }, body: { error: "Service unavailable" }, seconds: 7 },
  collections: {
    employees: listed(
      "employees/directory",
      ({ n }) => ({
        ...{ id: String(n), displayName: `Ann ${n}`, firstName: "Ann", lastName: String(n), jobTitle: "Engineer" },
        ...{ workEmail: `ann${n}@example.com`, department: null, location: "Berlin", division: null, supervisor: null },
      }),
      ({ records }) => ({ fields: [{ id: "displayName", type: "text", name: "Display name" }], employees: records }),
    ),
    time_off_types: listed(
      "meta/time_off/types",
      ({ n }) => ({ id: String(n), name: `Vacation ${n}`, units: "hours", color: null, icon: "palm-trees" }),
      ({ records }) => ({ timeOffTypes: records, defaultHours: [{ name: "Saturday", amount: "0" }] }),
    ),
    users: listed(
      "meta/users",
      ({ n, time }) => ({
        ...{ id: n, employeeId: n + 40, firstName: "Ann", lastName: String(n), email: `ann${n}@example.com` },
        ...{ status: "enabled", lastLogin: iso(time).replace("Z", "+00:00") },
      }),
      ({ records }) => Object.fromEntries(records.map((record) => [String(record["id"]), record])),
    ),
  },
} satisfies Vendor;
