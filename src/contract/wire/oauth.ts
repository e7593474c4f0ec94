// Provider OAuth on the wire.
import { type Static, Type } from "typebox";
import { Metadata, memberName } from "./connections.ts";
import { Timestamp } from "./times.ts";

const Settings = Type.Record(memberName(200), Type.Unknown(), { additionalProperties: false, maxProperties: 200 });

export const StartOAuth = Type.Object(
  {
    provider: Type.String({ minLength: 1, maxLength: 100, examples: ["salesforce"] }),
    callback_url: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: "Where the browser goes afterwards, with `connection` and `status`, or `error`.",
      examples: ["https://app.example.com/connected"],
    }),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    scopes: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), { maxItems: 100, description: "By default the provider's own." }),
    ),
    config: Type.Optional(
      Type.Intersect([Settings], {
        description:
          "`client_id`, and what else the connector asks for; `authorize_url`, `token_url` and `revoke_url` where the catalogue has none; `issuer` where it is not of the authorize URL's site.",
      }),
    ),
    credentials: Type.Optional(Type.Intersect([Settings], { description: "`client_secret`." })),
    metadata: Type.Optional(Metadata),
    connection: Type.Optional(Type.String({ description: "Authorizes this connection anew instead of making one." })),
  },
  {
    additionalProperties: false,
    examples: [
      { provider: "salesforce", callback_url: "https://app.example.com/connected", config: { client_id: "abc" } },
    ],
  },
);
export type StartOAuth = Static<typeof StartOAuth>;

export const StartedOAuth = Type.Object(
  {
    object: Type.Literal("oauth_authorization"),
    authorization_url: Type.String({ description: "Send the browser there." }),
    state: Type.String({ description: "Good for one authorization." }),
    expires_at: Timestamp("When it must have come back."),
  },
  { $id: "StartedOAuth" },
);

export type StartedOAuth = Static<typeof StartedOAuth>;

export const OAuthCallbackQuery = Type.Object({
  state: Type.String({ minLength: 1, maxLength: 500 }),
  code: Type.Optional(Type.String({ maxLength: 4096 })),
  /** RFC 9207: whose answer it is. */
  iss: Type.Optional(Type.String({ maxLength: 2048 })),
  error: Type.Optional(Type.String({ maxLength: 500 })),
  error_description: Type.Optional(Type.String({ maxLength: 2000 })),
});
export type OAuthCallbackQuery = Static<typeof OAuthCallbackQuery>;
