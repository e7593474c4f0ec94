// /v1/runs.
import type { FastifyInstance } from "fastify";
import { listOf, listQuery } from "#contract/wire/list.ts";
import { IdParams } from "#contract/wire/params.ts";
import { RejectedRecord, Run } from "#contract/wire/syncs.ts";
import type { Syncs } from "#daemon/integrations/syncs/syncs.ts";
import type { ListOptions } from "#daemon/storage/list.ts";
import { emptyBody } from "../empty-body.ts";

/** A request is held no longer: one who waits longer asks again. */
const MOST_WAIT_MS = 5000;

export function runRoutes(app: FastifyInstance, { syncs }: { syncs: Syncs }): void {
  const read = { scope: "syncs:read", surface: "core" } as const;
  const tags = ["runs"];

  app.get<{ Params: IdParams }>(
    "/v1/runs/:id",
    {
      config: read,
      schema: {
        ...{ tags, operationId: "getRun", summary: "Get a run" },
        description:
          "With `Prefer: wait=5` (RFC 7240) the answer comes when the run ends, or after so many seconds, at most 5.",
        params: IdParams,
        response: { 200: Run },
      },
    },
    (request) => syncs.run(request.principal, request.params.id, waitOf(request.headers["prefer"])),
  );

  app.get<{ Params: IdParams; Querystring: ListOptions }>(
    "/v1/runs/:id/rejects",
    {
      config: read,
      schema: {
        ...{ tags, operationId: "listRejects", summary: "List the records that a run put into quarantine" },
        params: IdParams,
        querystring: listQuery({}),
        response: { 200: listOf(RejectedRecord) },
      },
    },
    (request) => syncs.rejects(request.principal, request.params.id, request.query),
  );

  app.post<{ Params: IdParams }>(
    "/v1/runs/:id/cancel",
    {
      config: { scope: "syncs:trigger", surface: "core" },
      preValidation: emptyBody,
      schema: {
        ...{ tags, operationId: "cancelRun", summary: "Cancel a run" },
        params: IdParams,
        response: { 200: Run },
      },
    },
    (request) => syncs.cancel(request.principal, request.params.id),
  );
}

// RFC 7240, section 4.3: whole seconds. What is not understood is ignored.
function waitOf(prefer: string | string[] | undefined): number {
  const [, seconds] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(String(prefer ?? "")) ?? [];
  return Math.min(MOST_WAIT_MS, Number(seconds ?? 0) * 1000);
}
