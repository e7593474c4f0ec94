// magic connector show
import type { ApiClient } from "#client/http.ts";
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { nearest } from "#contract/suggest.ts";
import type { Connector } from "#contract/wire/connectors.ts";
import { record, table } from "#output/table.ts";

export default defineCommand({
  configure: (command) => command.argument("<id>", "the connector's id"),
  async run(context) {
    const client = await clientOf(context);
    const connector = await client
      .request<Connector>("GET", `/v1/connectors/${pathPart(context.args[0])}`)
      .catch(async (error: unknown) => {
        throw await withSuggestion(client, String(context.args[0]), error);
      });
    const { id, name, category, auth, capabilities, grade, documentation_url, config_schema, objects } = connector;
    const required = (config_schema["required"] as string[] | undefined) ?? [];
    const fields = Object.keys((config_schema["properties"] as object | undefined) ?? {});
    context.output.result(connector, (paint) =>
      [
        record(
          {
            ...{ id, name, category, auth: auth.type, grade },
            modes: capabilities.modes.join(", "),
            config: fields.map((field) => (required.includes(field) ? `${field} (required)` : field)).join(", "),
            documentation: documentation_url ?? undefined,
          },
          paint,
        ),
        "",
        table(
          objects,
          [
            { title: "OBJECT", value: (object) => object.name },
            { title: "PRIMARY KEY", value: (object) => object.primary_key.join(", ") },
            { title: "CURSOR", value: (object) => object.cursor_candidates.join(", ") },
          ],
          paint,
          "Its objects are discovered from a connection: `magic connection objects`.",
        ),
      ].join("\n"),
    );
  },
});

async function withSuggestion(client: ApiClient, id: string, error: unknown): Promise<unknown> {
  if (!isMagicError(error) || error.code !== "not_found") return error;
  const { data } = await client
    .request<{ data: Connector[] }>("GET", "/v1/connectors", { query: { limit: 100 } })
    .catch(() => ({ data: [] as Connector[] }));
  const near = nearest(
    id,
    data.map((one) => one.id),
  );
  const next = near === undefined ? "`magic connector list` shows them." : `Did you mean ${near}?`;
  return new MagicError(error.code, error.message, { cause: error, extra: { ...error.extra, next } });
}
