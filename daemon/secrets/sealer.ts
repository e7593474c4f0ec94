// Encryption at rest: AES-256-GCM, a key per purpose (HKDF-SHA256 of the master key), bound to the place where it is stored.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { MagicError } from "#contract/errors.ts";

/** Where a sealed value stands: moved to another row or field, it does not open. */
export interface Place {
  readonly tenant: string;
  readonly row: string;
  readonly field: string;
}

export interface Sealer {
  /** `v1.` and base64url of nonce, ciphertext and tag; another text each time. */
  seal(plaintext: string, place: Place): string;
  /** @throws MagicError `sealed_unreadable` when it was changed, moved, or sealed with another master key. */
  open(sealed: string, place: Place): string;
  /** A keyed digest (hex, 256 bits): to recognise a value without keeping it. */
  digest(value: string): string;
}

/** Purposes in use: `connections`, `webhooks`, `oauth`, `idempotency`, `threads`... one word for each kind of secret. */
export function createSealer(masterKey: Buffer, purpose: string): Sealer {
  const derive = (use: string): Buffer =>
    Buffer.from(hkdfSync("sha256", masterKey, "magic", `magic/${purpose}/${use}`, 32));
  const key = derive("seal");
  const digestKey = derive("digest");
  return {
    seal(plaintext, place) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(associated(place));
      const sealed = Buffer.concat([nonce, cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `v1.${sealed.toString("base64url")}`;
    },
    open(sealed, place) {
      const bytes = Buffer.from(sealed.slice(3), "base64url");
      // Several texts decode to the same bytes (unused bits, padding, foreign characters): only the one that was made is taken.
      if (sealed !== `v1.${bytes.toString("base64url")}` || bytes.length < 28) throw unreadable(place);
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12), { authTagLength: 16 });
        decipher.setAAD(associated(place)).setAuthTag(bytes.subarray(-16));
        return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString("utf8");
      } catch (error) {
        throw unreadable(place, error);
      }
    },
    digest: (value) => createHmac("sha256", digestKey).update(value).digest("hex"),
  };
}

// JSON keeps the three apart whatever they hold.
function associated({ tenant, row, field }: Place): Buffer {
  return Buffer.from(JSON.stringify([tenant, row, field]));
}

function unreadable({ row, field }: Place, cause?: unknown): MagicError {
  const detail = `the secret ${field} of ${row} does not open: another master key sealed it, or it was changed`;
  return new MagicError("sealed_unreadable", detail, { cause });
}
