// The catalogue on the wire.
import { type Static, Type } from "typebox";
import { listQuery } from "./list.ts";
import { Nullable } from "./times.ts";

const categories = [
  "crm",
  "erp",
  "hr",
  "warehouse",
  "database",
  "cloud",
  "bi",
  "chat",
  "support",
  "payments",
  "finance",
  "ecommerce",
  "project",
  "marketing",
  "development",
  "file",
  "other",
] as const;

export const Connector = Type.Object(
  {
    id: Type.String({ examples: ["salesforce"] }),
    object: Type.Literal("connector"),
    name: Type.String({ examples: ["Salesforce"] }),
    category: Type.Enum([...categories]),
    auth: Type.Object({
      type: Type.Enum(["none", "api_key", "basic", "bearer", "oauth2", "session", "jwt", "database", "custom"]),
    }),
    capabilities: Type.Object({
      source: Type.Boolean(),
      destination: Type.Boolean(),
      modes: Type.Array(Type.String(), { examples: [["full_refresh", "incremental"]] }),
    }),
    grade: Type.Enum(["G0", "G1", "G2"], {
      description: "G0: parses. G1: proven against a stand-in. G2: verified live, on `verified_on`.",
    }),
    verified_on: Nullable(Type.String()),
    documentation_url: Nullable(Type.String()),
    config_schema: Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of a connection's config." }),
    objects: Type.Array(
      Type.Object({
        name: Type.String(),
        schema: Type.Record(Type.String(), Type.Unknown()),
        primary_key: Type.Array(Type.String()),
        cursor_candidates: Type.Array(Type.String()),
      }),
      { description: "Known without a connection; databases and files tell theirs when they are discovered." },
    ),
  },
  { $id: "Connector", description: "A kind of system that connections can be made to." },
);
export type Connector = Static<typeof Connector>;

export const ConnectorsQuery = listQuery({
  category: Type.Optional(Type.Enum([...categories], { description: "Only this category." })),
});
