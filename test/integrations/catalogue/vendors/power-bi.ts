// Power BI's REST API: `$top` and `$skip`; what administrators see of reports and datasets.
import { oauth } from "../auth.ts";
import { type Collection, iso, retryAfter, type Vendor } from "../vendor.ts";

const listed = (path: string, record: Collection["record"]): Collection => ({
  url: `https://api.powerbi.com/v1.0/myorg/${path}`,
  optional: ["$filter"],
  pages: { kind: "offset", at: "$skip", size: "$top", default: 5000 },
  record,
  answer: ({ records }) => ({ "@odata.context": "http://api.powerbi.com/v1.0/myorg/$metadata", value: records }),
});

const docs = "https://learn.microsoft.com/en-us/rest/api/power-bi";

export default {
  documentation: [
    ...[`${docs}/groups/get-groups`, `${docs}/admin/reports-get-reports-as-admin`],
    ...[
      `${docs}/admin/datasets-get-datasets-as-admin`,
      "https://learn.microsoft.com/en-us/power-bi/guidance/api-limit",
    ],
  ],
  config: { tenant_id: "tenant-1", client_id: "app-1", client_secret: "secret-app" },
  auth: oauth({
    url: "https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token",
    form: {
      ...{ grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
      scope: "https://analysis.windows.net/powerbi/api/.default",
    },
  }),
  unauthorized: { status: 403, body: { error: { code: "TokenExpired", message: "Access token has expired" } } },
  limited: retryAfter({ error: { code: "RateLimit", message: "Exceeded the amount of requests allowed" } }),
  collections: {
    workspaces: listed("groups", ({ n }) => ({
      ...{ id: `w-${n}`, name: `Workspace ${n}`, type: "Workspace", isReadOnly: false, isOnDedicatedCapacity: true },
    })),
    reports: listed("admin/reports", ({ n, time }) => ({
      ...{ id: `r-${n}`, name: `Report ${n}`, datasetId: "d-1", workspaceId: "w-1", webUrl: "https://app.powerbi.com" },
      ...{ createdDateTime: "2025-01-01T00:00:00.12Z", modifiedDateTime: iso(time) },
    })),
    datasets: listed("admin/datasets", ({ n, time }) => ({
      ...{ id: `d-${n}`, name: `Sales ${n}`, configuredBy: "ann@example.com", isRefreshable: true, workspaceId: "w-1" },
      createdDate: iso(time),
    })),
  },
} satisfies Vendor;
