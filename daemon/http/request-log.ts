// One log line, one metric and one span for every request, whatever became of it. Query strings are left out: they may hold secrets.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { headers as names } from "#contract/protocol.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import { type Series, seriesOf } from "#daemon/telemetry/series.ts";
import type { Tracer } from "#daemon/telemetry/trace.ts";
import { anonymous } from "./route-config.ts";

export interface RequestLogOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
}

export function useRequestLog(app: FastifyInstance, { logger, metrics, tracer }: RequestLogOptions): void {
  const labels = ["method", "route", "status"] as const;
  const seconds = metrics.histogram("magic_http_request_duration_seconds", "Time to the end of the answer", labels);
  // Routes, methods and statuses are few.
  const known = new Map<string, Series>();
  const series = (method: string, route: string, status: number) => {
    const key = `${status}${method}${route}`;
    let found = known.get(key);
    if (!found) {
      found = seriesOf(seconds, { method, route, status: String(status) });
      known.set(key, found);
    }
    return found;
  };
  let open = 0;
  metrics.gauge("magic_http_requests_open", "Requests that are being answered", [], (gauge) => gauge.set(open));
  app.decorateRequest("span", undefined);
  app.decorateRequest("principal", null as never);
  app.decorateRequest("requestId", {
    getter(this: FastifyRequest) {
      return this.id;
    },
  });
  app.addHook("onRequest", (request, reply, done) => {
    request.principal = anonymous;
    reply.header("x-request-id", request.id);
    reply.header("x-content-type-options", "nosniff");
    open++;
    if (!request.route.quiet && !request.route.ownSpan)
      request.span = tracer.start(`${request.method} ${request.route.url ?? "(none)"}`, {
        requestId: request.id,
        traceparent: request.headers["traceparent"] as string | undefined,
      });
    done();
  });
  app.onRequestEnd((request, reply, status, endedAt) => {
    open--;
    const route = request.route.url ?? "(none)";
    const elapsed = endedAt - request.startedAt;
    series(request.method, route, status).observe(elapsed / 1000);
    request.span?.end(status >= 500 ? "error" : "ok", { status, environment: request.principal.environment });
    // A stored answer comes without what would have written the line.
    const told = request.route.ownLine && reply.getHeader(names.idempotentReplayed) === undefined;
    if ((request.route.quiet || told) && status < 400) return;
    logger.info("http.request", {
      request_id: request.id,
      method: request.method,
      path: request.url.split("?", 1)[0]?.slice(0, 500),
      route,
      status,
      duration_ms: Math.round(elapsed * 100) / 100,
      identity: request.principal.id ?? request.principal.type,
      environment: request.principal.environment,
      ...(status === 499 && { code: "client_closed" }),
    });
  });
}
