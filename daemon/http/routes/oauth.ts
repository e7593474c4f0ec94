// /v1/connections/oauth: authorizes connections at their provider.
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { OAuthCallbackQuery, StartedOAuth, StartOAuth } from "#contract/wire/oauth.ts";
import type { OAuth } from "#daemon/integrations/oauth/oauth.ts";
import { liveOnly } from "../live-only.ts";

export function oauthRoutes(app: FastifyInstance, { oauth }: { oauth: OAuth }): void {
  const tags = ["connections"];

  app.post<{ Body: StartOAuth }>(
    "/v1/connections/oauth/start",
    {
      config: { scope: "connections:write", surface: "core", exactIntegersIn: ["config", "credentials", "metadata"] },
      onRequest: liveOnly,
      schema: {
        ...{ tags, operationId: "startOAuth", summary: "Begin a provider's OAuth authorization" },
        body: StartOAuth,
        response: { 200: StartedOAuth },
      },
    },
    async (request) => {
      const { authorizationUrl, state, expiresAt } = await oauth.start(request.principal, request.body);
      return { object: "oauth_authorization", authorization_url: authorizationUrl, state, expires_at: expiresAt };
    },
  );

  app.get<{ Querystring: OAuthCallbackQuery }>(
    "/v1/connections/oauth/callback",
    {
      // The browser comes here from the provider: what it carries is the state, good once.
      config: { scope: null, surface: "core", changes: true, produces: ["application/json", "text/html", "*/*"] },
      // Whoever looks at a link before it is followed (HEAD) would use the state up.
      exposeHeadRoute: false,
      schema: {
        ...{
          tags,
          operationId: "finishOAuth",
          summary: "The provider's redirect: sends the browser on to the caller's callback",
        },
        querystring: OAuthCallbackQuery,
        response: {
          302: Type.Null({ description: "To the caller's callback, with `connection` and `status`, or `error`." }),
        },
      },
    },
    async (request, reply) => {
      request.audit = { environment: "live" };
      const { location, connection } = await oauth.callback(request.query);
      // The browser is sent on either way.
      if (connection === null) request.audit.outcome = "failed";
      else request.audit.resource = connection;
      return reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer").redirect(location, 302);
    },
  );
}
