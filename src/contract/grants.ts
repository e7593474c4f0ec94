// What a contract grants: exactly what it declares. The daemon's broker and the fakes of magic/sdk/testing both decide by this file.
import type { Capability, ControllerContract } from "./controller.ts";

/** What a handler wants to do. */
export type Wish =
  | { readonly capability: "llm:chat" | "kv:read" | "kv:write" }
  | { readonly capability: "http:egress"; readonly url: URL; readonly method: string }
  | { readonly capability: "db:query"; readonly name: string; readonly mode?: "write" }
  | { readonly capability: "secrets:read" | "controller:invoke" | "sync:trigger"; readonly name: string };

/** Why it may not, and the line that would let it. */
export interface Refusal {
  readonly why: string;
  readonly add: string;
}

type Scopes = NonNullable<ControllerContract["scopes"]>;
type HttpGrant = NonNullable<Scopes["http"]>[number];

/** null where the contract declares it. */
export function refusalOf(contract: ControllerContract, wish: Wish): Refusal | null {
  const { capability } = wish;
  const declared: readonly string[] = contract.capabilities ?? [];
  const outside = outsideScope(contract.scopes ?? {}, wish);
  if (declared.includes(capability)) return outside;
  const line = `capabilities: [${[...declared, capability].join(", ")}]`;
  const add = outside && needsScope(capability) ? `${line} and ${outside.add}` : line;
  return { why: `it does not declare ${capability}`, add };
}

/** The refusal as the handler, its caller and the log read it. */
export function refusalText(controller: string, { why, add }: Refusal): string {
  return `the contract of ${controller}: ${why}; add to contract.yaml: ${add}`;
}

/** The mode that the contract gives for a database; null where it gives none. */
export function databaseMode(contract: ControllerContract, name: string): "read" | "write" | null {
  const grants = contract.scopes?.db?.filter((grant) => grant.name === name) ?? [];
  if (grants.length === 0) return null;
  return grants.some((grant) => grant.mode === "write") ? "write" : "read";
}

function needsScope(capability: Capability): boolean {
  return capability === "http:egress" || capability === "db:query" || capability === "secrets:read";
}

function outsideScope(scopes: Scopes, wish: Wish): Refusal | null {
  switch (wish.capability) {
    case "http:egress":
      return unreached(scopes.http ?? [], wish.url, wish.method);
    case "db:query":
      return unqueried(scopes.db ?? [], wish.name, wish.mode);
    case "secrets:read":
      return unlisted("secrets", scopes.secrets ?? [], wish.name, `read the secret ${wish.name}`);
    case "controller:invoke":
      return unlisted("controllers", scopes.controllers, wish.name, `invoke ${wish.name}`);
    case "sync:trigger":
      return unlisted("syncs", scopes.syncs, wish.name, `trigger ${wish.name}`);
    default:
      return null;
  }
}

function unqueried(grants: NonNullable<Scopes["db"]>, name: string, mode: "read" | "write" = "read"): Refusal | null {
  const granted = grants.filter((grant) => grant.name === name);
  if (granted.some((grant) => mode === "read" || grant.mode === "write")) return null;
  return {
    why: `it may ${granted.length > 0 ? "only read" : "not query"} the database ${name}`,
    add: `scopes: { db: [{ name: ${word(name)}, mode: ${mode} }] }`,
  };
}

/** An absent list allows every name. */
function unlisted(scope: string, list: readonly string[] | undefined, name: string, what: string): Refusal | null {
  if (!list || list.includes(name)) return null;
  return { why: `it may not ${what}`, add: `scopes: { ${scope}: [${[...list, name].map(word).join(", ")}] }` };
}

/** As YAML reads it back; the brackets of an IPv6 address would begin a list. */
function word(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
}

function unreached(grants: readonly HttpGrant[], url: URL, method: string): Refusal | null {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  const scheme = url.protocol.slice(0, -1);
  const host = plainHost(url.hostname);
  const places = grants.filter((grant) => plainHost(grant.host) === host && reaches(grant, scheme, port));
  if (places.some((grant) => !grant.methods || grant.methods.some((one) => one === method))) return null;
  const more = scheme === "http" ? ", scheme: http" : "";
  return {
    why: `it may not send ${method} to ${scheme}://${host}:${port}`,
    add: `scopes: { http: [{ host: ${word(host)}, port: ${port}${more}, methods: [${method}] }] }`,
  };
}

/** A grant without a scheme is https; with a port alone it is that port, whichever of the two is spoken there. */
function reaches(grant: HttpGrant, scheme: string, port: number): boolean {
  if (grant.scheme !== undefined && grant.scheme !== scheme) return false;
  if (grant.port !== undefined) return grant.port === port;
  return grant.scheme === "http" ? port === 80 : scheme === "https" && port === 443;
}

function plainHost(host: string): string {
  return (urlHost(host) ?? host.toLowerCase()).replace(/\.$/, "");
}

/** As URLs write it: lower case, IPv4 in four parts, IPv6 in brackets; undefined where it is no host. */
export function urlHost(host: string): string | undefined {
  const bracketed = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return URL.parse(`http://${bracketed}`)?.hostname;
}
