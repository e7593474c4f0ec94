// For POSTs whose body may be left out.
import type { FastifyReply, FastifyRequest } from "fastify";

/** A `preValidation` hook: no body counts as an empty object. */
export function emptyBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  request.body ??= {};
  done();
}
