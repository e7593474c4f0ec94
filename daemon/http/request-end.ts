// The end of every request, exactly once, whatever became of it. Fastify's onResponse hook is not called when the caller leaves
// before the answer is out; the response's `close` event is.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";

/** `status` is what was answered, or 499 when the caller left before; `endedAt` is of the same clock as the request's `startedAt`. */
export type RequestEndListener = (
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  endedAt: number,
) => void;

declare module "fastify" {
  interface FastifyRequest {
    /** Told when the caller leaves before the answer is out. */
    left: (() => void) | null;
    /** Monotonic milliseconds. Fastify's own clock runs only where it logs or has onResponse hooks. */
    startedAt: number;
  }
  interface FastifyInstance {
    /** Calls the listener at the end of every request, also of one that a hook refused. */
    onRequestEnd(listener: RequestEndListener): void;
  }
}

/** 499, nginx's word for a request whose caller left. */
export const CLIENT_CLOSED = 499;

/** Must come before all other hooks: a request that one of them refuses ends as well. */
export function useRequestEnd(app: FastifyInstance, logger: Logger): void {
  const listeners: RequestEndListener[] = [];
  app.decorate("onRequestEnd", (listener: RequestEndListener) => void listeners.push(listener));
  app.decorateRequest("route", null as never);
  app.decorateRequest("left", null);
  app.decorateRequest("startedAt", 0);
  app.addHook("onRequest", (request, reply, done) => {
    request.startedAt = performance.now();
    request.route = request.routeOptions.config;
    // `close` follows `finish`, and comes without it when the caller left.
    reply.raw.on("close", () => {
      const status = reply.raw.writableFinished ? reply.raw.statusCode : CLIENT_CLOSED;
      if (status === CLIENT_CLOSED) request.left?.();
      const endedAt = performance.now();
      for (const listener of listeners) {
        try {
          listener(request, reply, status, endedAt);
        } catch (error) {
          logger.error("request.end_failed", { request_id: request.id, ...errorFields(error) });
        }
      }
    });
    done();
  });
}
