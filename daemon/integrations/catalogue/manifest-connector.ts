// What the catalogue shows of a declarative manifest: https://docs.airbyte.com/platform/connector-development/config-based/
// Our own facts about it stand in `metadata.magic`, which the format leaves to its users.
import { fields, isObject } from "#contract/json-object.ts";
import type { Connector } from "#contract/wire/connectors.ts";
import { type Component, optionalText, typeOf } from "../connectors/declarative/manifest/component.ts";
import { resolveManifest } from "../connectors/declarative/manifest/resolve.ts";
import { inlineSchema, keyPathsOf, nameOf, writtenStreams } from "../connectors/declarative/manifest/streams.ts";
import type { OAuthDefinition } from "../oauth/provider.ts";

export interface Facts extends Partial<Pick<Connector, "name" | "category" | "verified_on">> {
  readonly auth_type?: Connector["auth"]["type"];
  readonly oauth?: OAuthDefinition;
}

export function factsOf(manifest: Component): Facts {
  return fields(fields(manifest["metadata"])["magic"]);
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

/**
 * A stream that cannot run stands in it as it is written, and keeps the others from nobody. The grade is what the examination found; G0: it builds.
 *
 * @throws MagicError `validation_failed` for references that lead nowhere, in circles, or to too much.
 */
export function catalogueEntry(id: string, manifest: Component, grade: Connector["grade"] = "G0"): Connector {
  const facts = factsOf(manifest);
  const resolved = resolveManifest({ ...manifest });
  const spec = fields(resolved["spec"]);
  const objects = writtenStreams(resolved).map(objectOf);
  const incremental = writtenStreams(resolved).some((stream) => isObject(readAs(stream)["incremental_sync"]));
  return {
    id,
    object: "connector",
    name: facts.name ?? id,
    category: facts.category ?? "other",
    auth: { type: facts.auth_type ?? authTypeOf(resolved) },
    capabilities: {
      source: true,
      destination: false,
      modes: incremental ? ["full_refresh", "incremental"] : ["full_refresh"],
    },
    grade,
    verified_on: facts.verified_on ?? null,
    documentation_url: optionalText(spec, "documentation_url") ?? null,
    config_schema: isObject(spec["connection_specification"]) ? spec["connection_specification"] : { type: "object" },
    objects,
  };
}

function objectOf(stream: Component): Connector["objects"][number] {
  const cursor = optionalText(fields(readAs(stream)["incremental_sync"]), "cursor_field");
  return {
    name: nameOf(stream),
    schema: inlineSchema(stream) ?? { type: "object" },
    primary_key: keyPathsOf(readAs(stream)).map((path) => path.join(".")),
    // What a template comes to is known with the configuration.
    cursor_candidates: cursor === undefined || cursor.includes("{{") ? [] : [cursor],
  };
}

// Once there is a state.
function readAs(stream: Component): Component {
  const later = stream["incremental_stream"];
  return isObject(later) ? later : stream;
}

function authTypeOf(resolved: Component): Connector["auth"]["type"] {
  const [first] = writtenStreams(resolved);
  const places = ["retriever", "requester", "authenticator"];
  const authenticator = places.reduce((at: unknown, place) => fields(at)[place], first && readAs(first));
  return isObject(authenticator) ? (authTypes[typeOf(authenticator)] ?? "custom") : "none";
}
