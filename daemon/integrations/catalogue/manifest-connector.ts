// What the catalogue shows of a declarative manifest: https://docs.airbyte.com/platform/connector-development/config-based/
// Our own facts about it stand in `metadata.magic`, which the format leaves to its users.

import type { Connector } from "#contract/wire/connectors.ts";
import type { OAuthDefinition } from "../oauth/provider.ts";

interface StreamPart {
  readonly name?: string;
  readonly $ref?: string;
  readonly primary_key?: string | readonly (string | readonly string[])[];
  readonly schema_loader?: { readonly schema?: Readonly<Record<string, unknown>> | { readonly $ref: string } };
  readonly incremental_sync?: { readonly cursor_field?: string };
  readonly retriever?: { readonly requester?: { readonly authenticator?: { readonly type?: string } } };
}

export interface Manifest {
  readonly streams?: readonly (StreamPart | string)[];
  readonly definitions?: Readonly<Record<string, unknown>>;
  readonly spec?: {
    readonly connection_specification?: Readonly<Record<string, unknown>>;
    readonly documentation_url?: string;
  };
  readonly metadata?: {
    readonly magic?: Partial<Connector> & {
      readonly auth_type?: Connector["auth"]["type"];
      readonly oauth?: OAuthDefinition;
    };
  };
}

const authTypes: Readonly<Record<string, Connector["auth"]["type"]>> = {
  NoAuth: "none",
  ApiKeyAuthenticator: "api_key",
  BasicHttpAuthenticator: "basic",
  BearerAuthenticator: "bearer",
  OAuthAuthenticator: "oauth2",
  SessionTokenAuthenticator: "session",
  JwtAuthenticator: "jwt",
};

/** The grade is what the examination found; G0: it builds. */
export function connectorOf(id: string, manifest: Manifest, grade: Connector["grade"] = "G0"): Connector {
  const ours = manifest.metadata?.magic ?? {};
  const streams = (manifest.streams ?? []).map((stream) => resolve(manifest, stream) as StreamPart);
  const authenticator = streams[0]?.retriever?.requester?.authenticator?.type;
  const incremental = streams.some((stream) => stream.incremental_sync !== undefined);
  return {
    id,
    object: "connector",
    name: ours.name ?? id,
    category: ours.category ?? "other",
    auth: { type: ours.auth_type ?? authTypes[authenticator ?? ""] ?? (authenticator ? "custom" : "none") },
    capabilities: {
      source: true,
      destination: false,
      modes: incremental ? ["full_refresh", "incremental"] : ["full_refresh"],
    },
    grade,
    verified_on: ours.verified_on ?? null,
    documentation_url: manifest.spec?.documentation_url ?? null,
    config_schema: manifest.spec?.connection_specification ?? { type: "object" },
    objects: streams.map(({ name = "", primary_key, schema_loader, incremental_sync }) => ({
      name,
      schema: (schema_loader?.schema as Record<string, unknown> | undefined) ?? { type: "object" },
      primary_key: [primary_key ?? []].flat(2),
      cursor_candidates: incremental_sync?.cursor_field ? [incremental_sync.cursor_field] : [],
    })),
  };
}

// `$ref: "#/definitions/x"` beside other keys: they win over what it names. Depth is bounded: a manifest may be hostile.
function resolve(manifest: Manifest, part: unknown, depth = 0): unknown {
  if (depth > 30) return {};
  if (typeof part === "string" && part.startsWith("#/")) return resolve(manifest, at(manifest, part), depth + 1);
  if (Array.isArray(part)) return part.map((item) => resolve(manifest, item, depth + 1));
  if (typeof part !== "object" || part === null) return part;
  const { $ref, ...own } = part as Record<string, unknown>;
  const base = typeof $ref === "string" ? resolve(manifest, at(manifest, $ref), depth + 1) : {};
  const members = Object.entries(own).map(([key, value]) => [key, resolve(manifest, value, depth + 1)]);
  return { ...(base as object), ...Object.fromEntries(members) };
}

function at(manifest: Manifest, reference: string): unknown {
  let part: unknown = manifest;
  for (const step of reference.slice(2).split("/"))
    part = typeof part === "object" && part !== null && Object.hasOwn(part, step) ? part[step as never] : undefined;
  return part;
}
