// Verifies Standard Webhooks signatures: the receiver's side, for `magic webhook listen` and the TypeScript SDK.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
import { createHmac, timingSafeEqual } from "node:crypto";

/** Seconds that a message may be old, or ahead of this clock. */
const TOLERANCE_S = 300;

export interface SignedMessage {
  /** The body exactly as it came. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Why the message is not to be trusted; undefined when it is. `now` in milliseconds. */
export function signatureProblem({ body, headers }: SignedMessage, secret: string, now: number): string | undefined {
  const header = (name: string): string => {
    const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
    return typeof found === "string" ? found : "";
  };
  const [id, timestamp, signatures] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  if (id === "" || timestamp === "" || signatures === "") return "a webhook- header is missing";
  if (!/^\d{1,12}$/.test(timestamp)) return "the timestamp is no number";
  const age = now / 1000 - Number(timestamp);
  if (age > TOLERANCE_S) return "the message is too old";
  if (age < -TOLERANCE_S) return "the message is from the future";
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  // Anybody can sign with nothing.
  if (key.length === 0) return "there is no secret to verify it by";
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest();
  for (const one of signatures.split(" ")) {
    const [version, signature = ""] = one.split(",", 2);
    const bytes = Buffer.from(signature, "base64");
    if (version === "v1" && bytes.length === expected.length && timingSafeEqual(bytes, expected)) return undefined;
  }
  return "no signature fits";
}
