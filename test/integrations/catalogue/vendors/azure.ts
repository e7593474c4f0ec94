// Azure Resource Manager: a token of Entra ID, and pages by a whole `nextLink`.
import { oauth } from "../auth.ts";
import { type Collection, type PageOf, retryAfter, type Vendor } from "../vendor.ts";

const subscription = "https://management.azure.com/subscriptions/sub-1";

const listed = (path: string, version: string, record: Collection["record"]): Collection => ({
  url: `${subscription}/${path}`,
  params: { "api-version": version },
  optional: ["$filter", "$expand", "$top"],
  pages: { kind: "cursor", at: "$skiptoken", default: 100 },
  record,
  answer: ({ records, nextUrl }: PageOf) => ({ value: records, ...(nextUrl === null ? {} : { nextLink: nextUrl }) }),
});

const idOf = (n: number, type: string): string => `/subscriptions/sub-1/resourceGroups/rg/providers/${type}/r${n}`;

export default {
  documentation: [
    "https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow",
    "https://learn.microsoft.com/en-us/rest/api/resources/resources/list",
    "https://learn.microsoft.com/en-us/rest/api/resources/resource-groups/list",
    "https://learn.microsoft.com/en-us/rest/api/compute/virtual-machines/list-all",
    "https://learn.microsoft.com/en-us/azure/azure-resource-manager/management/request-limits-and-throttling",
  ],
  config: { tenant_id: "tenant-1", client_id: "app-1", client_secret: "secret-app", subscription_id: "sub-1" },
  auth: oauth({
    url: "https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token",
    form: {
      ...{ grant_type: "client_credentials", client_id: "app-1", client_secret: "secret-app" },
      scope: "https://management.azure.com/.default",
    },
  }),
  unauthorized: {
    status: 401,
    body: { error: { code: "InvalidAuthenticationToken", message: "The token is invalid." } },
  },
  limited: retryAfter({ error: { code: "OperationNotAllowed", message: "The limit was reached." } }),
  collections: {
    resources: listed("resources", "2021-04-01", ({ n }) => ({
      ...{ id: idOf(n, "Microsoft.Storage/storageAccounts"), name: `r${n}`, type: "Microsoft.Storage/storageAccounts" },
      ...{ location: "westeurope", kind: "StorageV2", tags: { team: "data" }, sku: { name: "Standard_LRS" } },
    })),
    resource_groups: listed("resourcegroups", "2021-04-01", ({ n }) => ({
      ...{ id: `/subscriptions/sub-1/resourceGroups/rg${n}`, name: `rg${n}`, location: "westeurope" },
      properties: { provisioningState: "Succeeded" },
    })),
    virtual_machines: listed("providers/Microsoft.Compute/virtualMachines", "2024-07-01", ({ n }) => ({
      ...{ id: idOf(n, "Microsoft.Compute/virtualMachines"), name: `r${n}`, location: "westeurope" },
      properties: { vmId: `vm-${n}`, hardwareProfile: { vmSize: "Standard_D2s_v3" } },
      tags: {},
    })),
  },
} satisfies Vendor;
