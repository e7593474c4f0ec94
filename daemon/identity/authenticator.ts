// A request's credential -> a principal. The fast path is one hash and one look-up in memory; a known credential is looked up
// again in storage about every half second, behind the request's back, so that what another replica revoked dies within a second.
import type { IncomingHttpHeaders } from "node:http";
import { MagicError } from "#contract/errors.ts";
import { type GatewayIdentity, type Principal, type Scope, scopes, type Tier } from "#contract/identity.ts";
import { type Environment, environments, headers as names } from "#contract/protocol.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { CredentialTable } from "#daemon/storage/tables/credential.ts";
import type { Clock } from "#shared/clock.ts";
import type { LocalCredentials } from "#shared/local-credentials.ts";
import { digestOf, parseSecret, sameDigest, timeOf } from "./credentials/secret.ts";
import type { Uses } from "./credentials/uses.ts";
import type { AccessTokens } from "./jwt/access-token.ts";

export interface IdentityAuthenticator {
  /** Throws `invalid_key` or `expired` for a bad or missing credential. `remote`: one object for all requests of a connection. */
  authenticate(headers: IncomingHttpHeaders, remote: { readonly loopback: boolean }): Principal | Promise<Principal>;
  /** The credential has changed: it is looked up again at its next use. */
  forget(credentialId: string): void;
}

export interface AuthenticatorOptions {
  readonly local: LocalCredentials;
  readonly units: Pick<Storage["units"]["credential"], "bySecret" | "byId">;
  readonly accessTokens: AccessTokens;
  readonly uses: Uses;
  readonly clock: Clock;
}

/** Milliseconds: from when on a cached credential is looked up again, and beyond which it is not trusted meanwhile. */
const FRESH_MS = 400;
const TRUSTED_MS = 900;
const MAX_CACHED = 20_000;

interface Known {
  readonly principal: Principal;
  readonly credentialId: string;
  readonly secretId: string | undefined;
  /** Milliseconds since the epoch; Infinity without an end. */
  readonly expiresAt: number;
  /** On the monotonic clock, from before the look-up. */
  readonly checkedAt: number;
}

/** A credential as it came. */
interface Brought {
  readonly header: string;
  readonly token: string;
  readonly digest: string;
}

type Bearer = Known | { readonly environmentOf: (headers: IncomingHttpHeaders) => Principal; readonly local: boolean };

const every: ReadonlySet<Scope> = new Set(scopes);
const ordinary: ReadonlySet<Scope> = new Set(scopes.filter((scope) => !/^(keys|clients|tokens|audit):/.test(scope)));
const gatewayOnly: ReadonlySet<Scope> = new Set<Scope>(["gateway:use"]);
const anyone: GatewayIdentity = { user: null, team: null, project: null, models: null, budget_usd: null };

export function createAuthenticator(options: AuthenticatorOptions): IdentityAuthenticator {
  const { units, accessTokens, uses, clock } = options;
  const builtIn = builtInBearers(options.local);
  const cache = new Map<string, Known>();
  const digestsOf = new Map<string, Set<string>>();
  const lookups = new Map<string, Promise<Known>>();
  /** What each connection brought last: clients send the same with all of their requests. */
  const lastBrought = new WeakMap<object, Brought>();

  function authenticate(
    headers: IncomingHttpHeaders,
    remote: { readonly loopback: boolean },
  ): Principal | Promise<Principal> {
    const { token, digest } = broughtBy(headers, remote);
    const found = cache.get(digest) ?? builtIn.get(digest);
    if (found === undefined) return lookUp(token, digest).then(use);
    if (!("principal" in found)) {
      if (found.local && !remote.loopback) throw unknown();
      return found.environmentOf(headers);
    }
    const age = clock.monotonic() - found.checkedAt;
    if (age > TRUSTED_MS) return lookUp(token, digest).then(use);
    if (age > FRESH_MS) lookUp(token, digest).catch(() => undefined);
    return use(found);
  }

  // Credentials are looked up by a full hash: comparing texts byte by byte would tell how much of a guess was right. What a connection
  // itself has said tells it nothing.
  function broughtBy(headers: IncomingHttpHeaders, connection: object): Brought {
    const last = lastBrought.get(connection);
    if (last !== undefined && last.header === headers.authorization) return last;
    const token = bearerOf(headers);
    if (token === undefined) throw noBearer();
    const brought = { header: headers.authorization ?? "", token, digest: digestOf(token) };
    lastBrought.set(connection, brought);
    return brought;
  }

  function use(known: Known): Principal {
    if (known.expiresAt <= clock.now()) throw new MagicError("expired", "The credential has expired.");
    if (known.secretId !== undefined) uses.note(known.secretId);
    return known.principal;
  }

  // One look-up at a time for one credential, however many requests bring it.
  function lookUp(token: string, digest: string): Promise<Known> {
    let pending = lookups.get(digest);
    if (pending === undefined) {
      const checkedAt = clock.monotonic();
      const found = token.startsWith("ey") ? fromAccessToken(token, checkedAt) : fromSecret(token, digest, checkedAt);
      // What it was before a change that came meanwhile is not to be remembered.
      const settle = (then: () => void): void => {
        if (lookups.get(digest) !== pending) return;
        lookups.delete(digest);
        then();
      };
      pending = found.then(
        (known) => {
          settle(() => remember(digest, known));
          return known;
        },
        (error: unknown) => {
          settle(() => drop(digest));
          throw error;
        },
      );
      lookups.set(digest, pending);
    }
    return pending;
  }

  function remember(digest: string, known: Known): void {
    drop(digest);
    cache.set(digest, known);
    const digests = digestsOf.get(known.credentialId);
    if (digests) digests.add(digest);
    else digestsOf.set(known.credentialId, new Set([digest]));
    if (cache.size > MAX_CACHED) {
      const oldest = cache.keys().next();
      if (!oldest.done) drop(oldest.value);
    }
  }

  function drop(digest: string): void {
    const known = cache.get(digest);
    if (known === undefined) return;
    cache.delete(digest);
    const digests = digestsOf.get(known.credentialId);
    digests?.delete(digest);
    if (digests?.size === 0) digestsOf.delete(known.credentialId);
  }

  async function fromSecret(token: string, digest: string, checkedAt: number): Promise<Known> {
    const parsed = parseSecret(token);
    if (!parsed || parsed.kind === "client") throw unknown();
    const found = await units.bySecret({ secretId: parsed.secretId });
    if (!found || !sameDigest(found.secret.digest, digest)) throw unknown();
    const { credential, secret } = found;
    if (credential.revoked_at !== null) throw new MagicError("invalid_key", "The credential is revoked.");
    const expiresAt = Math.min(timeOf(credential.expires_at), timeOf(secret.expires_at));
    const { id: credentialId } = credential;
    return { principal: principalOf(credential), credentialId, secretId: secret.id, expiresAt, checkedAt };
  }

  async function fromAccessToken(token: string, checkedAt: number): Promise<Known> {
    const claims = await accessTokens.verify(token);
    const client = await units.byId({ id: claims.clientId });
    if (client?.kind !== "client" || client.revoked_at !== null)
      throw new MagicError("invalid_key", "The client of this access token is revoked.");
    const whole = principalOf(client);
    const granted = new Set(claims.scopes.filter((scope): scope is Scope => whole.scopes.has(scope as Scope)));
    return {
      principal: { ...whole, scopes: granted },
      credentialId: client.id,
      secretId: undefined,
      expiresAt: Math.min(claims.expiresAt, timeOf(client.expires_at)),
      checkedAt,
    };
  }

  return {
    authenticate,
    forget(credentialId) {
      // Whose those under way are is not known yet: whoever asks from now on asks anew.
      lookups.clear();
      for (const digest of [...(digestsOf.get(credentialId) ?? [])]) drop(digest);
    },
  };
}

// The runtime file's credentials: they are in no table, and what they are good for is fixed.
function builtInBearers(local: LocalCredentials): Map<string, Bearer> {
  const operator = (type: "local" | "admin") => ({
    local: type === "local",
    environmentOf: (headers: IncomingHttpHeaders): Principal => ({
      type,
      id: null,
      environment: environmentOf(headers),
      scopes: every,
      tier: "enterprise",
    }),
  });
  const fixed = (principal: Principal): Bearer => ({ local: false, environmentOf: () => principal });
  return new Map<string, Bearer>([
    [digestOf(local.local_token), operator("local")],
    [digestOf(local.admin_key), operator("admin")],
    [
      digestOf(local.api_key),
      fixed({ type: "key", id: "key_local", environment: "sandbox", scopes: ordinary, tier: "starter" }),
    ],
    [
      digestOf(local.gateway_token),
      fixed({
        type: "token",
        id: "gt_local",
        environment: "live",
        environments,
        scopes: gatewayOnly,
        tier: "enterprise",
        gateway: anyone,
      }),
    ],
  ]);
}

/** The environment that a credential for both chooses by its header; sandbox without one. */
function environmentOf(headers: IncomingHttpHeaders): Environment {
  const asked = headers[names.environment] ?? "sandbox";
  const found = environments.find((environment) => environment === asked);
  if (!found) throw new MagicError("invalid_request", "Magic-Environment is sandbox or live.");
  return found;
}

/** The token of `Authorization: Bearer`, or undefined. */
export function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  return /^Bearer +([\x21-\x7e]+)$/i.exec(headers.authorization ?? "")?.[1];
}

function noBearer(): MagicError {
  // Whoever sent none is not told that it is wrong (RFC 6750, section 3.1).
  const headersOf401 = { "www-authenticate": 'Bearer realm="magic"' };
  return new MagicError("invalid_key", "There is no bearer credential.", { headers: headersOf401 });
}

function principalOf(row: CredentialTable): Principal {
  return {
    type: row.kind as "key" | "client" | "token",
    id: row.id,
    environment: row.environment as Environment,
    scopes: new Set(JSON.parse(row.scopes) as Scope[]),
    tier: row.tier as Tier,
    ...(row.expires_at !== null && { expires_at: row.expires_at }),
    ...(row.gateway !== null && { gateway: JSON.parse(row.gateway) as GatewayIdentity }),
  };
}

function unknown(): MagicError {
  return new MagicError("invalid_key", "The credential is not known.");
}
