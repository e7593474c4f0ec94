// The command line and the daemon's start; most never go over the wire.
import { caller, type ErrorEntry, operator } from "./entry.ts";

export const commandLineErrors = {
  usage: {
    ...caller,
    status: 0,
    exit: "usage",
    title: "The command line is not valid",
    next: "See `magic <command> --help`.",
  },
  daemon_unavailable: {
    ...operator,
    retryable: true,
    status: 0,
    exit: "daemon_unavailable",
    title: "The daemon cannot be reached",
    next: "Run `magic daemon start`, or `magic doctor`.",
  },
  daemon_owned: {
    ...operator,
    status: 0,
    exit: "conflict_or_limit",
    title: "Another daemon owns this root",
    next: "Use it, or stop it with `magic daemon stop`.",
  },
  port_taken: {
    ...operator,
    status: 0,
    exit: "conflict_or_limit",
    title: "The port is taken",
    next: "Choose another port, or stop its holder.",
  },
  state_unusable: {
    ...operator,
    status: 0,
    exit: "internal",
    title: "The state folder cannot be used",
    next: "Correct its permissions or free its disk; nothing was changed.",
  },
  database_corrupt: {
    ...operator,
    status: 0,
    exit: "internal",
    title: "The database is damaged",
    next: "Restore it from a copy; the file was left as it is.",
  },
  protocol_mismatch: {
    ...operator,
    status: 0,
    exit: "daemon_unavailable",
    title: "The daemon speaks another protocol version",
    next: "Run `magic daemon restart`.",
  },
  config_invalid: {
    ...operator,
    status: 0,
    exit: "invalid",
    title: "magic.yaml is not valid",
    next: "Correct every problem listed.",
  },
  exists: {
    ...caller,
    status: 0,
    exit: "conflict_or_limit",
    title: "It exists already",
    next: "Choose another name, or pass --force.",
  },
  interrupted: { ...caller, status: 0, exit: "interrupted", title: "Interrupted", next: "Nothing." },
} as const satisfies Record<string, ErrorEntry>;
