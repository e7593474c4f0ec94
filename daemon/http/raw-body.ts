// Bodies that are kept as they came: the gateway forwards the client's own bytes and takes the fingerprint of an Idempotency-Key over
// them. Refusals are the gateway's (OpenAI's form), not Fastify's JSON parser's.
import type { FastifyInstance } from "fastify";
import { COMPLETION_LIMIT } from "./body.ts";
import { readBody } from "./read-body.ts";

export interface RawBody {
  readonly raw: Buffer;
  readonly body: Record<string, unknown>;
}

/** For their routes: the schemas are for readers, the gateway judges the bodies, and what it leaves to the vendor the vendor. */
export const judgedLater = { validatorCompiler: () => () => true } as const;

/** For the routes of this (encapsulated) instance alone. */
export function useRawBodies(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    route.bodyLimit ??= COMPLETION_LIMIT;
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>("application/json", { parseAs: "buffer" }, (_request, raw, done) => {
    try {
      done(null, { raw, body: readBody(raw) } satisfies RawBody);
    } catch (error) {
      done(error as Error);
    }
  });
}
