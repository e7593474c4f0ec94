// The controller's contract (contract.yaml): what it is called, what goes in and out, what it may do, within which limits.
// The cell grants exactly what stands here; `controller-check.ts` checks what a schema cannot say.
import Type, { type Static } from "typebox";

export const capabilities = [
  "llm:chat",
  "http:egress",
  "db:query",
  "secrets:read",
  "kv:read",
  "kv:write",
  "sync:trigger",
  "controller:invoke",
] as const;
export type Capability = (typeof capabilities)[number];

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

export const CONTROLLER_NAME = "^[a-z][a-z0-9_-]{0,62}$";
// semver.org's own expression; a number has at most fifteen digits, so that it stays exact.
const SEMVER =
  "^(0|[1-9]\\d{0,14})\\.(0|[1-9]\\d{0,14})\\.(0|[1-9]\\d{0,14})(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\\+([0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*))?$";
const HOST =
  "^([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\\.)*[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\\.?$|^\\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\\]?$";

const Word = (what: string, example: string) =>
  Type.String({
    pattern: "^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
    maxLength: 128,
    "x-form": `${what}: letters, digits, dots, dashes and underscores`,
    examples: [example],
  });

const JsonSchema = (what: string) =>
  Type.Unsafe<boolean | Record<string, unknown>>({
    type: ["object", "boolean"],
    description: `JSON Schema (2020-12) of the ${what}.`,
    examples: [{ type: "object" }],
  });

const Scopes = Type.Object(
  {
    llm: Type.Optional(
      Type.Object(
        {
          models: Type.Optional(
            Type.Array(Type.String({ minLength: 1, examples: ["auto"] }), {
              minItems: 1,
              description: "Models, aliases and policies it may use; without it, whatever the gateway allows.",
              examples: [["auto"]],
            }),
          ),
          usd_per_day: Type.Optional(
            Type.Number({ minimum: 0, description: "Its own budget, US dollars a day.", examples: [5] }),
          ),
        },
        { additionalProperties: false, examples: [{ models: ["auto"], usd_per_day: 5 }] },
      ),
    ),
    http: Type.Optional(
      Type.Array(
        Type.Object(
          {
            host: Type.String({
              pattern: HOST,
              maxLength: 253,
              "x-form": "a host name or address alone, without scheme, port or path",
              description: "A private one must also stand in egress.allow_private of magic.yaml.",
              examples: ["api.example.com"],
            }),
            port: Type.Optional(
              Type.Integer({ minimum: 1, maximum: 65535, description: "By default the scheme's.", examples: [443] }),
            ),
            methods: Type.Optional(
              Type.Array(Type.Enum([...methods]), { minItems: 1, description: "By default all.", examples: [["GET"]] }),
            ),
            scheme: Type.Optional(
              Type.Enum(["https", "http"], {
                description: "By default https; whichever is spoken at `port` where that is given.",
                examples: ["https"],
              }),
            ),
          },
          { additionalProperties: false, examples: [{ host: "api.example.com", port: 443, methods: ["GET"] }] },
        ),
        {
          minItems: 1,
          description: "Hosts that fetch may reach.",
          examples: [[{ host: "api.example.com", methods: ["GET"] }]],
        },
      ),
    ),
    db: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Word("a database of magic.yaml", "main"),
            mode: Type.Optional(Type.Enum(["read", "write"], { description: "By default read.", examples: ["read"] })),
          },
          { additionalProperties: false, examples: [{ name: "main", mode: "read" }] },
        ),
        {
          minItems: 1,
          description: "Databases of magic.yaml that it may query.",
          examples: [[{ name: "main", mode: "read" }]],
        },
      ),
    ),
    secrets: Type.Optional(
      Type.Array(Word("a secret of magic.yaml", "CRM_TOKEN"), {
        minItems: 1,
        description: "Secrets of magic.yaml that it may read.",
        examples: [["CRM_TOKEN"]],
      }),
    ),
    controllers: Type.Optional(
      Type.Array(Word("a controller", "other"), {
        minItems: 1,
        description: "Controllers that it may invoke.",
        examples: [["other"]],
      }),
    ),
    syncs: Type.Optional(
      Type.Array(Word("a sync's id", "sync_01"), {
        minItems: 1,
        description: "Syncs that it may trigger.",
        examples: [["sync_01"]],
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "What each capability reaches.",
    examples: [{ http: [{ host: "api.example.com" }] }],
  },
);

const Limits = Type.Object(
  {
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 900_000,
        description: "For one invocation, by default 30000.",
        examples: [5000],
      }),
    ),
    memory_mb: Type.Optional(
      Type.Integer({
        minimum: 16,
        maximum: 16_384,
        description: "Heap and buffers of the cell, by default 128.",
        examples: [128],
      }),
    ),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1024,
        description: "Invocations at the same time, by default 16.",
        examples: [16],
      }),
    ),
  },
  { additionalProperties: false, examples: [{ timeout_ms: 5000, memory_mb: 128, concurrency: 16 }] },
);

export const ControllerContract = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "The JSON Schema of this file, for editors." })),
    name: Type.String({
      pattern: CONTROLLER_NAME,
      "x-form": "1 to 63 lower-case letters, digits, dashes and underscores, a letter first",
      description: "How it is invoked.",
      examples: ["triage"],
    }),
    version: Type.String({
      pattern: SEMVER,
      maxLength: 128,
      "x-form": "a semantic version of three numbers",
      description: "Semantic version (semver.org).",
      examples: ["1.0.0"],
    }),
    description: Type.Optional(Type.String({ maxLength: 2000, examples: ["Sorts tickets"] })),
    input_schema: JsonSchema("input"),
    output_schema: JsonSchema("output"),
    capabilities: Type.Optional(
      Type.Array(Type.Enum([...capabilities]), {
        uniqueItems: true,
        description: "What it may do; nothing else is granted.",
        examples: [["llm:chat"]],
      }),
    ),
    scopes: Type.Optional(Scopes),
    limits: Type.Optional(Limits),
    isolation: Type.Optional(
      Type.Enum(["process", "invocation"], {
        description:
          "process (the default): calls of one version share a cell. invocation: a fresh cell for each call.",
        examples: ["invocation"],
      }),
    ),
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "contract.yaml",
    description: "The contract of a magic controller.",
    additionalProperties: false,
  },
);
export type ControllerContract = Static<typeof ControllerContract>;
