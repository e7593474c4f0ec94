// Who calls: credentials, scopes, limits.
import { caller, type ErrorEntry, operator } from "./entry.ts";

export const identityErrors = {
  invalid_key: {
    ...caller,
    status: 401,
    exit: "auth",
    title: "The credential is not valid",
    next: "Send Authorization: Bearer with a key, token or JWT of this daemon.",
  },
  expired: {
    ...caller,
    status: 401,
    exit: "auth",
    title: "The credential has expired",
    next: "Roll the key or get a new token.",
  },
  insufficient_scope: {
    ...caller,
    status: 403,
    exit: "auth",
    title: "The credential lacks the scope",
    next: "Use a credential with the scope that the detail names.",
  },
  forbidden_origin: {
    ...caller,
    status: 403,
    exit: "auth",
    title: "The Host or Origin is not this daemon's",
    next: "Call the daemon by the address that it listens on, not through a web page.",
  },
  tls_required: {
    ...operator,
    status: 403,
    exit: "auth",
    title: "Credentials need TLS here",
    next: "Start the daemon with --tls, or let it listen on loopback.",
  },
  not_available_in_sandbox: {
    ...caller,
    status: 403,
    exit: "auth",
    title: "Not available in the sandbox",
    next: "Use a live credential; on the command line, `--live`.",
  },
  limit_reached: {
    ...caller,
    status: 403,
    exit: "conflict_or_limit",
    title: "The tier's limit is reached",
    next: "Remove something, or move to the tier that the detail names.",
  },
  rate_limited: {
    ...caller,
    retryable: true,
    status: 429,
    exit: "conflict_or_limit",
    title: "Too many requests",
    next: "Wait for Retry-After seconds.",
  },
} as const satisfies Record<string, ErrorEntry>;
