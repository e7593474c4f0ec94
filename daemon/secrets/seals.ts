// The sealers of one daemon, all from one master key, once it is sure that this key is the one that sealed what the database keeps. With
// another key (lost and made anew, another MAGIC_HOME, a replica that was not given it) the daemon runs, and refuses what it cannot open.
import { MagicError } from "#contract/errors.ts";
import type { Agreement, SealedSample } from "#daemon/storage/repositories/sealed.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { FINGERPRINT_SETTING, keyFingerprint } from "#shared/master-key.ts";
import { masterKeyFile } from "#shared/paths.ts";
import { openMasterKey } from "./master-key.ts";
import { connectionPlace, webhookPlace } from "./places.ts";
import { createSealer, type Sealer } from "./sealer.ts";

export interface Seals {
  readonly masterKey: Buffer;
  /** What is wrong with the key, for people; null where it is the right one. */
  readonly mismatch: string | null;
  /** What another key made is given up: as the user wants, or because that key has sealed nothing. */
  readonly forgets: boolean;
  /**
   * For what is kept until somebody removes it. With a wrong key it neither opens nor seals: `master_key_mismatch`, so that the right
   * key opens everything once it is back.
   */
  lasting(purpose: string): Sealer;
  /** For what is forgotten within hours: with a wrong key it seals, and opens what that key sealed. */
  passing(purpose: string): Sealer;
}

export interface SealsOptions {
  readonly storage: Storage;
  /** The user's state folder, where the master key lies or is made. */
  readonly home: string;
  /** True: what another key sealed is given up, and this key counts from now on. */
  readonly forget: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws MagicError `state_unusable` when the master key cannot be read. */
export async function openSeals({ storage, home, forget, clock, logger }: SealsOptions): Promise<Seals> {
  const masterKey = openMasterKey(home);
  const agreement = await storage.units.sealed.agree({
    fingerprint: keyFingerprint(masterKey),
    alone: storage.dialect === "sqlite",
  });
  let mismatch = await mismatchOf(storage, masterKey, masterKeyFile(home), agreement);
  if (mismatch !== null && forget) {
    const now = rfc3339(clock.now());
    const forgotten = await storage.units.sealed.forget({ fingerprint: keyFingerprint(masterKey), now });
    logger.warn("master_key.forgotten", { detail: mismatch, ...forgotten });
    mismatch = null;
  }
  if (mismatch !== null) logger.error("master_key.mismatch", { detail: mismatch });
  const wrap = (own: Sealer, lasts: boolean): Sealer =>
    mismatch === null ? own : refusing(own, lasts, () => new MagicError("master_key_mismatch", mismatch));
  return {
    masterKey,
    mismatch,
    forgets: forget || agreement.replaces === true,
    lasting: (purpose) => wrap(createSealer(masterKey, purpose), true),
    passing: (purpose) => wrap(createSealer(masterKey, purpose), false),
  };
}

function refusing(own: Sealer, lasts: boolean, refusal: () => MagicError): Sealer {
  return {
    ...own,
    seal(plaintext, place) {
      if (lasts) throw refusal();
      return own.seal(plaintext, place);
    },
    open(sealed, place) {
      try {
        return own.open(sealed, place);
      } catch {
        throw refusal();
      }
    },
  };
}

async function mismatchOf(
  storage: Storage,
  masterKey: Buffer,
  file: string,
  { fingerprint, sample }: Agreement,
): Promise<string | null> {
  const own = keyFingerprint(masterKey);
  if (fingerprint === own) return null;
  if (fingerprint === null && sample !== null && opens(masterKey, sample)) {
    await storage.units.setting.putIfAbsent({ key: FINGERPRINT_SETTING, value: own });
    return null;
  }
  const other = fingerprint === null ? "another master key" : `the master key ${fingerprint}`;
  return `The credentials of connections and the secrets of webhooks in this database were sealed with ${other}; ${file} holds ${own}.`;
}

function opens(masterKey: Buffer, { of, sealed, ...owner }: SealedSample): boolean {
  const place = of === "connection" ? connectionPlace(owner) : webhookPlace(owner);
  try {
    createSealer(masterKey, `${of}s`).open(sealed, place);
    return true;
  } catch {
    return false;
  }
}
