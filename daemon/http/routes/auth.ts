// The token endpoint (RFC 6749, client credentials), the public keys of its tokens (RFC 7517) and its metadata (RFC 8414).
import type { FastifyInstance, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { scopes } from "#contract/identity.ts";
import { AuthorizationServer, Jwks, TokenRequest, TokenResponse } from "#contract/wire/auth.ts";
import type { ClientLogin } from "#daemon/identity/client-login.ts";
import { parseSecret } from "#daemon/identity/credentials/secret.ts";
import type { Issuers } from "#daemon/identity/jwt/issuers.ts";
import type { SigningKeys } from "#daemon/identity/jwt/signing-keys.ts";

export interface AuthServices {
  readonly login: ClientLogin;
  readonly signingKeys: SigningKeys;
  readonly issuers: Issuers;
  /** The origin that callers know; undefined: whatever they came by. */
  readonly publicOrigin: () => string | undefined;
  readonly encrypted: boolean;
}

const names = ["grant_type", "client_id", "client_secret", "scope"] as const;
type Parameters = Partial<Record<(typeof names)[number], string>>;

export function authRoutes(
  app: FastifyInstance,
  { login, signingKeys, issuers, publicOrigin, encrypted }: AuthServices,
): void {
  // In a scope of its own: nothing else takes forms.
  app.register(async (forms) => {
    forms.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, text, done) =>
      done(null, new URLSearchParams(text as string)),
    );
    forms.post(
      "/v1/auth/token",
      {
        config: { scope: null, surface: "core", errors: "oauth" },
        bodyLimit: 64 * 1024,
        schema: {
          tags: ["authentication"],
          operationId: "createAccessToken",
          summary: "Get an access token",
          description: "Client credentials, as JSON, as a form, or in a Basic Authorization header.",
          consumes: ["application/json", "application/x-www-form-urlencoded"],
          body: TokenRequest,
          response: { 200: TokenResponse },
        },
        // The parameters come in three ways and have errors of their own.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        const given = parametersOf(request.body);
        const basic = basicOf(request);
        if (basic && given.client_secret !== undefined)
          throw malformed("The client authenticates twice: use the header or the body.");
        if (basic && given.client_id !== undefined && given.client_id !== basic.id)
          throw malformed("client_id is not the client of the Authorization header.");
        const clientSecret = basic?.secret ?? given.client_secret;
        // Refused too: whoever watches over an environment is to see what was tried there.
        const environment = parseSecret(clientSecret ?? "")?.environment ?? "sandbox";
        request.audit = { environment };
        const { answer, clientId } = await login({
          clientId: basic?.id ?? given.client_id,
          clientSecret,
          grantType: given.grant_type,
          scope: given.scope,
        });
        request.audit = { environment, identity: { type: "client", id: clientId }, resource: clientId };
        return reply.header("cache-control", "no-store").send(answer);
      },
    );
  });

  app.get(
    "/.well-known/jwks.json",
    {
      config: { scope: null, surface: "core", action: "auth.jwks" },
      schema: {
        tags: ["authentication"],
        operationId: "getJwks",
        summary: "Get the public keys of access tokens",
        response: { 200: Jwks },
      },
    },
    async (_request, reply) => {
      await signingKeys.renew();
      return reply.header("cache-control", "public, max-age=60").send(signingKeys.jwks());
    },
  );

  app.get(
    "/.well-known/oauth-authorization-server",
    {
      config: { scope: null, surface: "core", action: "auth.metadata" },
      schema: {
        tags: ["authentication"],
        operationId: "getAuthorizationServer",
        summary: "Get the authorization server's metadata",
        response: { 200: AuthorizationServer },
      },
    },
    async ({ headers }) => {
      // Whoever has come by another of the daemon's names cannot come by the first one.
      const here = publicOrigin() ?? `${encrypted ? "https" : "http"}://${headers.host}`;
      return {
        issuer: issuers.current(),
        token_endpoint: `${here}/v1/auth/token`,
        jwks_uri: `${here}/.well-known/jwks.json`,
        grant_types_supported: ["client_credentials"],
        response_types_supported: [],
        scopes_supported: [...scopes],
        token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
        service_documentation: `${here}/docs`,
      };
    },
  );
}

// Of a form or of JSON; each at most once and a text. Members that are not known are ignored (RFC 6749, section 3.2).
function parametersOf(body: unknown): Parameters {
  const found: Parameters = {};
  if (body === undefined || body === null) return found;
  if (typeof body !== "object" || Array.isArray(body)) throw malformed("The body is no JSON object.");
  for (const name of names) {
    const values = body instanceof URLSearchParams ? body.getAll(name) : [(body as Record<string, unknown>)[name]];
    if (values.length > 1) throw malformed(`${name} is given more than once.`);
    const [value] = values;
    if (value === undefined || value === null || value === "") continue;
    if (typeof value !== "string" || value.length > 4_096) throw malformed(`${name} is no text, or too long.`);
    found[name] = value;
  }
  return found;
}

// RFC 6749, section 2.3.1: both halves are form-encoded before they are joined.
function basicOf(request: FastifyRequest): { id: string; secret: string } | undefined {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=_-]{1,8192})$/i.exec(request.headers.authorization ?? "") ?? [];
  if (encoded === undefined) return undefined;
  const [id, ...rest] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  if (!id || rest.length === 0) throw new MagicError("invalid_key", "The Basic credentials are malformed.");
  try {
    return { id: formDecoded(id), secret: formDecoded(rest.join(":")) };
  } catch {
    throw new MagicError("invalid_key", "The Basic credentials are malformed.");
  }
}

function formDecoded(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

function malformed(detail: string): MagicError {
  return new MagicError("invalid_request", detail);
}
