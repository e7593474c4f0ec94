// How bodies are read: JSON alone, at most 64 MB. An empty body counts as none, since clients send the media type regardless.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { LARGE_BODY, markLargeBody } from "./validation.ts";

export const BODY_LIMIT = 64 * 1024 * 1024;

/** Levels. JSON of any depth can be parsed; what walks the value afterwards may be recursive. */
const MAX_DEPTH = 500;

export function useBodies(app: FastifyInstance): void {
  // "error": a body with __proto__ or constructor.prototype keys is refused, not read.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    ["application/json", "application/merge-patch+json"],
    { parseAs: "string", bodyLimit: BODY_LIMIT },
    (request, text, done) => {
      if (text.length === 0) return done(null, undefined);
      if (nestsDeeper(text, MAX_DEPTH))
        return done(new MagicError("invalid_request", `The body nests deeper than ${MAX_DEPTH} levels.`));
      parse(request, text, (error, body) => {
        if (error) return done(new MagicError("invalid_request", "The body is not valid JSON.", { cause: error }));
        if (text.length > LARGE_BODY) markLargeBody(body);
        done(null, body);
      });
    },
  );
}

/** True when arrays and objects of a JSON text nest deeper than `limit`; brackets inside strings do not count. */
export function nestsDeeper(text: string, limit: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 0x5c) at++;
      else if (code === 0x22) quoted = false;
    } else if (code === 0x22) quoted = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > limit) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}
