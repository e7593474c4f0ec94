// Everything about who calls and what they did, put together over one storage: app.ts opens it, the HTTP hooks and routes use it.
import { hkdfSync } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import type { Tier } from "#contract/identity.ts";
import type { Seals } from "#daemon/secrets/seals.ts";
import type { Presence } from "#daemon/storage/presence.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Clock } from "#shared/clock.ts";
import type { LocalCredentials } from "#shared/local-credentials.ts";
import { type AuditTrail, openAuditTrail } from "./audit/trail.ts";
import { createAuthenticator, type IdentityAuthenticator } from "./authenticator.ts";
import { type ClientLogin, createClientLogin } from "./client-login.ts";
import { type Credentials, createCredentials } from "./credentials/credentials.ts";
import { createUses } from "./credentials/uses.ts";
import { createIdempotency, type Idempotency } from "./idempotency/idempotency.ts";
import { accessTokens } from "./jwt/access-token.ts";
import { type Issuers, openIssuers } from "./jwt/issuers.ts";
import { openSigningKeys, type SigningKeys } from "./jwt/signing-keys.ts";
import { createRateLimiter, type RateLimiter, type StoredWindow } from "./limits/rate-limiter.ts";
import { createSharedLimiter } from "./limits/shared-limiter.ts";

export interface Identity {
  readonly authenticator: IdentityAuthenticator;
  readonly credentials: Credentials;
  readonly login: ClientLogin;
  readonly signingKeys: SigningKeys;
  readonly issuers: Issuers;
  readonly rateLimiter: RateLimiter;
  readonly idempotency: Idempotency;
  readonly audit: AuditTrail;
  /** Stores what is still in memory. */
  close(): Promise<void>;
}

export interface IdentitySettings {
  readonly tier: Tier;
  readonly accessTokenTtlS: number;
  /** The configured issuer; null for the origin that is listened on. */
  readonly issuer: string | null;
  readonly auditRetentionDays: number | null;
}

export interface IdentityOptions {
  readonly storage: Storage;
  readonly seals: Seals;
  readonly root: string;
  /** The user's state folder, where the audit log's anchor lies. */
  readonly userState: string;
  readonly local: LocalCredentials;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Read at every use: magic.yaml may change. */
  readonly settings: () => IdentitySettings;
  readonly presence: Presence;
}

// With another key than the log's every entry would look altered.
function unprovable(mismatch: string): AuditTrail["verify"] {
  return async () => {
    throw new MagicError(
      "master_key_mismatch",
      `The audit log cannot be proven: its MACs are made with the key. ${mismatch}`,
    );
  };
}

/** The longest that a configured token may live: keys are kept as long after their rotation. */
const MAX_TTL_S = 86_400;

export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { storage, seals, clock, logger, settings } = options;
  const { units } = storage;
  const uses = createUses(clock, (used) => units.credential.touch({ used }));
  const [signingKeys, issuers, audit] = await Promise.all([
    openSigningKeys({
      store: {
        list: () => units.signingKey.list({}),
        add: (key, retireOthersAt, now) => units.signingKey.add({ key, retireOthersAt, now }),
      },
      sealer: seals.lasting("signing-keys"),
      clock,
      maxTokenTtlS: () => MAX_TTL_S,
    }),
    openIssuers(storage, () => settings().issuer),
    openAuditTrail({
      ...options,
      key: derive(seals.masterKey, "audit"),
      startOver: seals.forgets,
      retentionDays: () => settings().auditRetentionDays,
    }),
  ]);
  const tokens = accessTokens({ keys: signingKeys, clock, issuer: issuers.issuing, isIssuer: issuers.knows });
  const authenticator = createAuthenticator({
    local: options.local,
    units: units.credential,
    accessTokens: tokens,
    uses,
    clock,
  });
  // Only on Postgres can there be other daemons that count for the same account.
  const rateLimiter =
    storage.dialect === "postgres" ? createSharedLimiter(units.rateWindow.take) : ownLimiter(storage, clock, logger);
  const idempotency = createIdempotency({
    units: units.idempotency,
    sealer: seals.passing("idempotency"),
    clock,
    presence: options.presence,
  });
  return {
    authenticator,
    credentials: createCredentials({
      storage,
      clock,
      accountTier: () => settings().tier,
      onChange: authenticator.forget,
      flushUses: uses.flush,
    }),
    login: createClientLogin({
      units: units.credential,
      accessTokens: tokens,
      uses,
      clock,
      ttlS: () => settings().accessTokenTtlS,
    }),
    signingKeys,
    issuers,
    rateLimiter,
    idempotency,
    audit: seals.mismatch === null ? audit : { ...audit, verify: unprovable(seals.mismatch) },
    async close() {
      idempotency.close();
      await Promise.allSettled([uses.close(), rateLimiter.close(), audit.close()]);
    },
  };
}

function ownLimiter({ units: { rateWindow } }: Storage, clock: Clock, logger: Logger): RateLimiter {
  return createRateLimiter({
    clock,
    store: {
      async load(name) {
        const value = await rateWindow.load({ name });
        return value === undefined ? undefined : (JSON.parse(value) as StoredWindow);
      },
      save: (name, window) => rateWindow.save({ name, value: JSON.stringify(window) }),
    },
    onError: (error) => logger.error("rate_limit.store_failed", { error: String(error) }),
  });
}

function derive(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, "magic", `magic/${purpose}/mac`, 32));
}
