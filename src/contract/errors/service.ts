// Systems behind, and the daemon itself.
import { caller, type ErrorEntry, operator } from "./entry.ts";

export const serviceErrors = {
  upstream_error: {
    actor: "upstream",
    retryable: true,
    status: 502,
    exit: "upstream",
    title: "The system behind failed",
    next: "Send it again later; the detail has its answer.",
  },
  upstream_timeout: {
    actor: "upstream",
    retryable: true,
    status: 504,
    exit: "upstream",
    title: "The system behind did not answer in time",
    next: "Send it again later, or raise the time-out.",
  },
  client_closed: {
    ...caller,
    status: 499,
    exit: "interrupted",
    title: "The caller left",
    next: "Nothing: this is only logged.",
  },
  draining: {
    actor: "operator",
    retryable: true,
    status: 503,
    exit: "daemon_unavailable",
    title: "The daemon is stopping",
    next: "Send it again in a few seconds.",
  },
  storage_full: {
    ...operator,
    retryable: true,
    status: 507,
    exit: "internal",
    title: "The disk is full",
    next: "Free space where the state folder is.",
  },
  storage_unavailable: {
    ...operator,
    retryable: true,
    status: 503,
    exit: "daemon_unavailable",
    title: "The database that holds the state does not answer",
    next: "See that the database runs and that nothing else holds it, then send it again.",
  },
  master_key_mismatch: {
    ...operator,
    status: 503,
    exit: "internal",
    title: "Another master key sealed what the database keeps",
    next: "Put that key back at the path that the detail names and restart the daemon; or give up what it sealed with `magic daemon restart --forget-sealed`.",
  },
  sealed_unreadable: {
    ...operator,
    status: 500,
    exit: "internal",
    title: "A sealed value does not open",
    next: "Enter again what the detail names: it was changed in the database, or sealed with a master key that is gone.",
  },
  internal: {
    actor: "magic",
    retryable: false,
    status: 500,
    exit: "internal",
    title: "An error of magic's own",
    next: "Report it with the request id.",
  },
} as const satisfies Record<string, ErrorEntry>;
