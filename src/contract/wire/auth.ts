// The token endpoint and what OAuth clients discover about it.
import { type Static, Type } from "typebox";

export const TokenRequest = Type.Object(
  {
    grant_type: Type.Optional(Type.Literal("client_credentials")),
    client_id: Type.Optional(Type.String({ description: "Here or in a Basic Authorization header." })),
    client_secret: Type.Optional(Type.String()),
    scope: Type.Optional(Type.String({ description: "Space-separated; by default all of the client's." })),
  },
  { examples: [{ client_id: "client_01kabc", client_secret: "cs_test_...", scope: "syncs:read" }] },
);

export const TokenResponse = Type.Object({
  access_token: Type.String({ description: "A JWT (RFC 9068)." }),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "Seconds.", examples: [900] }),
  scope: Type.String({ description: "Space-separated." }),
});
export type TokenResponse = Static<typeof TokenResponse>;

/** RFC 6749, section 5.2. */
export const OAuthError = Type.Object({
  error: Type.String({ examples: ["invalid_client"] }),
  error_description: Type.Optional(Type.String()),
});

export const Jwks = Type.Object({ keys: Type.Array(Type.Record(Type.String(), Type.Unknown())) });

/** RFC 8414. */
export const AuthorizationServer = Type.Object({
  issuer: Type.String(),
  token_endpoint: Type.String(),
  jwks_uri: Type.String(),
  grant_types_supported: Type.Array(Type.String()),
  response_types_supported: Type.Array(Type.String()),
  scopes_supported: Type.Array(Type.String()),
  token_endpoint_auth_methods_supported: Type.Array(Type.String()),
  service_documentation: Type.String(),
});
