// The master key as its file has it, and which one sealed what a database keeps: its fingerprint stands in the database's `setting` table;
// the key cannot be had from it.
import { hkdfSync } from "node:crypto";

export const MASTER_KEY_BYTES = 32;

/** The key that a file's text holds; undefined where that is damaged. */
export function masterKeyOf(text: string): Buffer | undefined {
  const key = Buffer.from(text.trim(), "base64url");
  return key.length === MASTER_KEY_BYTES ? key : undefined;
}

/** The setting that holds the fingerprint. */
export const FINGERPRINT_SETTING = "secrets.master_key";

/** 16 hexadecimal digits: HKDF-SHA256 (RFC 5869) of the key, for this use alone. */
export function keyFingerprint(key: Buffer): string {
  return Buffer.from(hkdfSync("sha256", key, "magic", "magic/fingerprint", 8)).toString("hex");
}
