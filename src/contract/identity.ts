// Who calls: scopes, tiers and the principal that authentication makes of a credential.
import type { Environment } from "./protocol.ts";

export const scopes = [
  "connectors:read",
  "connections:read",
  "connections:write",
  "syncs:read",
  "syncs:write",
  "syncs:trigger",
  "webhooks:read",
  "webhooks:write",
  "controllers:read",
  "controllers:write",
  "controllers:invoke",
  "logs:read",
  "traces:read",
  "usage:read",
  "gateway:use",
  "keys:read",
  "keys:write",
  "clients:read",
  "clients:write",
  "tokens:read",
  "tokens:write",
  "audit:read",
] as const;
export type Scope = (typeof scopes)[number];

export const tiers = ["starter", "professional", "enterprise"] as const;
export type Tier = (typeof tiers)[number];

export const principalTypes = ["key", "client", "token", "local", "admin", "anonymous"] as const;
export type PrincipalType = (typeof principalTypes)[number];

/** What a gateway token says about its holder; it wins over anything in the request's body. */
export interface GatewayIdentity {
  readonly user: string | null;
  readonly team: string | null;
  readonly project: string | null;
  /** Model names and patterns that the token may use; null: whatever the engagement allows. */
  readonly models: readonly string[] | null;
  readonly budget_usd: number | null;
}

export interface Principal {
  readonly type: PrincipalType;
  readonly id: string | null;
  readonly environment: Environment;
  /** Present where a credential works in more than its own environment: the local gateway token, for both. */
  readonly environments?: readonly Environment[];
  readonly scopes: ReadonlySet<Scope>;
  readonly tier: Tier;
  /** RFC 3339: when its credential ends by itself; absent for one without an end. */
  readonly expires_at?: string;
  /** Present for gateway tokens. */
  readonly gateway?: GatewayIdentity;
}
