// Idempotency-Key on every POST of the core API and of controllers (draft-ietf-httpapi-idempotency-key-header): the first request with a key is
// reserved before its handler runs, its answer is kept before it leaves, and later ones get that answer.
import type {
  DoneFuncWithErrOrRes,
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from "fastify";
import { isMagicError } from "#contract/errors.ts";
import { headers as names } from "#contract/protocol.ts";
import type { Idempotency } from "#daemon/identity/idempotency/idempotency.ts";
import { fingerprintOf, idempotencyKeyOf } from "#daemon/identity/idempotency/state.ts";
import { noteAnswer } from "./audit.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The reservation of this request's key, while it is being answered. */
    reservation: string | null;
    /** True where storage was lost at a moment that leaves open whether the request has taken effect. */
    uncertain: boolean;
  }
}

/** Answers after which the same request may do better: their key is freed. */
const transient = new Set([429, 502, 503, 504, 507]);
const keptHeaders = ["content-type", "location", "cache-control"] as const;

/** What is made or done by the core API and by controllers may be asked for twice. */
export function takesIdempotencyKey(
  method: string | readonly string[],
  { surface, scope }: Partial<FastifyContextConfig>,
): boolean {
  return method === "POST" && Boolean(scope) && (surface === "core" || surface === "controllers");
}

export function useIdempotency(app: FastifyInstance, idempotency: Idempotency): void {
  app.decorateRequest("reservation", null);
  app.decorateRequest("uncertain", false);
  app.addHook("onRoute", (route) => {
    if (!takesIdempotencyKey(route.method, route.config ?? {})) return;
    // One that cannot be a key is refused before the body is read.
    route.onRequest = [...[route.onRequest ?? []].flat(), checkKey];
    // After validation: a request that never reaches its handler uses up no key.
    route.preHandler = [...[route.preHandler ?? []].flat(), begin];
    route.onSend = [end, ...[route.onSend ?? []].flat()];
    route.onError = [...[route.onError ?? []].flat(), noteUncertain];
  });

  function noteUncertain(request: FastifyRequest, _reply: FastifyReply, error: Error, done: () => void): void {
    request.uncertain = isMagicError(error) && error.extra["outcome"] === "unknown";
    done();
  }

  function checkKey(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
    idempotencyKeyOf(request.headers[names.idempotencyKey]);
    done();
  }

  // Most requests have no key, and those cost no promise.
  function begin(request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void {
    const key = idempotencyKeyOf(request.headers[names.idempotencyKey]);
    if (key === undefined) done();
    else
      reserve(request, reply, key).then((answered) => {
        if (!answered) done();
      }, done);
  }

  /** True where the answer of an earlier request was sent. */
  async function reserve(request: FastifyRequest, reply: FastifyReply, key: string): Promise<boolean> {
    const { type, id, environment } = request.principal;
    const fingerprint = fingerprintOf(request.method, request.url, request.body);
    const found = await idempotency.begin(`${type} ${id ?? "-"} ${environment}`, key, fingerprint);
    if ("id" in found) {
      request.reservation = found.id;
      return false;
    }
    const { status, headers, body } = found.replay;
    reply.code(status).headers(headers).header(names.idempotentReplayed, "true");
    if (request.route.surface === "core" && body !== "") noteAnswer(request, status, JSON.parse(body));
    // A buffer passes the serializer by: the bytes are those of the first answer.
    reply.send(Buffer.from(body));
    return true;
  }

  function end(request: FastifyRequest, reply: FastifyReply, payload: unknown, done: DoneFuncWithErrOrRes): void {
    const id = request.reservation;
    request.reservation = null;
    if (id === null) done(null, payload);
    else keep(id, reply, payload, request.uncertain).then(() => done(null, payload), done);
  }

  async function keep(id: string, reply: FastifyReply, payload: unknown, uncertain: boolean): Promise<void> {
    if (uncertain) return idempotency.abandon(id);
    // A stream is not kept: whoever sends its key again gets a new one.
    const streams =
      typeof payload !== "string" && !Buffer.isBuffer(payload) && payload !== null && payload !== undefined;
    if (streams || transient.has(reply.statusCode)) return idempotency.release(id);
    const headers: Record<string, string> = {};
    for (const name of keptHeaders) {
      const value = reply.getHeader(name);
      if (value !== undefined) headers[name] = String(value);
    }
    const body = typeof payload === "string" ? payload : Buffer.isBuffer(payload) ? payload.toString("utf8") : "";
    await idempotency.complete(id, { status: reply.statusCode, headers, body });
  }
}
