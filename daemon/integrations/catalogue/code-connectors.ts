// The catalogue's entries for connectors that are written in code: databases, files, HTTP endpoints.
import type { Connector } from "#contract/wire/connectors.ts";

const url = (description: string, example: string) => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  required: ["url"],
  properties: { url: { type: "string", description, examples: [example], airbyte_secret: true } },
});

function inCode(
  id: string,
  name: string,
  category: Connector["category"],
  modes: string[],
  config_schema: Record<string, unknown>,
  source = true,
): Connector {
  return {
    id,
    object: "connector",
    name,
    category,
    auth: { type: category === "database" ? "database" : "none" },
    capabilities: { source, destination: true, modes },
    grade: "G0",
    verified_on: null,
    documentation_url: null,
    config_schema,
    objects: [],
  };
}

const both = ["full_refresh", "incremental"];

/** With the grades that the examination gave them. */
export function codeConnectors(grades: Readonly<Record<string, Connector["grade"]>>): Connector[] {
  return all.map((connector) => ({ ...connector, grade: grades[connector.id] ?? connector.grade }));
}

const all: readonly Connector[] = [
  inCode("postgres", "PostgreSQL", "database", both, url("Where it is.", "postgres://user@db.example.com/app")),
  inCode("mysql", "MySQL and MariaDB", "database", both, url("Where it is.", "mysql://user@db.example.com/app")),
  inCode("sqlite", "SQLite", "database", both, url("The file's path.", "/data/app.sqlite")),
  inCode("csv", "CSV files", "file", both, url("The file's path.", "/data/customers.csv")),
  inCode("jsonl", "JSON lines files", "file", both, url("The file's path.", "/data/events.jsonl")),
  inCode("parquet", "Parquet files", "file", both, url("The file's path.", "/data/orders.parquet")),
  inCode(
    "http",
    "HTTP endpoint",
    "other",
    both,
    url("Where records are posted.", "https://example.com/records"),
    false,
  ),
];
