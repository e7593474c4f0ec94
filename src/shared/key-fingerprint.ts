// Which master key sealed what a database keeps. The fingerprint stands in the database's `setting` table; the key cannot be had from it.
import { hkdfSync } from "node:crypto";

/** The setting that holds the fingerprint. */
export const FINGERPRINT_SETTING = "secrets.master_key";

/** 16 hexadecimal digits: HKDF-SHA256 (RFC 5869) of the key, for this use alone. */
export function keyFingerprint(key: Buffer): string {
  return Buffer.from(hkdfSync("sha256", key, "magic", "magic/fingerprint", 8)).toString("hex");
}
