// What went wrong at an upstream, in one form for all providers. The pipeline decides by it whether to try again; the client
// gets it in OpenAI's form. Its message never holds a credential: adapters build it with `failure()`.
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { redactor } from "#shared/redact.ts";

export type FailureKind =
  | "rate_limit" // 429 that a later try may pass
  | "quota" // 429 insufficient_quota: money, not speed
  | "auth" // 401
  | "permission" // 403
  | "not_found" // 404
  | "invalid" // 400, 413, 422: the request itself
  | "overloaded" // 503, 529
  | "internal" // 500
  | "server" // other 5xx
  | "timeout" // headers or the next bytes did not come in time
  | "reset" // connect, TLS or socket failure
  | "truncated" // the answer ended before its end mark
  | "protocol" // an answer that is no answer: invalid JSON, 200 with an error, over a cap
  | "egress" // the egress guard refused the address
  | "aborted"; // our own caller left

export interface Failure {
  readonly kind: FailureKind;
  /** Status for the client: 400, 401, 403, 404, 413, 422, 429, 499, 502, 503 or 504. */
  readonly status: number;
  /** What the upstream answered; null when there was no answer. */
  readonly upstreamStatus: number | null;
  readonly message: string;
  /** OpenAI's `error.type`, `code`, `param`. */
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  /** The upstream's hint, in milliseconds from now. */
  readonly retryAfterMs: number | null;
}

/** Another try at the same candidate may pass: 429 (speed), 500, 503, 529, and what an error in a stream says in their place. */
export function retriesHere({ kind }: Failure): boolean {
  return kind === "rate_limit" || kind === "overloaded" || kind === "internal";
}

/** The next candidate may do better: 429 of both sorts, 5xx, time-out, reset and broken answers. */
export function fallsThrough(f: Failure): boolean {
  switch (f.kind) {
    case "rate_limit":
    case "quota":
    case "overloaded":
    case "internal":
    case "server":
    case "timeout":
    case "reset":
    case "truncated":
    case "protocol":
      return true;
    default:
      return false;
  }
}

/** Nobody has done anything: the provider says so and to come again, or it was not even asked. */
export function isUndone({ kind, upstreamStatus }: Failure): boolean {
  if (kind === "rate_limit" || kind === "quota" || kind === "overloaded") return true;
  return upstreamStatus === null && (kind === "invalid" || kind === "not_found" || kind === "egress");
}

const shapes: Record<FailureKind, { status: number; type: string; code: string | null }> = {
  rate_limit: { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" },
  quota: { status: 429, type: "insufficient_quota", code: "insufficient_quota" },
  auth: { status: 401, type: "authentication_error", code: "upstream_authentication" },
  permission: { status: 403, type: "permission_error", code: "upstream_permission" },
  not_found: { status: 404, type: "not_found_error", code: "model_not_found" },
  invalid: { status: 400, type: "invalid_request_error", code: null },
  overloaded: { status: 503, type: "server_error", code: "overloaded" },
  internal: { status: 502, type: "server_error", code: "upstream_error" },
  server: { status: 502, type: "server_error", code: "upstream_error" },
  timeout: { status: 504, type: "server_error", code: "upstream_timeout" },
  reset: { status: 502, type: "server_error", code: "upstream_error" },
  truncated: { status: 502, type: "server_error", code: "upstream_truncated" },
  protocol: { status: 502, type: "server_error", code: "upstream_error" },
  egress: { status: 403, type: "permission_error", code: "egress_blocked" },
  aborted: { status: 499, type: "server_error", code: "client_closed" },
};

/** Vendors but OpenAI say in words alone that a prompt does not fit; clients look for OpenAI's code and shorten it. */
const TOO_LONG =
  /(prompt|input|all messages) is too long|context (length|limit|window|size)|token count .*exceeds|input tokens exceed|tokens exceeds maximum length|maximum prompt length/i;

const LONGEST = 2000;
/** Of a code, or of the name of a parameter. */
const LONGEST_NAME = 200;
const LOOKED_AT = 16_000;

/** Builds a failure; `secrets` are cut out of what an upstream may say: the message, which is capped at 2,000 characters, the code and the parameter. */
export function failure(
  kind: FailureKind,
  message: string,
  more: Partial<Omit<Failure, "kind" | "message">> & { readonly secrets?: readonly string[] } = {},
): Failure {
  const { secrets, ...fields } = more;
  const clean = redactor(secrets);
  // Cut after it was cleaned: of a secret that is cut apart the beginning would stay.
  const cleaned = (said: string, longest: number) => clean(said.slice(0, LOOKED_AT)).slice(0, longest);
  const text = cleaned(message, LONGEST);
  const { param = null, code = shapes[kind].code } = fields;
  const made = {
    kind,
    message: text,
    upstreamStatus: null,
    retryAfterMs: null,
    ...shapes[kind],
    ...fields,
    param: param && cleaned(param, LONGEST_NAME),
    code: code && cleaned(code, LONGEST_NAME),
  };
  return kind === "invalid" && isVague(made.code) && TOO_LONG.test(text)
    ? { ...made, code: "context_length_exceeded" }
    : made;
}

function isVague(code: string | null): boolean {
  return code === null || code === "invalid_request_error" || /^\d+$/.test(code);
}

/** OpenAI's error body: `{"error": {message, type, param, code}}`. */
export function failureBody(f: Failure): string {
  return JSON.stringify({ error: { message: f.message, type: f.type, param: f.param, code: f.code } });
}

/** Thrown inside an adapter while it reads an answer; `attempt` turns it into an outcome. */
export class UpstreamError extends Error {
  readonly failure: Failure;
  /** What the provider says it charged all the same. */
  readonly usage: TokenUsage | null;
  constructor(f: Failure, usage: TokenUsage | null = null) {
    super(f.message);
    this.name = "UpstreamError";
    this.failure = f;
    this.usage = usage;
  }
}

/** A 200 that is no answer: `what` says what is wrong with it. */
export function noAnswer(what: string): UpstreamError {
  return new UpstreamError(failure("protocol", `The provider's answer ${what}.`, { upstreamStatus: 200 }));
}

/** A stream that cannot be read on. */
export function brokenStream(message: string): UpstreamError {
  return new UpstreamError(failure("protocol", message));
}

/** An answer that its model gave up, in the provider's word for it. */
export function givenUp(word: string, usage: TokenUsage | null): UpstreamError {
  return new UpstreamError(
    failure("server", `The provider ended its answer with ${word}.`, { upstreamStatus: 200 }),
    usage,
  );
}

/** An answer with fewer choices than its request asked for: whoever reads the second one finds none. Another candidate may give them. */
export function tooFewChoices(given: number, asked: number, usage: TokenUsage): UpstreamError {
  const message = `The model gave ${given} of the ${asked} choices that n asks for; ask for each by itself.`;
  const refused = { status: 400, type: "invalid_request_error", code: "unsupported_value", param: "n" };
  return new UpstreamError(failure("protocol", message, { ...refused, upstreamStatus: 200 }), usage);
}
