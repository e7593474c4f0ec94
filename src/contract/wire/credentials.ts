// Keys, clients and gateway tokens: what is sent to make and roll them, and what is answered. Secrets stand only in the answers
// of create and roll.
import { type Static, Type } from "typebox";
import { scopes, tiers } from "../identity.ts";
import { environments } from "../protocol.ts";
import { Nullable, Timestamp } from "./times.ts";

const closed = { additionalProperties: false } as const;
const Name = Type.String({ minLength: 1, maxLength: 200, description: "For people.", examples: ["CI"] });
const Scopes = Type.Array(Type.Enum([...scopes]), {
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  description: "Exactly what it may do; none may go beyond its maker's.",
  examples: [["connections:read", "syncs:read"]],
});
const Environment = Type.Enum([...environments], {
  description: "sandbox: simulated. live: real systems.",
  examples: ["sandbox"],
});
const Tier = Type.Enum([...tiers], { description: "Rate and account limits.", examples: ["starter"] });
const Expiry = Timestamp("When it ends by itself.");

/** One of a credential's secrets: its public part and when it was last used, by which a roll can be ended safely. */
const CredentialSecret = Type.Object(
  {
    id: Type.String({ examples: ["sec_01kabc"] }),
    created_at: Timestamp("When it was made."),
    last_used_at: Nullable(Timestamp("When it was last used, to within seconds.")),
    expires_at: Nullable(Timestamp("When it ends; null for the newest.")),
  },
  { description: "One of a credential's secrets, without its text." },
);

const shared = {
  name: Type.String(),
  scopes: Type.Array(Type.String()),
  environment: Environment,
  tier: Tier,
  created_at: Timestamp("When it was made."),
  expires_at: Nullable(Expiry),
  revoked_at: Nullable(Timestamp("When it was revoked.")),
  secrets: Type.Array(CredentialSecret),
};
const Secret = Type.String({ description: "Shown here once and stored nowhere: keep it." });

export const Key = Type.Object(
  { id: Type.String({ examples: ["key_01kabc"] }), object: Type.Literal("key"), ...shared },
  { description: "An API key." },
);
export const KeyWithSecret = Type.Object({ ...Key.properties, secret: Secret });
export const CreateKey = Type.Object(
  {
    name: Type.Optional(Name),
    scopes: Scopes,
    environment: Type.Optional(Environment),
    tier: Type.Optional(Tier),
    expires_at: Type.Optional(Expiry),
  },
  { ...closed, examples: [{ name: "CI", scopes: ["syncs:read", "syncs:trigger"], environment: "sandbox" }] },
);
export type CreateKey = Static<typeof CreateKey>;

export const Client = Type.Object(
  {
    id: Type.String({ examples: ["client_01kabc"] }),
    object: Type.Literal("client"),
    client_id: Type.String({ examples: ["client_01kabc"] }),
    ...shared,
  },
  { description: "A client of the client-credentials flow." },
);
export const ClientWithSecret = Type.Object({ ...Client.properties, client_secret: Secret });
export const CreateClient = Type.Object(CreateKey.properties, {
  ...closed,
  examples: [{ name: "warehouse", scopes: ["syncs:read"], environment: "live", tier: "professional" }],
});

const label = (what: string, example: string) =>
  Type.String({ minLength: 1, maxLength: 200, description: what, examples: [example] });
const GatewayMembers = {
  user: label("Whose calls these are; usage and budgets count by it.", "ada"),
  team: label("Likewise.", "research"),
  project: label("Likewise.", "search"),
};
const Models = Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
  minItems: 1,
  maxItems: 200,
  description: "Models that it may use, `*` for any part; without it whatever the gateway allows.",
  examples: [["openai/gpt-4o-mini", "sandbox/*"]],
});
const Budget = Type.Number({
  minimum: 0,
  maximum: 1e9,
  description: "US dollars, for the token's whole life.",
  examples: [50],
});

export const GatewayToken = Type.Object(
  {
    id: Type.String({ examples: ["gt_01kabc"] }),
    object: Type.Literal("gateway_token"),
    ...shared,
    user: Nullable(GatewayMembers.user),
    team: Nullable(GatewayMembers.team),
    project: Nullable(GatewayMembers.project),
    models: Nullable(Models),
    budget_usd: Nullable(Budget),
  },
  { description: "A token for the AI gateway." },
);
export const GatewayTokenWithSecret = Type.Object({ ...GatewayToken.properties, secret: Secret });
export const CreateGatewayToken = Type.Object(
  {
    name: Type.Optional(Name),
    environment: Type.Optional(Environment),
    user: Type.Optional(GatewayMembers.user),
    team: Type.Optional(GatewayMembers.team),
    project: Type.Optional(GatewayMembers.project),
    models: Type.Optional(Models),
    budget_usd: Type.Optional(Budget),
    expires_at: Type.Optional(Expiry),
  },
  { ...closed, examples: [{ user: "ada", team: "research", models: ["sandbox/*"], budget_usd: 5 }] },
);
export type CreateGatewayToken = Static<typeof CreateGatewayToken>;

/** A day: so long the secrets until now go on, where a roll does not say how long. */
export const OVERLAP_S = 86_400;

export const Roll = Type.Object(
  {
    overlap_s: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 31_536_000,
        default: OVERLAP_S,
        description: "Seconds that the secrets until now keep working; 0 ends them at once.",
        examples: [86_400],
      }),
    ),
  },
  { ...closed, examples: [{ overlap_s: 3600 }] },
);
export type Roll = Static<typeof Roll>;
