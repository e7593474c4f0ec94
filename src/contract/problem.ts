// A problem in a file that a person writes (contract.yaml, magic.yaml): where, what, and how to put it right.
import { MagicError } from "./errors.ts";

export interface Problem {
  /** As it was given: a path for people, relative where it was. */
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 units. */
  readonly column: number;
  /** JSON pointer (RFC 6901) to the value, or to the missing or unknown key. */
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
  /** What to write instead, in one sentence. */
  readonly fix: string;
  /** The offending value, where there is one and it is short. */
  readonly value?: unknown;
}

/** `contract.yaml:3:9  message (fix)`: one line for people. */
export function problemLine(problem: Problem): string {
  return `${problem.file}:${problem.line}:${problem.column}  ${problem.message} ${problem.fix}`;
}

/** By place in the file, one of each. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>();
  return problems
    .filter((problem) => {
      const key = JSON.stringify([problem.file, problem.pointer, problem.code, problem.message]);
      return !seen.has(key) && seen.add(key);
    })
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line || a.column - b.column));
}

/** The error of a configuration that cannot be used; its detail has one line a problem. */
export function configInvalid(found: readonly Problem[]): MagicError {
  return new MagicError("config_invalid", found.map(problemLine).join("\n"), {
    problems: found.map(({ pointer, code, message }) => ({ pointer, code, detail: message })),
    extra: { problems: found },
  });
}
