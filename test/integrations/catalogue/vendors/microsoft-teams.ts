// Microsoft Graph: `$top` up to 999, pages by `@odata.nextLink`; a user's department only where it is selected.
import { oauth } from "../auth.ts";
import { type Collection, iso, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const answer = ({ records, nextUrl }: PageOf) => ({
  ...{ "@odata.context": "https://graph.microsoft.com/v1.0/$metadata", value: records },
  ...(nextUrl === null ? {} : { "@odata.nextLink": nextUrl }),
});

const listed = (path: string, record: Collection["record"]): Collection => ({
  url: `https://graph.microsoft.com/v1.0/${path}`,
  optional: ["$select", "$filter"],
  pages: { kind: "cursor", at: "$skiptoken", size: "$top", default: 100, max: 999 },
  record,
  answer,
});

const docs = "https://learn.microsoft.com/en-us/graph";

export default {
  documentation: [
    ...[`${docs}/auth-v2-service`, `${docs}/throttling`, `${docs}/paging`, `${docs}/api/user-list`],
    ...[`${docs}/api/teams-list`, `${docs}/api/group-list`, `${docs}/api/channel-list`],
  ],
  config: { tenant_id: "tenant-1", client_id: "app-1", client_secret: "secret-app" },
  auth: oauth({
    url: "https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token",
    form: {
      ...{ grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
      scope: "https://graph.microsoft.com/.default",
    },
  }),
  unauthorized: { status: 401, body: { error: { code: "InvalidAuthenticationToken", message: "Token is expired." } } },
  limited: retryAfter({ error: { code: "TooManyRequests", message: "Please retry again later." } }),
  collections: {
    users: {
      ...listed("users", ({ n }) => ({
        ...{ id: `u-${n}`, displayName: `Ann ${n}`, mail: null, userPrincipalName: `ann${n}@example.com` },
        ...{ jobTitle: null, department: "Sales", officeLocation: null },
      })),
      params: { $select: /\bdepartment\b/ },
    },
    teams: listed("teams", ({ n }) => ({
      ...{ id: `t-${n}`, displayName: `Team ${n}`, description: "All of it", visibility: "private" },
    })),
    groups: listed("groups", ({ n, time }) => ({
      ...{ id: `g-${n}`, displayName: `Group ${n}`, mail: `g${n}@example.com`, groupTypes: ["Unified"] },
      createdDateTime: iso(time),
    })),
    channels: {
      url: "https://graph.microsoft.com/v1.0/teams/:team/channels",
      optional: ["$select", "$filter"],
      pages: { kind: "none" },
      parent: { of: "teams", at: { path: "team" }, key: ({ id }) => String(id) },
      record: ({ n, time }) => ({
        ...{ id: `19:${n}@thread.tacv2`, displayName: `Channel ${n}`, description: null, email: "" },
        ...{ membershipType: "standard", webUrl: "https://teams.microsoft.com/l/channel", createdDateTime: iso(time) },
      }),
      answer,
      expect: (record, { id }) => ({ ...record, teamId: id }),
    },
  },
} satisfies Vendor;
