// Standard Webhooks signatures: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
import { createHmac, randomBytes } from "node:crypto";
import { MagicError } from "#contract/errors.ts";

const prefix = "whsec_";

export interface SigningSecret {
  readonly secret: string;
  /** Milliseconds since the epoch; null: until it is rolled. */
  readonly expires_at: number | null;
}

export function newSecret(): string {
  return prefix + randomBytes(32).toString("base64");
}

/**
 * The headers of one attempt. Every secret that is still good signs, so that a receiver may know either.
 *
 * @throws MagicError `conflict` where there is none.
 */
export function signedHeaders(
  id: string,
  timestampMs: number,
  body: string,
  secrets: readonly SigningSecret[],
): Record<string, string> {
  const timestamp = String(Math.floor(timestampMs / 1000));
  const signatures = secrets
    .filter(({ expires_at }) => expires_at === null || expires_at > timestampMs)
    .map(({ secret }) => sign(id, timestamp, body, secret));
  if (signatures.length === 0)
    throw new MagicError(
      "conflict",
      "The webhook has no signing secret any more: roll it, and tell its receiver the new one.",
    );
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

/** `v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`. */
export function sign(id: string, timestamp: string, body: string, secret: string): string {
  const key = Buffer.from(secret.slice(prefix.length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}
