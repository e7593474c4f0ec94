// What the catalogue says of a code, and who must act for the error to go away.
import type { ExitName } from "../exit-codes.ts";

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

export const caller = { actor: "caller", retryable: false } as const;
export const operator = { actor: "operator", retryable: false } as const;
