// For POSTs whose body may be left out.
import type { FastifyReply, FastifyRequest } from "fastify";

/** A `preValidation` hook: no body counts as an empty object. One that says `null` is a body, of the wrong type. */
export function emptyBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.body === undefined) request.body = {};
  done();
}
