// The OpenAPI 3.1 document, made from the very schemas that requests are checked by. Routes are noted as they are declared; the
// document is made when it is first asked for, by a Fastify instance of its own, so that the daemon's start does not pay for it.
import type { SwaggerTransform } from "@fastify/swagger";
import type { FastifyInstance, FastifySchema, RouteOptions } from "fastify";
import { VERSION } from "#contract/protocol.ts";
import { OAuthError } from "#contract/wire/auth.ts";
import { IdempotencyKeyHeader } from "#contract/wire/params.ts";
import { OpenAiError, Problem } from "#contract/wire/problem.ts";
import { lazy } from "#shared/lazy.ts";
import { emptyBody } from "../empty-body.ts";
import { takesIdempotencyKey } from "../idempotency.ts";
import { answersOf, type OperationConfig } from "./answers.ts";
import { summaryOf } from "./words.ts";

export type OpenApiDocument = Readonly<Record<string, unknown>>;

export interface OpenApi {
  /** The document; the same object at every call. */
  document(): Promise<OpenApiDocument>;
}

interface Operation {
  readonly operationId?: string;
  readonly requestBody?: { required?: boolean };
}

interface NotedRoute {
  readonly method: string;
  readonly url: string;
  readonly schema: FastifySchema;
  readonly config: OperationConfig;
  /** No body counts as an empty one. */
  readonly bare: boolean;
}

/** Call before the routes are declared. */
export function useOpenApi(app: FastifyInstance): OpenApi {
  const routes: NotedRoute[] = [];
  app.addHook("onRoute", (route: RouteOptions) => {
    const { surface, scope } = route.config ?? {};
    if (surface === "local" || scope === undefined || route.url === "*") return;
    const bare = [route.preValidation].flat().some((hook) => hook === emptyBody);
    for (const method of [route.method].flat())
      if (method !== "HEAD" && method !== "OPTIONS")
        routes.push({ method, url: route.url, schema: route.schema ?? {}, config: { ...route.config }, bare });
  });
  return { document: lazy(() => build(routes, app)) };
}

async function build(routes: readonly NotedRoute[], app: FastifyInstance): Promise<OpenApiDocument> {
  const [{ default: fastify }, { default: swagger }] = await Promise.all([
    import("fastify"),
    import("@fastify/swagger"),
  ]);
  const copy = fastify({ exposeHeadRoutes: false });
  copy.setValidatorCompiler(() => () => true);
  copy.setSerializerCompiler(() => () => "");
  await copy.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "magic",
        version: VERSION,
        summary: "AI gateway, controllers and integrations behind one API",
        description:
          "Errors are problem+json (RFC 9457) except where an operation says otherwise; `/docs/errors` lists them.",
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/", description: "The daemon that serves this document." }],
      components: {
        securitySchemes: {
          bearerAuth: {
            type: "http",
            scheme: "bearer",
            description:
              "An API key, an access token, or a gateway token. The scope that it needs stands at each operation.",
          },
        },
      },
    },
    refResolver: {
      buildLocalReference: (json: Record<string, unknown>, _base: unknown, _fragment: string, index: number) =>
        String(json["$id"] ?? `schema-${index}`),
    },
    transform,
    convertConstToEnum: false,
  } as Parameters<typeof copy.register>[1]);
  const errorForms = { Problem, OpenAiError, OAuthError };
  for (const [$id, schema] of Object.entries(errorForms)) copy.addSchema({ ...schema, $id });
  for (const shared of Object.values(app.getSchemas())) copy.addSchema(shared);
  const taken = new Set<string>();
  const bare = new Set<string>();
  for (const { method, url: declared, schema, config, ...route } of routes) {
    // OpenAPI has no wildcards: the rest of a path is a parameter there.
    const url = declared.replace("*", ":rest");
    const operationId = unique((schema as { operationId?: string }).operationId ?? operationIdOf(method, url), taken);
    if (route.bare) bare.add(operationId);
    copy.route({ method, url, schema: { ...schema, operationId } as FastifySchema, config, handler: async () => null });
  }
  await copy.ready();
  const document = copy.swagger() as OpenApiDocument & { readonly paths: Readonly<Record<string, object>> };
  await copy.close();
  // Every body is written as required.
  for (const operation of Object.values(document.paths).flatMap((path): Operation[] => Object.values(path)))
    if (operation.requestBody && bare.has(operation.operationId ?? "")) operation.requestBody.required = false;
  return document;
}

// Fills in what every operation has by its place and its config, and need not be written at each route.
const transform: SwaggerTransform = ({ schema, url, route }) => {
  const config = (route as unknown as { config: OperationConfig }).config;
  const given = (schema ?? {}) as Record<string, unknown>;
  const method = [route.method].flat()[0] ?? "GET";
  const action = config.action ?? "";
  const filled: Record<string, unknown> = {
    tags: [tagOf(url)],
    summary: summaryOf(action),
    ...given,
    ...(config.deprecated && { deprecated: true }),
    ...(takesIdempotencyKey(method, config) && { headers: IdempotencyKeyHeader }),
    security: config.scope ? [{ bearerAuth: [config.scope] }] : [],
    response: answersOf(method, url, config, given),
  };
  return { schema: filled as FastifySchema, url };
};

function tagOf(url: string): string {
  const [noun = "service"] = url.split("/").filter((part) => part !== "" && part !== "v1");
  return noun.startsWith(".") ? "authentication" : noun.includes(".") ? "service" : noun;
}

// A route that answers at two addresses has one description: the second gets a number.
function unique(name: string, taken: Set<string>): string {
  let free = name;
  for (let count = 2; taken.has(free); count++) free = `${name}${count}`;
  taken.add(free);
  return free;
}

function operationIdOf(method: string, url: string): string {
  const words = url.split(/[/:._-]/).filter((part) => part !== "" && part !== "v1");
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
