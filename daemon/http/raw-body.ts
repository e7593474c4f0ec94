// Bodies that are kept as they came: the gateway forwards the client's own text and takes the fingerprint of an Idempotency-Key over
// them. Refusals are the gateway's (OpenAI's form), not Fastify's JSON parser's.
import type { IncomingMessage } from "node:http";
import { errorCodes, type FastifyInstance } from "fastify";
import { COMPLETION_LIMIT } from "./body.ts";
import { decodeBody, readBody } from "./read-body.ts";

export interface RawBody {
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** For their routes: the schemas are for readers, the gateway judges the bodies, and what it leaves to the vendor the vendor. */
export const judgedLater = { validatorCompiler: () => () => true } as const;

/** For the routes of this (encapsulated) instance alone. */
export function useRawBodies(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    route.bodyLimit = COMPLETION_LIMIT;
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", (_request, payload, done) => {
    readPieces(payload, (error, pieces) => {
      if (error) return done(error);
      try {
        const text = decodeBody(pieces);
        done(null, { text, body: readBody(text) } satisfies RawBody);
      } catch (refusal) {
        done(refusal as Error);
      }
    });
  });
}

// As Fastify reads bodies for its own parsers, but without making one buffer of them: for 64 kB that costs four times as much as to decode them.
function readPieces(payload: IncomingMessage, done: (error: Error | null, pieces: readonly Buffer[]) => void): void {
  const pieces: Buffer[] = [];
  let size = 0;
  const over = (error: Error | null = null): void => {
    payload.off("data", take).off("end", over).off("error", over);
    done(error, pieces);
  };
  const take = (piece: Buffer): void => {
    size += piece.length;
    if (size > COMPLETION_LIMIT) over(tooLarge());
    else pieces.push(piece);
  };
  if (Number(payload.headers["content-length"]) > COMPLETION_LIMIT) done(tooLarge(), pieces);
  else payload.on("data", take).on("end", over).on("error", over);
}

function tooLarge(): Error {
  return new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE();
}
