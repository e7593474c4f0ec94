// How bodies are read: JSON alone. An empty body counts as none, since clients send the media type regardless.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { withExactIntegers } from "./exact-integers.ts";
import { parseBody } from "./read-body.ts";
import { LARGE_BODY, markLargeBody } from "./validation.ts";

/** Bytes that a route reads which does not say otherwise: the certificates of a connection and the columns of a sync fit in. */
export const BODY_LIMIT = 1024 * 1024;
/** For completions: images and documents stand in them. */
export const COMPLETION_LIMIT = 64 * 1024 * 1024;

const MAX_DEPTH = 500;

export function useBodies(app: FastifyInstance): void {
  const parse = strictParse(app);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    ["application/json", "application/merge-patch+json"],
    { parseAs: "buffer" },
    (request, raw, done) => {
      if (raw.length === 0) return done(null, undefined);
      let body: unknown;
      try {
        body = parseBody(raw, MAX_DEPTH, parse);
      } catch (error) {
        return done(error as Error);
      }
      if (request.route.surface === "core" && /\\u(d[89a-f]|0000)/i.test(raw.toString("latin1"))) {
        const unfit = unfitText(body);
        if (unfit !== undefined) return done(new MagicError("invalid_request", unfit));
      }
      const exact = request.route.exactIntegersIn;
      if (exact) body = withExactIntegers(body, raw.toString("utf8"), exact);
      if (raw.length > LARGE_BODY) markLargeBody(body);
      done(null, body);
    },
  );
}

// A half would be kept as another text than the one that is acknowledged, and Postgres keeps no NUL: what one database refuses, all do.
// Written again, whole pairs stand as they are; halves and NUL are escaped.
function unfitText(body: unknown): string | undefined {
  const found = /(?<!\\)(?:\\\\)*\\u(d[89a-f]|0000)/.exec(JSON.stringify(body));
  if (found === null) return undefined;
  return found[1] === "0000"
    ? "The body holds a NUL character, which no text here may have."
    : "The body holds half of a surrogate pair, which is no character.";
}

// "error": a body with __proto__ or constructor.prototype keys is refused, not read.
function strictParse(app: FastifyInstance): (text: string) => unknown {
  const parser = app.getDefaultJsonParser("error", "error");
  return (text) => {
    let outcome: { error: Error | null; body: unknown } | undefined;
    parser(undefined as never, text, (error, body) => {
      outcome = { error, body };
    });
    if (!outcome) throw new Error("the parser did not answer");
    if (!outcome.error) return outcome.body;
    // What is no JSON fails here too.
    JSON.parse(text.replace(/^\ufeff/, ""));
    throw new MagicError("invalid_request", "The body has a key __proto__ or constructor.prototype: no object may.");
  };
}

/** A limit for people: `256 kB`, `1 MB`. */
export function shownLimit(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes / 1024} kB` : `${bytes / 1024 / 1024} MB`;
}
