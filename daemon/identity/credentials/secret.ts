// The text of a credential: what it looks like, how it is made, how it is looked up and compared. What is stored is its digest.
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Environment } from "#contract/protocol.ts";
import { sortable } from "#shared/ids.ts";

/** key: API key. client: client credentials for `/v1/auth/token`. token: gateway token. */
const credentialKinds = ["key", "client", "token"] as const;
export type CredentialKind = (typeof credentialKinds)[number];

const prefixes: Readonly<Record<CredentialKind, string>> = { key: "sk", client: "cs", token: "gt" };
const names: Readonly<Record<Environment, string>> = { sandbox: "test", live: "live" };
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

export interface NewSecret {
  /** The public id, `sec_...`; its last 26 characters stand in the text, which makes the look-up one read by primary key. */
  readonly id: string;
  /** What the caller keeps. Shown once, stored nowhere. */
  readonly text: string;
  readonly digest: string;
}

/** A new secret: `sk_live_<public id, 26>_<256 random bits in base32, 52>`. Letters and digits alone, so a double click takes it whole. */
export function makeSecret(kind: CredentialKind, environment: Environment): NewSecret {
  const publicId = sortable();
  const bits = randomBytes(52);
  let random = "";
  for (const byte of bits) random += alphabet[byte & 31];
  const text = `${prefixes[kind]}_${names[environment]}_${publicId}_${random}`;
  return { id: `sec_${publicId}`, text, digest: digestOf(text) };
}

export interface ParsedSecret {
  readonly kind: CredentialKind;
  readonly environment: Environment;
  readonly secretId: string;
}

const form = /^(sk|cs|gt)_(test|live)_([0-9a-z]{26})_[0-9a-z]{52}$/;

/** What a credential's text says about itself; undefined for what cannot be one. Nothing of it is proven yet. */
export function parseSecret(text: string): ParsedSecret | undefined {
  const [, prefix, environment, publicId] = form.exec(text) ?? [];
  const kind = credentialKinds.find((one) => prefixes[one] === prefix);
  if (!kind || !publicId) return undefined;
  return { kind, environment: environment === "live" ? "live" : "sandbox", secretId: `sec_${publicId}` };
}

/** SHA-256 of the whole text, base64url. A fast hash is right for 256 random bits: there is nothing to guess. */
export function digestOf(text: string): string {
  return hash("sha256", text, "base64url");
}

/** True when the digests are equal; takes the same time wherever they differ. */
export function sameDigest(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Milliseconds since the epoch of an end; Infinity without one. */
export function timeOf(end: string | null): number {
  return end === null ? Number.POSITIVE_INFINITY : Date.parse(end);
}
