// How bodies are read: JSON alone, at most 64 MB. An empty body counts as none, since clients send the media type regardless.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { LARGE_BODY, markLargeBody } from "./validation.ts";

export const BODY_LIMIT = 64 * 1024 * 1024;

export function useBodies(app: FastifyInstance): void {
  // "error": a body with __proto__ or constructor.prototype keys is refused, not read.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    ["application/json", "application/merge-patch+json"],
    { parseAs: "string", bodyLimit: BODY_LIMIT },
    (request, text, done) => {
      if (text.length === 0) return done(null, undefined);
      parse(request, text, (error, body) => {
        if (error) return done(new MagicError("invalid_request", "The body is not valid JSON.", { cause: error }));
        if (text.length > LARGE_BODY) markLargeBody(body);
        done(null, body);
      });
    },
  );
}
