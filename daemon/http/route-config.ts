// What every route says about itself in `config`, and what the hooks put on the request. A route without a scope entry does
// not start: nobody can forget to say who may call it.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ErrorCode, FieldProblem } from "#contract/errors.ts";
import type { Principal, Scope } from "#contract/identity.ts";
import type { Span } from "#daemon/telemetry/trace.ts";

/** The form of a route's error answers: RFC 9457, OpenAI's, RFC 6749's. */
export type ErrorForm = "problem" | "openai" | "oauth";

/** Which part of the daemon a route belongs to: rate limits, idempotency and audit differ by it. `local` answers the command line only. */
export type Surface = "core" | "gateway" | "controllers" | "local";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The scope a caller needs; null for a public route. */
    scope?: Scope | null;
    errors?: ErrorForm;
    surface?: Surface;
    /** Media types that the route answers with; by default application/json, on the gateway text/event-stream too. */
    produces?: readonly string[];
    /** Errors that it can give besides those that its place brings: for the OpenAPI document. */
    fails?: readonly ErrorCode[];
    /** What else is wrong with a body that its schema refuses: an answer names every problem at once. */
    survey?: (request: FastifyRequest) => Promise<readonly FieldProblem[]>;
    /** Members of the body in which integers beyond 2^53 are read as text, with all their digits. */
    exactIntegersIn?: readonly string[];
    /** No line in the log and no span, and no use that keeps the daemon from ending when it is idle: for what is polled. */
    quiet?: boolean;
    /** What answers it logs each call, or begins its span: a success gets no second line, a call no second span. */
    ownLine?: boolean;
    ownSpan?: boolean;
  }
  interface FastifySchema {
    /** For the OpenAPI document. */
    operationId?: string;
    summary?: string;
  }
  interface FastifyRequest {
    /** The route's `config`. Fastify makes `routeOptions` anew, whole, whenever it is read: hooks read this. */
    route: FastifyContextConfig & { readonly url?: string };
    principal: Principal;
    /** The caller's X-Request-Id where well-formed, else one of ours; the same in every log line, span and answer. */
    requestId: string;
    span: Span | undefined;
  }
}

export const anonymous: Principal = {
  type: "anonymous",
  id: null,
  environment: "sandbox",
  scopes: new Set(),
  tier: "starter",
};

/** Refuses, when the routes are declared, one that does not say who may call it. */
export function requireRouteConfig(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    if (route.config?.scope === undefined)
      throw new Error(`route ${String(route.method)} ${route.url} names no scope in its config`);
  });
}

const json = ["application/json"] as const;
const jsonOrEvents = ["application/json", "text/event-stream"] as const;

/** The media types that a route answers with. */
export function producedBy(config: { errors?: ErrorForm; produces?: readonly string[] }): readonly string[] {
  if (config.produces) return config.produces;
  return config.errors === "openai" ? jsonOrEvents : json;
}
