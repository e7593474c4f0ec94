// /v1/audit: the log of every call, and the proof that it is whole.
import type { FastifyInstance } from "fastify";
import { AuditEntry, AuditQuery, AuditVerification } from "#contract/wire/audit.ts";
import { listOf } from "#contract/wire/list.ts";
import type { AuditTrail } from "#daemon/identity/audit/trail.ts";
import { operates } from "#daemon/identity/credentials/grant.ts";
import { answerPage, pageOf } from "#daemon/storage/list.ts";
import type { AuditEntryTable } from "#daemon/storage/tables/audit.ts";
import { inUtc } from "#shared/clock.ts";

export function auditRoutes(app: FastifyInstance, { audit }: { audit: AuditTrail }): void {
  const config = { scope: "audit:read", surface: "core" } as const;
  const tags = ["audit"];

  app.get<{ Querystring: AuditQuery & { limit: number } }>(
    "/v1/audit",
    {
      config,
      schema: {
        tags,
        operationId: "listAuditEntries",
        summary: "List audit entries",
        description: "Every call, refused ones too, within a second. A key sees its environment's; an operator both.",
        querystring: AuditQuery,
        response: { 200: listOf(AuditEntry) },
      },
    },
    async (request) => {
      const { since, until, ...filters } = request.query;
      const { principal } = request;
      const page = pageOf("aud", filters);
      const found = await audit.list({
        ...page,
        request_id: filters.request_id,
        outcome: filters.outcome as string | undefined,
        identity: filters.identity,
        action: filters.action,
        // Stored in one form, compared as text: bring any RFC 3339 into it.
        since: since && inUtc(since),
        until: until && inUtc(until),
        environment: operates(principal) ? undefined : principal.environment,
      });
      return answerPage(found, page, entryDocument);
    },
  );

  app.get(
    "/v1/audit/verification",
    {
      config: { ...config, action: "audit.verify" },
      schema: {
        tags,
        operationId: "verifyAudit",
        summary: "Verify the audit log",
        description: "Walks the whole chain: edits, deletions, reorderings and cut-off ends are named.",
        response: { 200: AuditVerification },
      },
    },
    async () => audit.verify(),
  );
}

function entryDocument(row: AuditEntryTable) {
  const { id, timestamp, identity_type, identity_id, action, resource, outcome, status } = row;
  const { request_id, environment, sequence, mac } = row;
  const identity = { type: identity_type, id: identity_id };
  return {
    id,
    object: "audit_entry",
    timestamp,
    identity,
    action,
    resource,
    outcome,
    status,
    request_id,
    environment,
    sequence,
    mac,
  };
}
