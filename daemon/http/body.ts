// How bodies are read: JSON alone, at most 64 MB. An empty body counts as none, since clients send the media type regardless.
import { isUtf8 } from "node:buffer";
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { LARGE_BODY, markLargeBody } from "./validation.ts";

export const BODY_LIMIT = 64 * 1024 * 1024;

/** Levels. JSON of any depth can be parsed; what walks the value afterwards may be recursive. */
const MAX_DEPTH = 500;
/** Objects and arrays in one body: 64 MB of `[]` would become gigabytes of heap. */
const MAX_CONTAINERS = 500_000;

export function useBodies(app: FastifyInstance): void {
  // "error": a body with __proto__ or constructor.prototype keys is refused, not read.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    ["application/json", "application/merge-patch+json"],
    { parseAs: "buffer", bodyLimit: BODY_LIMIT },
    (request, raw, done) => {
      if (raw.length === 0) return done(null, undefined);
      // Decoded as it is, two bodies that differ could become one and the same text.
      if (!isUtf8(raw)) return done(new MagicError("invalid_request", "The body is not valid UTF-8."));
      const text = raw.toString("utf8");
      const harm = harmIn(text);
      if (harm !== undefined) return done(new MagicError("invalid_request", harm));
      parse(request, text, (error, body) => {
        if (error) return done(new MagicError("invalid_request", "The body is not valid JSON.", { cause: error }));
        if (text.length > LARGE_BODY) markLargeBody(body);
        done(null, body);
      });
    },
  );
}

// What parsing a JSON text, or walking its value, would cost too much for; brackets inside strings do not count.
function harmIn(text: string): string | undefined {
  let depth = 0;
  let containers = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 0x5c) at++;
      else if (code === 0x22) quoted = false;
    } else if (code === 0x22) quoted = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) return `The body nests deeper than ${MAX_DEPTH} levels.`;
      if (++containers > MAX_CONTAINERS) return `The body has more than ${MAX_CONTAINERS} objects and arrays.`;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return undefined;
}
