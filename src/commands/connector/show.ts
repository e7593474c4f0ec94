// magic connector show
import { defineCommand } from "#commands/command.ts";
import { clientOf } from "#commands/connection-of.ts";
import { pathPart } from "#commands/resource-verbs.ts";
import type { Connector } from "#contract/wire/connectors.ts";
import { record, table } from "#output/table.ts";

export default defineCommand({
  configure: (command) => command.argument("<id>", "the connector's id"),
  async run(context) {
    const client = await clientOf(context);
    const connector = await client.request<Connector>("GET", `/v1/connectors/${pathPart(context.args[0])}`);
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
