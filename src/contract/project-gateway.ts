// The `gateway:` part of magic.yaml: providers, models, policies, prices, limits, budgets.
import Type, { type Static } from "typebox";
import { env } from "./env-reference.ts";

export const providerTypes = ["openai", "anthropic", "google", "bedrock", "azure", "sandbox"] as const;

/** The sandbox's, listed by `GET /v1/models`; both take chat and embeddings alike. */
export const sandboxModels: readonly string[] = ["echo", "embedding"];

export const strategies = ["priority", "weighted", "cheapest", "fastest", "sticky"] as const;

/** Names that are the project's own: whatever they hold, line ends too, what stands behind them is looked at. */
export const AnyName = Type.String({ pattern: "^[\\s\\S]*$" });

const Model = Type.String({ minLength: 1, examples: ["openai/gpt-4o-mini"] });
const Models = (description: string) => Type.Array(Model, { description, examples: [["openai/*"]] });
const Text = (description: string, example?: string) =>
  Type.String({ minLength: 1, description, ...(example === undefined ? {} : { examples: [example] }) });

export const ProviderConfig = Type.Object(
  {
    type: Type.Optional(
      Type.Enum([...providerTypes], {
        description: "The wire format; by default the provider's own name says it.",
        examples: ["openai"],
      }),
    ),
    api_key: Type.Optional(Text("The credential, best a reference.", env("OPENAI_API_KEY"))),
    base_url: Type.Optional(
      Type.String({
        pattern: "^https?://|\\$\\{env:",
        "x-form": "an http:// or https:// URL",
        description: "With /v1 for openai; an origin for the others.",
        examples: ["http://127.0.0.1:11434/v1"],
      }),
    ),
    region: Type.Optional(Text("AWS region, for bedrock.", "us-east-1")),
    access_key_id: Type.Optional(Text("AWS access key, for bedrock.", env("AWS_ACCESS_KEY_ID"))),
    secret_access_key: Type.Optional(Text("AWS secret key, for bedrock.", env("AWS_SECRET_ACCESS_KEY"))),
    session_token: Type.Optional(Text("AWS session token, for bedrock.", env("AWS_SESSION_TOKEN"))),
    organization: Type.Optional(Text("OpenAI organization.")),
    project: Type.Optional(Text("OpenAI project.")),
    seed: Type.Optional(
      Type.Integer({ description: "For the sandbox: the same seed gives the same answers.", examples: [1] }),
    ),
    models: Type.Optional(Models("The models that it serves; lets a bare model id find it.")),
    headers: Type.Optional(Type.Record(AnyName, Type.String(), { description: "More request headers." })),
  },
  { additionalProperties: false, examples: [{ api_key: env("OPENAI_API_KEY") }] },
);
export type ProviderConfig = Static<typeof ProviderConfig>;

const Candidate = Type.Union(
  [
    Model,
    Type.Object(
      {
        model: Model,
        weight: Type.Optional(
          Type.Number({
            minimum: 0,
            description: "Its share where the strategy is weighted, by default 1.",
            examples: [1],
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ],
  { "x-form": "a model, or `{ model, weight }`", examples: ["openai/gpt-4o-mini"] },
);

export const PolicyConfig = Type.Object(
  {
    strategy: Type.Optional(
      Type.Enum([...strategies], {
        description: "How the next candidate is chosen; by default in order.",
        examples: ["priority"],
      }),
    ),
    candidates: Type.Array(Candidate, {
      minItems: 1,
      description: "The models that may serve it.",
      examples: [["openai/gpt-4o-mini", "sandbox/echo"]],
    }),
    retries: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 10,
        description: "More attempts at the same candidate, by default none.",
        examples: [2],
      }),
    ),
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 3_600_000,
        description: "For each attempt's headers, and every silence after them; by default 60000.",
        examples: [60000],
      }),
    ),
    total_timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 3_600_000,
        description: "For all attempts together, by default 1800000.",
        examples: [120000],
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ strategy: "priority", candidates: ["openai/gpt-4o-mini", "sandbox/echo"], retries: 2 }],
  },
);
export type PolicyConfig = Static<typeof PolicyConfig>;

const Usd = Type.Optional(Type.Number({ minimum: 0, description: "US dollars per million tokens.", examples: [0.15] }));
const classes = { input: Usd, output: Usd, cache_read: Usd, cache_write: Usd, reasoning: Usd };
export const PriceConfig = Type.Object(
  {
    ...classes,
    long_prompts: Type.Optional(
      Type.Array(
        Type.Object(
          { above: Type.Integer({ minimum: 1, description: "Tokens of the prompt.", examples: [200000] }), ...classes },
          { additionalProperties: false },
        ),
        {
          description: "What is different, for the whole call, where the prompt has more tokens.",
          examples: [[{ above: 200000, input: 2.5, output: 15 }]],
        },
      ),
    ),
  },
  { additionalProperties: false, examples: [{ input: 0.15, output: 0.6 }] },
);
export type PriceConfig = Static<typeof PriceConfig>;

const Count = (description: string, example: number) =>
  Type.Optional(Type.Integer({ minimum: 0, description, examples: [example] }));

export const BudgetConfig = Type.Object(
  {
    scope: Type.Enum(["engagement", "token", "user", "team", "project", "controller"], {
      description: "Whose spending counts together.",
      examples: ["team"],
    }),
    name: Type.Optional(Text("Which one; without it, each of them.", "research")),
    usd: Type.Number({ minimum: 0, description: "US dollars.", examples: [50] }),
    per: Type.Optional(
      Type.Enum(["day", "month"], {
        description: "Calendar day or month, UTC; by default month.",
        examples: ["month"],
      }),
    ),
    alert_at: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1,
        description: "The share at which `gateway.budget_alert` is logged, by default 0.8.",
        examples: [0.8],
      }),
    ),
  },
  { additionalProperties: false, examples: [{ scope: "team", name: "research", usd: 50, per: "month" }] },
);
export type BudgetConfig = Static<typeof BudgetConfig>;

const providerName = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
  "x-form": "letters, digits, dots, dashes and underscores (no slash)",
};

export const GatewayConfig = Type.Object(
  {
    engagement: Type.Optional(Text("The name under which usage is recorded.", "acme")),
    providers: Type.Optional(
      Type.Record(AnyName, ProviderConfig, {
        propertyNames: providerName,
        description: "By name; a model is `name/model`.",
        examples: [{ openai: { api_key: env("OPENAI_API_KEY") } }],
      }),
    ),
    models: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional(Models("Patterns of models that may be used, by default all.")),
          deny: Type.Optional(Models("Patterns of models that may not; wins over allow.")),
          aliases: Type.Optional(
            Type.Record(AnyName, Model, {
              description: "Other names, each of a model or a policy.",
              examples: [{ fast: "openai/gpt-4o-mini" }],
            }),
          ),
        },
        { additionalProperties: false, examples: [{ allow: ["*"], aliases: { fast: "openai/gpt-4o-mini" } }] },
      ),
    ),
    default: Type.Optional(
      Text("A model, alias or policy for requests that name none, by default the policy auto.", "auto"),
    ),
    policies: Type.Optional(
      Type.Record(AnyName, PolicyConfig, { description: "By name; a policy's name is a model name." }),
    ),
    prices: Type.Optional(
      Type.Record(AnyName, PriceConfig, {
        description:
          "By provider/model or a bare model id, for a service tier provider/model@priority; overrides the built-in prices.",
      }),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          requests_per_minute: Count("For each token.", 600),
          tokens_per_minute: Count("For each token.", 200000),
          concurrent: Count("Requests of a token at the same time.", 64),
        },
        { additionalProperties: false, examples: [{ requests_per_minute: 600 }] },
      ),
    ),
    budgets: Type.Optional(Type.Array(BudgetConfig)),
    retention_days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 36_500,
        description: "Days that single calls are kept, by default 400; sums by day are kept for ever.",
        examples: [400],
      }),
    ),
    allow_unpriced: Type.Optional(
      Type.Boolean({ description: "Serve models whose price is unknown; their cost_usd is null.", examples: [true] }),
    ),
    drop_unsupported: Type.Optional(
      Type.Boolean({ description: "Drop parameters that a provider lacks instead of refusing.", examples: [true] }),
    ),
  },
  { additionalProperties: false, description: "The AI gateway.", examples: [{ default: "auto" }] },
);
export type GatewayConfig = Static<typeof GatewayConfig>;
