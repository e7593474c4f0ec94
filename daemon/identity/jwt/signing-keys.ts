// The keys that access tokens are signed with: made, rotated, published. Ed25519; the private half is stored sealed.
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import { isMagicError } from "#contract/errors.ts";
import type { Sealer } from "#daemon/secrets/sealer.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";

export interface StoredSigningKey {
  readonly kid: string;
  readonly created_at: string;
  /** Until when tokens that it signed may still be valid; null while it signs. */
  readonly retires_at: string | null;
  readonly public_jwk: string;
  /** The private JWK, sealed. */
  readonly private_sealed: string;
}

export interface SigningKeyStore {
  /** Newest first. */
  list(): Promise<readonly StoredSigningKey[]>;
  /** Stores a new key, and the time at which those before it retire; removes what had retired before `now`. */
  add(key: StoredSigningKey, retireOthersAt: string, now: string): Promise<void>;
}

export interface SigningKeys {
  /** Reads what other daemons over the same database have made: a key that one of them replaced must sign no more, and theirs be published. */
  renew(): Promise<void>;
  /** The key that signs now. @throws MagicError `master_key_mismatch` where none opens and none may be made. */
  current(): { readonly kid: string; readonly key: CryptoKey };
  /** A key to verify with, retired ones too until their tokens have expired; undefined for an unknown one. */
  verifier(kid: string): Promise<CryptoKey | undefined>;
  /** The public keys (RFC 7517), newest first. */
  jwks(): { readonly keys: readonly JWK[] };
  /** Makes a new key; tokens signed before stay valid until they expire. */
  rotate(): Promise<void>;
}

export interface SigningKeyOptions {
  readonly store: SigningKeyStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Seconds that a token may live at most: how long a key outlives its replacement. */
  readonly maxTokenTtlS: () => number;
}

const ALG = "EdDSA";
/** When it is older, opening makes a new key. */
const MAX_AGE_MS = 30 * 24 * 3_600_000;
const RELOAD_MS = 1_000;

interface Loaded {
  readonly kid: string;
  readonly jwk: JWK;
  readonly verify: CryptoKey;
  readonly sign: CryptoKey | undefined;
  readonly createdAt: number;
  readonly retiresAt: number | null;
}

export async function openSigningKeys(options: SigningKeyOptions): Promise<SigningKeys> {
  const { store, sealer, clock } = options;
  let keys = new Map<string, Loaded>();
  let signing: { kid: string; key: CryptoKey; createdAt: number } | undefined;
  let loadedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;

  // Where a private half does not open (the master key was replaced) the key still verifies, but signs no more.
  async function load(): Promise<void> {
    const fresh = new Map<string, Loaded>();
    let signer: typeof signing;
    for (const row of await store.list()) {
      const known = keys.get(row.kid) ?? (await importKey(row, sealer));
      const retiresAt = row.retires_at === null ? null : Date.parse(row.retires_at);
      fresh.set(row.kid, { ...known, retiresAt });
      if (known.sign && retiresAt === null && !signer)
        signer = { kid: row.kid, key: known.sign, createdAt: known.createdAt };
    }
    // At once: tokens are signed while this reads.
    signing = signer;
    keys = fresh;
    loadedAt = clock.monotonic();
  }

  async function rotate(): Promise<void> {
    const pair = await generateKeyPair(ALG, { crv: "Ed25519", extractable: true });
    const publicJwk = await exportJWK(pair.publicKey);
    const kid = await calculateJwkThumbprint(publicJwk);
    const now = clock.now();
    await store.add(
      {
        kid,
        created_at: rfc3339(now),
        retires_at: null,
        public_jwk: JSON.stringify({ ...publicJwk, kid, alg: ALG, use: "sig" }),
        private_sealed: sealer.seal(JSON.stringify(await exportJWK(pair.privateKey)), place(kid)),
      },
      rfc3339(now + (options.maxTokenTtlS() + 60) * 1_000),
      rfc3339(now),
    );
    await load();
  }

  // Once a second at most: anyone can ask, and send unknown key ids.
  async function renew(): Promise<void> {
    if (clock.monotonic() - loadedAt <= RELOAD_MS) return;
    loading ??= load().finally(() => {
      loading = undefined;
    });
    await loading;
  }

  await load();
  let refused: unknown;
  if (!signing || clock.now() - signing.createdAt > MAX_AGE_MS)
    await rotate().catch((error: unknown) => {
      if (!isMagicError(error) || error.code !== "master_key_mismatch") throw error;
      refused = error;
    });

  return {
    renew,
    current() {
      if (!signing) throw refused ?? new Error("there is no signing key");
      return signing;
    },
    async verifier(kid) {
      if (!keys.has(kid)) await renew();
      const found = keys.get(kid);
      if (!found || (found.retiresAt !== null && found.retiresAt <= clock.now())) return undefined;
      return found.verify;
    },
    jwks: () => ({
      keys: [...keys.values()]
        .filter(({ retiresAt }) => retiresAt === null || retiresAt > clock.now())
        .map(({ jwk }) => jwk),
    }),
    rotate,
  };
}

async function importKey(row: StoredSigningKey, sealer: Sealer): Promise<Loaded> {
  const jwk = JSON.parse(row.public_jwk) as JWK;
  let sign: CryptoKey | undefined;
  try {
    sign = (await importJWK(JSON.parse(sealer.open(row.private_sealed, place(row.kid))) as JWK, ALG)) as CryptoKey;
  } catch {
    sign = undefined;
  }
  const verify = (await importJWK(jwk, ALG)) as CryptoKey;
  return { kid: row.kid, jwk, verify, sign, createdAt: Date.parse(row.created_at), retiresAt: null };
}

function place(kid: string) {
  return { tenant: "account", row: kid, field: "private" };
}
