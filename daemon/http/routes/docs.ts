// /docs: pages for people, made here from the OpenAPI document and the error catalogue. No script, nothing from elsewhere.
import type { FastifyInstance, FastifyReply } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { apiPage } from "../docs/api-page.ts";
import { errorPage, errorsPage } from "../docs/errors-page.ts";
import type { OpenApi } from "../openapi/document.ts";

export interface DocsServices {
  readonly openApi: OpenApi;
  readonly origin: () => string;
}

export function docsRoutes(app: FastifyInstance, { openApi, origin }: DocsServices): void {
  const config = { scope: null, surface: "core", produces: ["text/html"] } as const;
  const tags = ["service"];

  app.get(
    "/docs",
    {
      config: { ...config, action: "docs.get" },
      schema: { tags, operationId: "getDocs", summary: "Read the API's page" },
    },
    async (_request, reply) => send(reply, apiPage(await openApi.document(), origin())),
  );
  app.get(
    "/docs/errors",
    {
      config: { ...config, action: "docs.errors" },
      schema: { tags, operationId: "getErrorDocs", summary: "Read the list of errors" },
    },
    async (_request, reply) => send(reply, errorsPage()),
  );
  app.get<{ Params: { code: string } }>(
    "/docs/errors/:code",
    {
      config: { ...config, action: "docs.error" },
      schema: { tags, operationId: "getErrorDoc", summary: "Read about one error" },
    },
    async (request, reply) => {
      const found = errorPage(request.params.code);
      if (found === undefined) throw new MagicError("not_found", "There is no such error code.");
      return send(reply, found);
    },
  );
}

function send(reply: FastifyReply, text: string): FastifyReply {
  return reply
    .type("text/html; charset=utf-8")
    .header(
      "content-security-policy",
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    )
    .header("referrer-policy", "no-referrer")
    .send(text);
}
