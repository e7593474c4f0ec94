// One audit entry for every call, of every surface, refused ones too. A change that succeeded is stored before its answer leaves,
// also where nobody is there any more to get it; everything else follows within 200 ms.
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import type { Outcome } from "#contract/audit.ts";
import type { Principal } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import type { AuditedCall, AuditTrail } from "#daemon/identity/audit/trail.ts";
import { bearerOf } from "#daemon/identity/authenticator.ts";
import { claimsLive } from "#daemon/identity/jwt/access-token.ts";
import { redactText } from "#shared/redact.ts";
import { CLIENT_CLOSED } from "./request-end.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The action's name in the audit log; by default made of method and path. */
    action?: string;
    /** By default what the method says; true for a GET that changes something all the same. */
    changes?: boolean;
  }
  interface FastifyRequest {
    /** What the audit log should say besides what the request itself shows; null until something does. */
    audit: AuditNote | null;
    /** What became of it is known. */
    settled: boolean;
  }
}

export interface AuditNote {
  resource?: string;
  identity?: Pick<Principal, "type" | "id">;
  /** Of a call that has no credential of ours. */
  environment?: Environment;
  /** Of an answer whose status does not say it. */
  outcome?: Outcome;
  /** Its entry is stored already. */
  recorded?: boolean;
}

/** @returns to be called at the daemon's end: what becomes of changes that their callers left, and that are not made yet, nobody will know. */
export function useAudit(app: FastifyInstance, trail: Pick<AuditTrail, "record" | "recordDurably">): () => void {
  app.decorateRequest("audit", null);
  app.decorateRequest("settled", false);
  app.addHook("onRoute", (route) => {
    route.config = { action: actionOf(route.method, route.url), changes: changes(route), ...route.config };
    if (route.config.changes) {
      route.preSerialization = [noteResource, ...[route.preSerialization ?? []].flat()];
      route.onSend = [...[route.onSend ?? []].flat(), recordChange];
    }
  });
  /** Changes whose caller left while they were made. */
  const left = new Set<FastifyRequest>();
  app.onRequestEnd((request, _reply, status) => {
    if (!request.settled && request.route.changes) left.add(request);
    else if (!request.audit?.recorded) trail.record(callOf(request, status));
  });

  // Awaited: a change is not acknowledged before its entry is stored. Should that fail, the entry stays queued and the
  // change, which has happened, is acknowledged all the same.
  async function recordChange(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
    if (request.settled) return payload;
    request.settled = true;
    left.delete(request);
    if (reply.statusCode >= 400) {
      if (reply.raw.closed) trail.record(callOf(request, CLIENT_CLOSED));
      return payload;
    }
    request.audit = { ...request.audit, recorded: true };
    await trail.recordDurably(callOf(request, reply.statusCode)).catch(() => undefined);
    return payload;
  }

  return () => {
    for (const request of left) {
      request.settled = true;
      trail.record(callOf(request, CLIENT_CLOSED));
    }
  };
}

async function noteResource(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  noteAnswer(request, reply.statusCode, payload);
  return payload;
}

/** The id of what was made: it is not in the path. */
export function noteAnswer(request: FastifyRequest, status: number, answer: unknown): void {
  const { id } = (answer ?? {}) as { id?: unknown };
  if (status < 400 && typeof id === "string") request.audit = { resource: id, ...request.audit };
}

function changes(route: RouteOptions): boolean {
  const methods = [route.method].flat();
  return route.config?.surface === "core" && methods.some((method) => !["GET", "HEAD", "OPTIONS"].includes(method));
}

function callOf(request: FastifyRequest, status: number): AuditedCall {
  const { principal, audit } = request;
  const anonymous = principal.type === "anonymous";
  return {
    identity: audit?.identity ?? { type: principal.type, id: principal.id },
    environment: anonymous ? (audit?.environment ?? claimedEnvironment(request.headers)) : principal.environment,
    action: request.route.action ?? "unknown",
    resource: audit?.resource ?? (request.is404 ? null : parameterOf(request)),
    status,
    outcome: audit?.outcome,
    requestId: request.id,
  };
}

// Nothing is proven about an unknown credential; what it claims to be decides in which environment its entry is seen.
export function claimedEnvironment(headers: IncomingHttpHeaders): Environment {
  const credential = bearerOf(headers) ?? "";
  return /^(sk|gt)_live_/.test(credential) || (credential.startsWith("ey") && claimsLive(credential))
    ? "live"
    : "sandbox";
}

function parameterOf(request: FastifyRequest): string | null {
  const values = Object.values((request.params as Record<string, string> | null) ?? {});
  if (values[0] === undefined) return null;
  // As any database keeps it: the entry's MAC covers what is read again. A secret where an id should be is kept by nobody.
  return redactText(values[0].slice(0, 200).toWellFormed().replaceAll("\0", "\ufffd"));
}

/** `GET /v1/connections/:id` -> `connections.get`, `POST /v1/syncs/:id/trigger` -> `syncs.trigger`. */
export function actionOf(method: string | string[], url: string): string {
  const parts = url.split("/").filter((part) => part !== "" && part !== "v1");
  const isParameter = (part = "") => /^[:*]/.test(part);
  const words = parts.filter((part) => !isParameter(part));
  const [noun = "root", ...verbs] = words;
  const parameterLast = isParameter(parts.at(-1));
  const [first = "GET"] = [method].flat();
  const change = { POST: "create", PUT: "update", PATCH: "update", DELETE: "delete" }[first];
  // A path that ends in a collection below a resource (`/webhooks/:id/deliveries`) is named by it; its items by the verb too.
  if (verbs.length > 0 && !parameterLast) return [noun, ...verbs].join(".");
  return [noun, ...verbs, change ?? (parameterLast ? "get" : "list")].join(".");
}
