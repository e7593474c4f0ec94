// Idempotency-Key: what a key means, and what the stored state of one says to do. The storage unit decides atomically; the
// surfaces act on its answer: the core refuses a duplicate that is under way, the gateway joins it.
import { hash } from "node:crypto";
import { canonicalJson } from "#contract/canonical-json.ts";
import { MagicError } from "#contract/errors.ts";
import { DAY_MS } from "#shared/clock.ts";

/** 24 hours: how long an answer is kept for its key. */
export const KEEP_MS = DAY_MS;

/** The answer of the first request with a key, as replays repeat it. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The key of the header, checked; undefined without one. Throws `idempotency_key_invalid`. */
export function idempotencyKeyOf(header: string | readonly string[] | undefined): string | undefined {
  return header === undefined ? undefined : checkedKey(header);
}

/** Throws `idempotency_key_invalid`. */
export function checkedKey(key: string | readonly string[]): string {
  if (typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new MagicError(
    "idempotency_key_invalid",
    "An Idempotency-Key is 1 to 255 printable ASCII characters, no spaces.",
  );
}

/** Method, path and body in one digest; the order of a JSON object's members makes no difference to a parsed body. */
export function fingerprintOf(method: string, path: string, body: unknown): string {
  return hash("sha256", `${method} ${path}\n${body === undefined ? "" : canonicalJson(body)}`, "base64url");
}

/** The error for every state that is neither `reserved` nor `done`. */
export function refusalOf(state: "in_progress" | "unknown" | "reused"): MagicError {
  if (state === "in_progress")
    return new MagicError("idempotency_in_progress", "A request with this Idempotency-Key is under way.", {
      retryAfterS: 1,
    });
  if (state === "reused")
    return new MagicError("idempotency_key_reused", "This Idempotency-Key was used with another method, path or body.");
  return new MagicError(
    "idempotency_outcome_unknown",
    "The daemon stopped while the first request with this Idempotency-Key was under way.",
  );
}
