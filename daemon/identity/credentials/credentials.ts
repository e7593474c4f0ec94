// Keys, clients and gateway tokens as a service: who may make, see, roll and revoke which, over the storage units.
import { MagicError } from "#contract/errors.ts";
import type { GatewayIdentity, Principal, Scope, Tier } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import type { Page, Slice } from "#daemon/storage/page.ts";
import type { CredentialRow } from "#daemon/storage/repositories/credential.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, inUtc, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { operates, requireCovers } from "./grant.ts";
import { type CredentialKind, makeSecret } from "./secret.ts";

export interface Credential {
  readonly id: string;
  readonly kind: CredentialKind;
  readonly environment: Environment;
  readonly tier: Tier;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly gateway: GatewayIdentity | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly secrets: readonly {
    readonly id: string;
    readonly created_at: string;
    readonly last_used_at: string | null;
    readonly expires_at: string | null;
  }[];
}

export interface CredentialRequest {
  readonly kind: CredentialKind;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** By default the maker's; so are the tier and the end. */
  readonly environment?: Environment | undefined;
  readonly tier?: Tier | undefined;
  readonly gateway?: GatewayIdentity | undefined;
  readonly expires_at?: string | undefined;
}

/** A credential with the text of its new secret: the only moment at which it is known. */
export interface WithSecret {
  readonly credential: Credential;
  readonly secret: string;
}

export interface Credentials {
  create(maker: Principal, request: CredentialRequest): Promise<WithSecret>;
  get(caller: Principal, kind: CredentialKind, id: string): Promise<Credential>;
  list(caller: Principal, kind: CredentialKind, page: Page): Promise<Slice<Credential>>;
  /** A second secret; the ones before it end `overlapS` seconds from now. */
  roll(caller: Principal, kind: CredentialKind, id: string, overlapS: number): Promise<WithSecret>;
  revoke(caller: Principal, kind: CredentialKind, id: string): Promise<void>;
}

export interface CredentialOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  /** The account's tier: what an operator's new credential gets unless another is asked for. */
  readonly accountTier: () => Tier;
  /** Called when a credential or its secrets have changed: caches must forget it. */
  readonly onChange: (id: string) => void;
  /** Stores what is known of last uses, so that they are listed. */
  readonly flushUses: () => Promise<void>;
}

export const idPrefixes: Readonly<Record<CredentialKind, string>> = { key: "key", client: "client", token: "gt" };
const nouns: Readonly<Record<CredentialKind, string>> = { key: "key", client: "client", token: "gateway token" };

export function createCredentials(options: CredentialOptions): Credentials {
  const { clock, onChange } = options;
  const units = options.storage.units.credential;
  const now = () => rfc3339(clock.now());

  async function find(caller: Principal, kind: CredentialKind, id: string): Promise<Credential> {
    const row = await units.get({ kind, id, environment: visible(caller), now: now() });
    if (!row) throw absent(kind, id);
    return fromRow(row);
  }

  return {
    async create(maker, request) {
      const environment = request.environment ?? maker.environment;
      const tier = request.tier ?? (operates(maker) ? options.accountTier() : maker.tier);
      const end = request.expires_at ?? maker.expires_at;
      const expires_at = end === undefined ? null : inUtc(end);
      requireCovers(maker, { scopes: request.scopes, tier, environment, expires_at });
      if (expires_at !== null && Date.parse(expires_at) <= clock.now()) throw over();
      const secret = makeSecret(request.kind, environment);
      const row = await units.create({
        id: newId(idPrefixes[request.kind]),
        kind: request.kind,
        environment,
        tier,
        name: request.name,
        scopes: JSON.stringify([...new Set(request.scopes)]),
        gateway: request.gateway ? JSON.stringify(request.gateway) : null,
        created_at: now(),
        expires_at,
        secret: { id: secret.id, digest: secret.digest },
      });
      return { credential: fromRow(row), secret: secret.text };
    },

    async get(caller, kind, id) {
      await options.flushUses();
      return find(caller, kind, id);
    },

    async list(caller, kind, page) {
      await options.flushUses();
      const { rows, more } = await units.list({ kind, environment: visible(caller), page, now: now() });
      return { rows: rows.map(fromRow), more };
    },

    async roll(caller, kind, id, overlapS) {
      const found = await find(caller, kind, id);
      requireCovers(caller, found);
      const secret = makeSecret(kind, found.environment);
      const at = clock.now();
      const row = await units.roll({
        kind,
        id,
        secret: { id: secret.id, digest: secret.digest },
        now: rfc3339(at),
        overlapEnds: rfc3339(at + overlapS * 1_000),
      });
      if (!row) throw new MagicError("conflict", `The ${nouns[kind]} ${id} is revoked: make a new one.`);
      onChange(id);
      return { credential: fromRow(row), secret: secret.text };
    },

    async revoke(caller, kind, id) {
      await find(caller, kind, id);
      if (!(await units.revoke({ kind, id, now: now() }))) throw absent(kind, id);
      onChange(id);
    },
  };
}

// Operators manage both environments; for anybody else the other one's credentials do not exist.
function visible(caller: Principal): Environment | undefined {
  return operates(caller) ? undefined : caller.environment;
}

function over(): MagicError {
  const detail = "expires_at is over already.";
  return new MagicError("validation_failed", detail, { problems: [{ pointer: "/expires_at", code: "past", detail }] });
}

function absent(kind: CredentialKind, id: string): MagicError {
  return new MagicError("not_found", `There is no ${nouns[kind]} ${id.slice(0, 100)}.`);
}

function fromRow(row: CredentialRow): Credential {
  const { kind, environment, tier, scopes, gateway, secrets, ...rest } = row;
  return {
    ...rest,
    kind: kind as CredentialKind,
    environment: environment as Environment,
    tier: tier as Tier,
    scopes: JSON.parse(scopes) as Scope[],
    gateway: gateway === null ? null : (JSON.parse(gateway) as GatewayIdentity),
    secrets: secrets.map(({ id, created_at, last_used_at, expires_at }) => ({
      id,
      created_at,
      last_used_at,
      expires_at,
    })),
  };
}
