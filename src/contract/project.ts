// magic.yaml: the project's configuration. One schema gives the types, the checks and the JSON Schema that editors complete from.
// Every key is optional; whoever uses a value owns its default. `${env:NAME}` may stand in any text and is filled in when it is loaded.
import Type, { type Static } from "typebox";
import { env } from "./env-reference.ts";
import { AnyName, GatewayConfig } from "./project-gateway.ts";

const Env = (name: string, description: string) => Type.String({ description, minLength: 1, examples: [env(name)] });

const Port = Type.Integer({
  minimum: 0,
  maximum: 65535,
  description: "By default 4141, or the next free one; 0: any free port.",
  examples: [4141],
});

const DaemonConfig = Type.Object(
  {
    host: Type.Optional(
      Type.String({
        minLength: 1,
        description: "Where to listen, by default 127.0.0.1. Plain HTTP is for loopback only.",
        examples: ["127.0.0.1"],
      }),
    ),
    port: Type.Optional(Port),
    public_url: Type.Optional(
      Type.String({
        pattern: "^https?://[^\\s/?#@]+/?$|\\$\\{env:",
        "x-form": "an origin, such as https://magic.example.com",
        description:
          "Where callers and browsers reach it, when that is not where it listens: behind a proxy, in a container.",
        examples: ["https://magic.example.com"],
      }),
    ),
    log_level: Type.Optional(
      Type.Enum(["debug", "info", "warn", "error"], {
        description: "The least important lines that are kept, by default info.",
        examples: ["info"],
      }),
    ),
    tls: Type.Optional(
      Type.Object(
        {
          cert: Type.Optional(Type.String({ minLength: 1, description: "PEM file with the certificate chain." })),
          key: Type.Optional(Type.String({ minLength: 1, description: "PEM file with the private key." })),
        },
        { additionalProperties: false, description: "TLS 1.3. Without files a local certificate is made." },
      ),
    ),
  },
  { additionalProperties: false, description: "The local daemon.", examples: [{ host: "127.0.0.1", port: 4141 }] },
);

const Database = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        pattern: "^(postgres|postgresql|mysql|mariadb|sqlite):|\\$\\{env:",
        "x-form": "a postgres://, mysql:// or sqlite: URL",
        description: "Where it is; the path of a SQLite file begins at the project's root.",
        examples: [env("DATABASE_URL")],
      }),
    ),
    connection: Type.Optional(
      Type.String({
        pattern: "^conn_",
        "x-form": "the id of a connection",
        description: "A live connection of the core API in place of a URL.",
        examples: ["conn_01hy3k9q0z"],
      }),
    ),
    mode: Type.Optional(
      Type.Enum(["read", "write"], {
        description: "read (the default) is enforced by the database's session.",
        examples: ["read"],
      }),
    ),
  },
  { additionalProperties: false, examples: [{ url: env("DATABASE_URL"), mode: "read" }] },
);

const names = {
  pattern: "^[A-Za-z_][A-Za-z0-9_-]*$",
  "x-form": "letters, digits, dashes and underscores, a letter first",
};

export const ProjectConfig = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "The JSON Schema of this file, for editors." })),
    version: Type.Optional(Type.Literal(1, { description: "The version of this file's format.", examples: [1] })),
    controllers: Type.Optional(
      Type.String({
        minLength: 1,
        description: "The folder with one folder for each controller, by default controllers.",
        examples: ["controllers"],
      }),
    ),
    daemon: Type.Optional(DaemonConfig),
    gateway: Type.Optional(GatewayConfig),
    databases: Type.Optional(
      Type.Record(AnyName, Database, {
        propertyNames: names,
        description: "Databases that controllers name in scopes.db.",
        examples: [{ main: { url: env("DATABASE_URL"), mode: "read" } }],
      }),
    ),
    secrets: Type.Optional(
      Type.Record(AnyName, Env("CRM_TOKEN", "A secret: a reference to the environment, not the value itself."), {
        propertyNames: names,
        description: "Secrets that controllers name in scopes.secrets.",
        examples: [{ CRM_TOKEN: env("CRM_TOKEN") }],
      }),
    ),
    egress: Type.Optional(
      Type.Object(
        {
          allow_private: Type.Optional(
            Type.Array(
              Type.String({
                pattern: "^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9_.-]+):([0-9]{1,5}|\\*)$|\\$\\{env:",
                "x-form": "`host:port`",
                examples: ["127.0.0.1:9000"],
              }),
              {
                description: "Private addresses that may be reached; for development.",
                examples: [["127.0.0.1:9000"]],
              },
            ),
          ),
        },
        {
          additionalProperties: false,
          description: "What may be reached from here.",
          examples: [{ allow_private: ["127.0.0.1:9000"] }],
        },
      ),
    ),
    environment: Type.Optional(
      Type.Object(
        {
          tier: Type.Optional(
            Type.Enum(["starter", "professional", "enterprise"], {
              description: "The account's tier: rates, connections, active syncs; by default starter.",
              examples: ["starter"],
            }),
          ),
          seed: Type.Optional(
            Type.Integer({
              description: "Simulated values of the sandbox depend on it and on ids alone; by default 1.",
              examples: [1],
            }),
          ),
          deployment: Type.Optional(
            Type.Enum(["development", "production"], {
              description: "What /v1/health reports as environment, by default development.",
              examples: ["development"],
            }),
          ),
        },
        { additionalProperties: false, examples: [{ tier: "starter", seed: 1 }] },
      ),
    ),
    webhooks: Type.Optional(
      Type.Object(
        {
          retry_schedule_s: Type.Optional(
            Type.Array(Type.Number({ minimum: 0, maximum: 2_592_000 }), {
              minItems: 1,
              maxItems: 50,
              description: "Seconds before each attempt, by default ten over about three days.",
              examples: [[0, 5, 300, 1800]],
            }),
          ),
          timeout_s: Type.Optional(
            Type.Number({
              exclusiveMinimum: 0,
              maximum: 300,
              description: "Seconds for one attempt, by default 15.",
              examples: [15],
            }),
          ),
          retention_days: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 36_500,
              description: "Days that deliveries are kept after the last attempt was due; by default 30.",
              examples: [30],
            }),
          ),
          max_deliveries: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 100_000_000,
              description:
                "Deliveries kept of one webhook, by default 100,000: of more, the oldest go that succeeded. Failed ones stay their days.",
              examples: [100_000],
            }),
          ),
        },
        { additionalProperties: false, examples: [{ timeout_s: 15 }] },
      ),
    ),
    auth: Type.Optional(
      Type.Object(
        {
          access_token_ttl_s: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 86_400,
              description: "Seconds that an access token lives, by default 900.",
              examples: [900],
            }),
          ),
          issuer: Type.Optional(
            Type.String({
              minLength: 1,
              description: "The `iss` of access tokens; by default daemon.public_url, else where it listens.",
              examples: ["https://magic.example.com"],
            }),
          ),
        },
        { additionalProperties: false, examples: [{ access_token_ttl_s: 900 }] },
      ),
    ),
    audit: Type.Optional(
      Type.Object(
        {
          retention_days: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 36_500,
              description: "Days that audit entries are kept; without it for ever.",
              examples: [400],
            }),
          ),
        },
        { additionalProperties: false, examples: [{ retention_days: 400 }] },
      ),
    ),
    telemetry: Type.Optional(
      Type.Object(
        {
          otlp_endpoint: Type.Optional(
            Type.String({
              pattern: "^https?://|\\$\\{env:",
              "x-form": "an http:// or https:// URL",
              description: "Where spans go as OTLP (HTTP, JSON).",
              examples: ["http://127.0.0.1:4318"],
            }),
          ),
          otlp_headers: Type.Optional(Type.Record(AnyName, Type.String(), { description: "Sent with them." })),
        },
        {
          additionalProperties: false,
          description: "Where traces are exported to.",
          examples: [{ otlp_endpoint: "http://127.0.0.1:4318" }],
        },
      ),
    ),
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "magic.yaml",
    description: "A magic project's configuration.",
    additionalProperties: false,
  },
);
export type ProjectConfig = Static<typeof ProjectConfig>;
