// /v1/connectors: the catalogue.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { Connector, ConnectorsQuery } from "#contract/wire/connectors.ts";
import { listOf } from "#contract/wire/list.ts";
import { IdParams } from "#contract/wire/params.ts";
import type { Catalogue } from "#daemon/integrations/catalogue/catalogue.ts";
import { type ListOptions, pageByName } from "#daemon/storage/list.ts";

export function connectorRoutes(app: FastifyInstance, { catalogue }: { catalogue: Catalogue }): void {
  const config = { scope: "connectors:read", surface: "core" } as const;
  const tags = ["connectors"];

  app.get<{ Querystring: ListOptions & { category?: string } }>(
    "/v1/connectors",
    {
      config,
      schema: {
        ...{ tags, operationId: "listConnectors", summary: "List connectors" },
        querystring: ConnectorsQuery,
        response: { 200: listOf(Connector) },
      },
    },
    async ({ query }) => {
      const { category } = query;
      // By id, not by time: a catalogue has no newest.
      const all = (await catalogue.list()).filter((one) => category === undefined || one.category === category);
      return pageByName(all, query, ({ id }) => id);
    },
  );

  app.get<{ Params: IdParams }>(
    "/v1/connectors/:id",
    {
      config,
      schema: {
        ...{ tags, operationId: "getConnector", summary: "Get a connector" },
        params: IdParams,
        response: { 200: Connector },
      },
    },
    async ({ params }) => {
      const found = await catalogue.get(params.id);
      if (found === null) throw new MagicError("not_found", `There is no connector ${params.id}.`);
      return found;
    },
  );
}
