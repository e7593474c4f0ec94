// GET /v1/traces/:request_id: the spans of one request.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { Trace } from "#contract/wire/traces.ts";
import { operates } from "#daemon/identity/credentials/grant.ts";
import type { TraceStore } from "#daemon/telemetry/trace-store.ts";

export type TraceServices = Pick<TraceStore, "find">;

export function traceRoutes(app: FastifyInstance, { find }: TraceServices): void {
  const config = { scope: "traces:read", errors: "problem", surface: "core" } as const;
  const schema = { operationId: "getTrace", summary: "The spans of one request", response: { 200: Trace } };
  app.get<{ Params: { request_id: string } }>(
    "/v1/traces/:request_id",
    { config, schema: schema as object },
    async (request) => {
      const id = request.params.request_id;
      const { principal } = request;
      const spans = await find(id, operates(principal) ? undefined : principal.environment);
      const [first] = spans;
      if (!first)
        throw new MagicError("not_found", `There is no trace of the request ${JSON.stringify(id.slice(0, 128))}.`);
      const started = Math.min(...spans.map(({ started_at }) => Date.parse(started_at)));
      const ended = Math.max(...spans.map((span) => Date.parse(span.started_at) + span.duration_ms));
      return {
        object: "trace",
        request_id: id,
        trace_id: first.trace_id,
        started_at: new Date(started).toISOString(),
        duration_ms: Math.round((ended - started) * 1000) / 1000,
        spans: spans.map(({ request_id: _, trace_id: __, kind: ___, ...span }) => span),
      };
    },
  );
}
