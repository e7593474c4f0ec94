// Requests that cannot be read or do not fit the state of what they are about.
import { caller, type ErrorEntry } from "./entry.ts";

export const requestErrors = {
  invalid_request: {
    ...caller,
    status: 400,
    exit: "invalid",
    title: "The request cannot be read",
    next: "Send a well-formed request; the detail says what is wrong.",
  },
  idempotency_key_invalid: {
    ...caller,
    status: 400,
    exit: "invalid",
    title: "The Idempotency-Key is not valid",
    next: "Use 1 to 255 printable ASCII characters without spaces.",
  },
  validation_failed: {
    ...caller,
    status: 422,
    exit: "invalid",
    title: "The request does not fit its schema",
    next: "Correct what the detail and the errors name.",
  },
  not_found: {
    ...caller,
    status: 404,
    exit: "not_found",
    title: "There is no such resource",
    next: "Check the id and the environment (`--live` on the command line): sandbox and live do not see each other's resources.",
  },
  method_not_allowed: {
    ...caller,
    status: 405,
    exit: "invalid",
    title: "The method is not allowed here",
    next: "Use a method that the Allow header lists.",
  },
  not_acceptable: {
    ...caller,
    status: 406,
    exit: "invalid",
    title: "No representation that the caller accepts",
    next: "Accept application/json.",
  },
  payload_too_large: {
    ...caller,
    status: 413,
    exit: "invalid",
    title: "The body is too large",
    next: "Send a smaller body; the detail names the limit.",
  },
  unsupported_media_type: {
    ...caller,
    status: 415,
    exit: "invalid",
    title: "The body's media type is not supported",
    next: "Send application/json without content encoding.",
  },
  // State
  conflict: {
    ...caller,
    status: 409,
    exit: "conflict_or_limit",
    title: "The resource's state does not allow it",
    next: "Change what the detail names, or read the resource again: it may have moved on.",
  },
  connection_missing: {
    ...caller,
    status: 409,
    exit: "conflict_or_limit",
    title: "The sync's connection was deleted",
    next: "Create a connection and a new sync.",
  },
  idempotency_in_progress: {
    ...caller,
    retryable: true,
    status: 409,
    exit: "conflict_or_limit",
    title: "A request with this Idempotency-Key is under way",
    next: "Send it again after it ended.",
  },
  idempotency_outcome_unknown: {
    ...caller,
    status: 409,
    exit: "conflict_or_limit",
    title: "The outcome of the first request with this key is unknown",
    next: "Find out whether it took effect, then use a new key.",
  },
  idempotency_key_reused: {
    ...caller,
    status: 422,
    exit: "invalid",
    title: "The Idempotency-Key was used for another request",
    next: "Use a new key for another body.",
  },
} as const satisfies Record<string, ErrorEntry>;
