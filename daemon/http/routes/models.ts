// GET /v1/models: OpenAI's list, with what a model costs and holds. `?all=true` lists what this caller may not use too, and why not.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { Gateway, ModelEntry } from "#daemon/gateway/call.ts";

export function modelRoutes(app: FastifyInstance, { gateway }: { readonly gateway: Gateway }): void {
  const config = {
    scope: "gateway:use",
    errors: "openai",
    surface: "gateway",
    produces: ["application/json"],
  } as const;
  const schema = { operationId: "listModels", summary: "List the models" };

  app.get<{ Querystring: { all?: string } }>("/v1/models", { config, schema: schema as object }, async (request) => {
    const entries = await gateway.models(request.principal);
    const shown = request.query.all === "true" ? entries : entries.filter((entry) => entry.allowed);
    return { object: "list", data: shown.map(wireModel) };
  });

  // A model's id has a slash in it, and may have colons and more slashes.
  const one = { operationId: "retrieveModel", summary: "One model" };
  app.get<{ Params: { "*": string } }>("/v1/models/*", { config, schema: one as object }, async (request) => {
    const id = request.params["*"];
    const entry = await gateway.model(request.principal, id);
    if (!entry?.allowed) throw new MagicError("model_not_found", `There is no model '${id.slice(0, 256)}'.`);
    return wireModel(entry);
  });
}

function wireModel(entry: ModelEntry) {
  const { id, provider, ...rest } = entry;
  // OpenAI's form needs a time of making; ours are made by configuration.
  return { id, object: "model", created: 0, owned_by: provider ?? "magic", ...rest };
}
