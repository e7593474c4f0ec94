// The error catalogue: every code that leaves the program, on the wire or on the terminal. The HTTP answers (problem+json,
// OpenAI's shape, RFC 6749), the exit codes and the docs page are made from it. Codes are stable: add, never rename.
// Each section stands in a file of errors/.
import { commandLineErrors } from "./errors/command-line.ts";
import { controllerErrors } from "./errors/controllers.ts";
import type { ErrorEntry } from "./errors/entry.ts";
import { gatewayErrors } from "./errors/gateway.ts";
import { identityErrors } from "./errors/identity.ts";
import { integrationErrors } from "./errors/integrations.ts";
import { requestErrors } from "./errors/requests.ts";
import { serviceErrors } from "./errors/service.ts";

export const errors = {
  ...requestErrors,
  ...identityErrors,
  ...gatewayErrors,
  ...controllerErrors,
  ...integrationErrors,
  ...serviceErrors,
  ...commandLineErrors,
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errors;

/** A code that another process told; `internal` where the catalogue does not have it. */
export function knownCode(code: string): ErrorCode {
  return Object.hasOwn(errors, code) ? (code as ErrorCode) : "internal";
}

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
  /** More headers of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

const brand = Symbol.for("magic.error");

/** The one error class that leaves a service: a code of the catalogue and a sentence for this case, by default its problems'. */
export class MagicError extends Error {
  readonly code: ErrorCode;
  readonly problems: readonly FieldProblem[];
  readonly retryAfterS: number | undefined;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly [brand] = true;

  constructor(code: ErrorCode, detail?: string, options: MagicErrorOptions = {}) {
    super(
      detail ?? sentenceOf(code, options.problems),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = "MagicError";
    this.code = code;
    this.problems = options.problems ?? [];
    this.retryAfterS = options.retryAfterS;
    this.extra = options.extra ?? {};
    this.headers = options.headers;
  }
}

/** The message of one that says nothing of its own: it is as good as its problems. */
export function sentenceOf(code: ErrorCode, problems: readonly FieldProblem[] = []): string {
  if (problems.length === 0) return errors[code].title;
  const list = problems.map(({ pointer, detail }) => `${pointer || "(the whole)"}: ${detail}`).join("; ");
  return list.slice(0, 2_000);
}

/** True for a MagicError of this or of another loaded copy of this module. */
export function isMagicError(error: unknown): error is MagicError {
  return typeof error === "object" && error !== null && brand in error;
}
