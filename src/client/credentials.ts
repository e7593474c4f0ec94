// Keys, clients and gateway tokens of a daemon, for commands: the same verbs under three paths.
import type { ListPage } from "#contract/wire/list.ts";
import type { ApiClient } from "./http.ts";
import { pathPart } from "./path-part.ts";

const credentialPaths = { key: "/v1/keys", client: "/v1/clients", token: "/v1/gateway-tokens" } as const;
export type CredentialNoun = keyof typeof credentialPaths;

export interface CredentialDocument {
  readonly id: string;
  readonly object: string;
  readonly name: string;
  readonly environment: string;
  readonly tier: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly secrets: readonly { readonly last_used_at: string | null; readonly expires_at: string | null }[];
  /** Of gateway tokens. */
  readonly user?: string | null;
  readonly team?: string | null;
  readonly project?: string | null;
  readonly models?: readonly string[] | null;
  readonly budget_usd?: number | null;
  /** Only in the answers of create and roll. */
  readonly secret?: string;
  readonly client_secret?: string;
}

export interface Paging {
  readonly limit?: number | undefined;
  readonly starting_after?: string | undefined;
}

/** The only answer but a roll's that has the secret. */
export function createCredential(client: ApiClient, noun: CredentialNoun, body: object): Promise<CredentialDocument> {
  return client.request("POST", credentialPaths[noun], { body });
}

/** Newest first; without secrets. */
export function listCredentials(
  client: ApiClient,
  noun: CredentialNoun,
  { limit, starting_after }: Paging,
): Promise<ListPage<CredentialDocument>> {
  return client.request("GET", credentialPaths[noun], { query: { limit, starting_after } });
}

/** Without its secrets. Throws not_found. */
export function getCredential(client: ApiClient, noun: CredentialNoun, id: string): Promise<CredentialDocument> {
  return client.request("GET", address(noun, id));
}

/** `overlapS`: seconds that the secrets until now keep working; by default a day. */
export function rollCredential(
  client: ApiClient,
  noun: CredentialNoun,
  id: string,
  overlapS: number | undefined,
): Promise<CredentialDocument> {
  return client.request("POST", `${address(noun, id)}/roll`, {
    body: overlapS === undefined ? {} : { overlap_s: overlapS },
  });
}

/** Ends it at once, with all its secrets. Throws not_found. */
export async function revokeCredential(client: ApiClient, noun: CredentialNoun, id: string): Promise<void> {
  await client.request("DELETE", address(noun, id));
}

function address(noun: CredentialNoun, id: string): string {
  return `${credentialPaths[noun]}/${pathPart(id)}`;
}
