// The pages docs/connectors/<id>.md, one for each definition of the catalogue, and the list of them. Made by npm run docs.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import type { Connector } from "#contract/wire/connectors.ts";
import { createCatalogue, definitionsFolder } from "#daemon/integrations/catalogue/catalogue.ts";

interface Definition {
  readonly metadata?: { readonly magic?: { readonly documentation?: Readonly<Record<string, string>> } };
}

const grades: Readonly<Record<Connector["grade"], string>> = {
  G0: "it builds and works in the sandbox environment; it has not passed its examination",
  G1: "check, discovery, pages, incremental reading, rate limits and wrong credentials are examined against a stand-in of the vendor",
  G2: "proven against the vendor",
};

const auths: Readonly<Record<Connector["auth"]["type"], string>> = {
  none: "none",
  api_key: "a key",
  basic: "HTTP Basic",
  bearer: "a Bearer token",
  oauth2: "OAuth 2.0",
  session: "a session",
  jwt: "a signed token (JWT)",
  database: "the database's own",
  custom: "its own",
};

/** File name -> text. */
export async function connectorPages(): Promise<Map<string, string>> {
  const catalogue = createCatalogue();
  const pages = new Map<string, string>();
  const index: string[] = [];
  for (const file of readdirSync(definitionsFolder()).sort()) {
    if (!file.endsWith(".yaml")) continue;
    const id = basename(file, ".yaml");
    const connector = await catalogue.get(id);
    if (connector === null) continue;
    const definition = parse(readFileSync(join(definitionsFolder(), file), "utf8")) as Definition;
    pages.set(`${id}.md`, pageOf(connector, definition.metadata?.magic?.documentation ?? {}));
    index.push(`- [${connector.name}](${id}.md): ${connector.category}, ${connector.grade}`);
  }
  const grading = Object.entries(grades).map(([grade, meaning]) => `**${grade}**: ${meaning}.`);
  const head = `# Connectors\n\nMade by \`npm run docs\`. ${grading.join(" ")}`;
  return pages.set("README.md", `${head}\n\n${index.join("\n")}\n`);
}

interface Property {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly order?: number;
  readonly airbyte_secret?: boolean;
}

function pageOf(connector: Connector, documentation: Readonly<Record<string, string>>): string {
  const { id, name, category, auth, capabilities, grade, documentation_url, config_schema, objects } = connector;
  const properties = Object.entries((config_schema["properties"] ?? {}) as Record<string, Property>);
  const required = (config_schema["required"] ?? []) as string[];
  const fields = properties
    .sort(([, a], [, b]) => (a.order ?? 99) - (b.order ?? 99))
    .map(([field, { title, description, airbyte_secret }]) => {
      const kind = [required.includes(field) ? "required" : "optional", ...(airbyte_secret ? ["secret"] : [])];
      return `- \`${field}\` (${kind.join(", ")}): ${sentence(title ?? field)}${description ? ` ${sentence(description)}` : ""}`;
    });
  const streams = objects.map((object) => {
    const cursor = object.cursor_candidates.map((each) => `\`${each}\``).join(", ");
    const key = object.primary_key.map((each) => `\`${each}\``).join(", ");
    const how = cursor ? `incremental by ${cursor}` : "full refresh";
    const page = documentation[object.name];
    return `- **${object.name}**: key ${key || "none"}; ${how}.${page ? ` [Documentation](${page})` : ""}`;
  });
  return `# ${name}

Made by \`npm run docs\` from the connector's definition.

- Category: ${category}
- Grade: ${grade}, ${grades[grade]}
- Authentication: ${auths[auth.type]}
- Modes: ${capabilities.modes.join(", ")}
- Vendor's documentation: <${documentation_url ?? ""}>

## Configuration

${fields.join("\n")}

## Streams

${streams.join("\n")}

\`magic connector show ${id}\` has the fields of each stream.
`;
}

const sentence = (text: string): string => text.replace(/[.\s]*$/, ".");
