// For routes that the sandbox does not have.
import type { FastifyReply, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";

/** A route's `onRequest` hook: after scopes are looked at, before the body is. */
export function liveOnly(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.principal.environment === "sandbox")
    throw new MagicError("not_available_in_sandbox", "Webhooks and provider OAuth are for live callers.");
  done();
}
