// The error catalogue: every code that leaves the program, on the wire or on the terminal. The HTTP answers (problem+json,
// OpenAI's shape, RFC 6749), the exit codes and the docs page are made from it. Codes are stable: add, never rename.
import type { ExitName } from "./exit-codes.ts";

export interface ErrorEntry {
  /** HTTP status where it is an answer; 0 for an error of the command line alone. */
  readonly status: number;
  readonly exit: ExitName;
  /** What it is, in a few words; the `title` of problem+json. */
  readonly title: string;
  /** Who must act for it to go away. */
  readonly actor: "caller" | "operator" | "magic" | "upstream";
  /** True where the same request, sent again later, may pass. */
  readonly retryable: boolean;
  /** What to do next, in one sentence. */
  readonly next: string;
}

const caller = { actor: "caller", retryable: false } as const;
const operator = { actor: "operator", retryable: false } as const;

export const errors = {
  // Requests
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
    next: "Correct every field listed under errors.",
  },
  not_found: {
    ...caller,
    status: 404,
    exit: "not_found",
    title: "There is no such resource",
    next: "Check the id and the environment: sandbox and live do not see each other's resources.",
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
  // Identity
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
    next: "Use a live credential.",
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
  // State
  conflict: {
    ...caller,
    status: 409,
    exit: "conflict_or_limit",
    title: "The resource's state does not allow it",
    next: "Read the resource again; the detail says which state it is in.",
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
  // Gateway
  model_not_found: {
    ...caller,
    status: 404,
    exit: "not_found",
    title: "There is no such model",
    next: "List the models with GET /v1/models or `magic model list`.",
  },
  model_not_allowed: {
    ...caller,
    status: 403,
    exit: "auth",
    title: "The model is not allowed",
    next: "Use an allowed model, or change the rule that the detail names.",
  },
  model_unpriced: {
    ...operator,
    status: 400,
    exit: "invalid",
    title: "The model has no price",
    next: "Add the line under gateway.prices that the detail shows, or set gateway.allow_unpriced.",
  },
  unsupported_parameter: {
    ...caller,
    status: 400,
    exit: "invalid",
    title: "The provider does not support the parameter",
    next: "Leave the parameter out, choose another model, or set drop_unsupported.",
  },
  insufficient_quota: {
    ...caller,
    status: 429,
    exit: "conflict_or_limit",
    title: "The budget is used up",
    next: "Raise the budget that the detail names.",
  },
  budget_exceeded: {
    ...caller,
    status: 429,
    exit: "conflict_or_limit",
    title: "The budget is used up",
    next: "Raise the budget that the detail names.",
  },
  provider_not_configured: {
    ...operator,
    status: 400,
    exit: "invalid",
    title: "The provider is not configured",
    next: "Add it under gateway.providers in magic.yaml.",
  },
  // Controllers
  controller_not_found: {
    ...caller,
    status: 404,
    exit: "not_found",
    title: "There is no such controller",
    next: "Deploy it with `magic deploy`, or check the name.",
  },
  contract_invalid: {
    ...caller,
    status: 422,
    exit: "invalid",
    title: "The contract is not valid",
    next: "Run `magic validate` and correct every problem.",
  },
  build_failed: {
    ...caller,
    status: 422,
    exit: "invalid",
    title: "The controller does not build",
    next: "Correct the error at the file and line shown.",
  },
  input_invalid: {
    ...caller,
    status: 422,
    exit: "invalid",
    title: "The input does not fit the contract's input_schema",
    next: "Correct every field listed under errors.",
  },
  output_invalid: {
    ...operator,
    status: 502,
    exit: "upstream",
    title: "The output does not fit the contract's output_schema",
    next: "Correct the handler, or the output_schema.",
  },
  capability_denied: {
    ...operator,
    status: 403,
    exit: "auth",
    title: "The contract does not declare it",
    next: "Add the line that the detail shows to the contract.",
  },
  egress_blocked: {
    ...operator,
    status: 403,
    exit: "auth",
    title: "The address must not be reached",
    next: "Declare the host; a private address also needs egress.allow_private.",
  },
  timeout: {
    ...operator,
    retryable: true,
    status: 504,
    exit: "upstream",
    title: "The handler passed its deadline",
    next: "Make it faster, or raise limits.timeout_ms.",
  },
  memory_exceeded: {
    ...operator,
    status: 507,
    exit: "upstream",
    title: "The handler passed its memory limit",
    next: "Use less, or raise limits.memory_mb.",
  },
  limit_exceeded: {
    ...operator,
    status: 507,
    exit: "upstream",
    title: "The handler passed one of its limits",
    next: "Stay under the limit that the detail names.",
  },
  handler_error: {
    ...operator,
    status: 500,
    exit: "upstream",
    title: "The handler threw",
    next: "Read the stack in `magic logs --request`.",
  },
  overloaded: {
    actor: "operator",
    retryable: true,
    status: 503,
    exit: "upstream",
    title: "The controller has no capacity left",
    next: "Send it again later, or raise limits.concurrency.",
  },
  sandbox_unavailable: {
    ...operator,
    status: 503,
    exit: "upstream",
    title: "This machine cannot lock a cell down",
    next: "Run `magic doctor`; --allow-weak-sandbox runs controllers without the lockdown.",
  },
  incompatible_version: {
    ...caller,
    status: 409,
    exit: "conflict_or_limit",
    title: "A breaking change without a major version",
    next: "Raise the major version, or undo the change at the path shown.",
  },
  // Syncs
  credentials_rejected: {
    ...operator,
    status: 502,
    exit: "auth",
    title: "The other system refused the credentials",
    next: "Correct the user, the password or the key, and try again.",
  },
  permission_denied: {
    ...operator,
    status: 502,
    exit: "auth",
    title: "The other system does not allow it",
    next: "Grant the role what the detail names.",
  },
  object_not_found: {
    ...caller,
    status: 404,
    exit: "not_found",
    title: "The other system has no such object",
    next: "Check the name's spelling and case; discovery lists what there is.",
  },
  unreachable: {
    actor: "upstream",
    retryable: true,
    status: 502,
    exit: "upstream",
    title: "The other system cannot be reached",
    next: "Check host, port and network, and that the system is up.",
  },
  connection_lost: {
    actor: "upstream",
    retryable: true,
    status: 502,
    exit: "upstream",
    title: "The connection to the other system was lost",
    next: "Run it again: it goes on where it was.",
  },
  destination_refused: {
    ...operator,
    status: 502,
    exit: "upstream",
    title: "The destination refused to be written",
    next: "Make the destination writable, or free its disk; nothing was changed.",
  },
  source_failed: {
    ...operator,
    status: 502,
    exit: "upstream",
    title: "The source failed",
    next: "Correct what the detail names and run it again.",
  },
  schema_drift: {
    ...operator,
    status: 409,
    exit: "conflict_or_limit",
    title: "The source's schema changed in a way that cannot be followed",
    next: "Bring the destination's column in line, or refresh into a new table.",
  },
  bad_record: {
    ...operator,
    status: 422,
    exit: "upstream",
    title: "A record cannot be written as it is",
    next: "Correct the record, or set on_bad_record to quarantine.",
  },
  run_stalled: {
    actor: "upstream",
    retryable: true,
    status: 504,
    exit: "upstream",
    title: "The run made no progress",
    next: "Free what it waits for, or raise the stall time-out.",
  },
  proof_failed: {
    actor: "magic",
    retryable: true,
    status: 500,
    exit: "upstream",
    title: "Source and destination differ after the run",
    next: "Nothing was committed. Run it again; report it when it stays.",
  },
  worker_lost: {
    actor: "magic",
    retryable: true,
    status: 500,
    exit: "upstream",
    title: "The run's process ended",
    next: "Run it again: it goes on where it was.",
  },
  sync_running: {
    ...caller,
    retryable: true,
    status: 409,
    exit: "conflict_or_limit",
    title: "Another run of this sync is under way",
    next: "Wait for it to end, or cancel it.",
  },
  not_supported: {
    ...caller,
    status: 422,
    exit: "invalid",
    title: "This is not supported",
    next: "Choose what the detail names instead.",
  },
  driver_missing: {
    ...operator,
    status: 500,
    exit: "internal",
    title: "A driver is not installed",
    next: "Install the package that the detail names.",
  },
  // Upstream and service
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
  internal: {
    actor: "magic",
    retryable: false,
    status: 500,
    exit: "internal",
    title: "An error of magic's own",
    next: "Report it with the request id.",
  },
  // The command line and the daemon's start
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

export type ErrorCode = keyof typeof errors;

/** One wrong place in a document: a JSON pointer into it, a stable code, and what is wrong. */
export interface FieldProblem {
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

export interface MagicErrorOptions extends ErrorOptions {
  readonly problems?: readonly FieldProblem[];
  readonly retryAfterS?: number;
  /** More members for the JSON answer; never a secret. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

const brand = Symbol.for("magic.error");

/** The one error class that leaves a service: a code of the catalogue and a sentence for this case. */
export class MagicError extends Error {
  readonly code: ErrorCode;
  readonly problems: readonly FieldProblem[];
  readonly retryAfterS: number | undefined;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly [brand] = true;

  constructor(code: ErrorCode, detail?: string, options: MagicErrorOptions = {}) {
    super(detail ?? errors[code].title, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "MagicError";
    this.code = code;
    this.problems = options.problems ?? [];
    this.retryAfterS = options.retryAfterS;
    this.extra = options.extra ?? {};
  }
}

/** True for a MagicError of this or of another loaded copy of this module. */
export function isMagicError(error: unknown): error is MagicError {
  return typeof error === "object" && error !== null && brand in error;
}
