// The one place where an error becomes an answer, and where a server's own fault is logged with its stack.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import { errorFields, type LogFields, type Logger } from "#daemon/telemetry/log.ts";
import { onceClosed } from "./activity.ts";
import { answerFor, classify, forCaller } from "./error-forms.ts";

/** Answers every error of a route or hook in the form of the route's `config.errors`. */
export function useErrorHandler(app: FastifyInstance, logger: Logger): void {
  app.setErrorHandler((error, request, reply) => {
    const survey = request.route?.survey;
    if (!survey || !(error as { validation?: unknown }).validation) return sendError(error, request, reply, logger);
    return surveyed(classify(error), survey(request)).then((known) => sendError(known, request, reply, logger));
  });
}

// Whoever corrects what a schema has found should not meet the rest one by one.
async function surveyed(found: MagicError, survey: Promise<readonly FieldProblem[]>): Promise<MagicError> {
  const named = new Set(found.problems.map(({ pointer }) => pointer));
  const more = (await survey.catch(() => [])).filter(({ pointer }) => !named.has(pointer));
  return more.length === 0 ? found : new MagicError(found.code, undefined, { problems: [...found.problems, ...more] });
}

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, logger: Logger): FastifyReply {
  const { bodyLimit, schema } = request.routeOptions ?? {};
  const known = forCaller(classify(error, bodyLimit, schema?.consumes), request.principal);
  const answer = answerFor(
    known,
    request.route?.errors ?? request.routeOptions?.config?.errors ?? "problem",
    request.id,
  );
  if (answer.status >= 500 && known.code !== "draining")
    logger.error("request.failed", { request_id: request.id, code: known.code, ...whatFailed(known) });
  request.span?.set({ error_code: known.code });
  // Fastify would have it closed.
  if (known.code === "payload_too_large") reply.removeHeader("connection");
  if (known.code !== "draining" && !request.raw.complete) closeAfterBody(request.raw, reply.raw);
  return reply
    .code(answer.status)
    .headers(answer.headers)
    .serializer((value: unknown) => JSON.stringify(value))
    .send(answer.body);
}

// What says all in its message needs no stack: it would tell where in the daemon that was written.
function whatFailed(known: MagicError): LogFields {
  if (known.cause === undefined && known.code !== "internal") return { error: { message: known.message } };
  return errorFields(known.cause ?? known);
}

// A caller that is still sending would see a reset and no answer where its connection were closed at once, as Node does for who asks to close.
function closeAfterBody(request: IncomingMessage, answer: ServerResponse): void {
  const hasBody = "content-length" in request.headers || "transfer-encoding" in request.headers;
  if (answer.shouldKeepAlive || !hasBody) return;
  // Without the header Node says neither that it closes nor that it does not.
  answer.removeHeader("connection");
  answer.shouldKeepAlive = true;
  answer.once("finish", () => onceClosed(request, () => request.socket.end()));
}
