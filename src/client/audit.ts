// The audit log of a daemon, for commands.
import type { AuditEntry, AuditVerification } from "#contract/wire/audit.ts";
import type { ListPage } from "#contract/wire/list.ts";
import { type ApiClient, requestPage } from "./http.ts";

export interface AuditFilters {
  readonly request_id?: string | undefined;
  readonly outcome?: string | undefined;
  readonly identity?: string | undefined;
  readonly action?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

const PAGE = 100;

/** Up to `limit` entries, newest first, as the page that would hold them all. */
export async function listAudit(
  client: ApiClient,
  filters: AuditFilters,
  limit: number,
): Promise<ListPage<AuditEntry>> {
  const data: AuditEntry[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await auditPage(client, filters, Math.min(PAGE, limit - data.length), cursor);
    data.push(...page.data);
    if (!page.has_more || data.length >= limit) return { ...page, data };
    cursor = page.next_cursor ?? undefined;
  }
}

/** Every entry, newest first, a page at a time. */
export async function* eachAuditEntry(client: ApiClient, filters: AuditFilters): AsyncGenerator<AuditEntry> {
  let cursor: string | undefined;
  for (;;) {
    const page = await auditPage(client, filters, PAGE, cursor);
    yield* page.data;
    if (!page.has_more) return;
    cursor = page.next_cursor ?? undefined;
  }
}

/** Has the daemon go through the whole chain: whether it holds, and what is wrong with it. */
export function verifyAudit(client: ApiClient): Promise<AuditVerification> {
  return client.request("GET", "/v1/audit/verification");
}

function auditPage(
  client: ApiClient,
  filters: AuditFilters,
  limit: number,
  starting_after: string | undefined,
): Promise<ListPage<AuditEntry>> {
  return requestPage(client, "/v1/audit", { query: { ...filters, limit, starting_after } });
}
