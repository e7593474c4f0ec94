// Development sessions and builds, for the command line of this machine: they read folders of it.
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { BuildRequest, DevelopmentRequest } from "#contract/wire/controllers.ts";
import type { OwnedRuntime } from "#daemon/controllers/create-runtime.ts";
import type { DevelopmentSession } from "#daemon/controllers/runtime.ts";

export interface DevelopmentServices {
  readonly controllers: OwnedRuntime;
}

/** An empty line now and then: clients take a stream that is silent for five minutes for one that broke. */
const BEAT_MS = 60_000;

export function developmentRoutes(app: FastifyInstance, { controllers }: DevelopmentServices): void {
  app.addHook("preClose", () => controllers.stopDevelopment("the daemon stops"));
  const local = { scope: "controllers:write", surface: "local" } as const;

  app.post<{ Body: { folder: string; only?: string[] } }>(
    "/v1/dev/sessions",
    {
      config: { ...local, quiet: true, produces: ["application/x-ndjson", "application/json"] },
      schema: { operationId: "startDevelopment", body: DevelopmentRequest },
    },
    async (request, reply) => {
      const { folder, only } = request.body;
      const session = await controllers.develop({ folder, ...(only && { only }), signal: departureOf(request) });
      // The session lives as long as somebody listens.
      const beat = setInterval(() => {
        if (reply.raw.headersSent && !reply.raw.writableEnded) reply.raw.write("\n");
      }, BEAT_MS).unref();
      const end = () => {
        clearInterval(beat);
        void session.close("the listener left");
      };
      // Who left before it was open is not told of again.
      if (reply.raw.destroyed) {
        end();
        throw new MagicError("client_closed");
      }
      reply.raw.once("close", end);
      return reply.type("application/x-ndjson").send(Readable.from(lines(session)));
    },
  );

  app.post<{ Params: { id: string } }>(
    "/v1/dev/sessions/:id/reload",
    { config: local, schema: { operationId: "reloadDevelopment" } },
    async ({ params }, reply) => {
      controllers.reload(params.id);
      return reply.code(202).send({ reloading: true });
    },
  );

  app.post<{ Body: { folder: string } }>(
    "/v1/dev/builds",
    { config: local, schema: { operationId: "buildController", body: BuildRequest } },
    async (request) => await controllers.build(request.body.folder, departureOf(request)),
  );
}

/** One with an idempotency key comes back for the answer. */
function departureOf(request: FastifyRequest): AbortSignal {
  const departure = new AbortController();
  if (request.reservation === null) request.left = () => departure.abort(new MagicError("client_closed"));
  return departure.signal;
}

async function* lines(session: DevelopmentSession): AsyncGenerator<string> {
  for await (const event of session.events) yield `${JSON.stringify(event)}\n`;
}
