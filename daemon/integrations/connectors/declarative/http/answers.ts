// Answers that parents were given. Where several parents stand beside one another, one of them is read again for each record of the
// other: what the vendor said the first time holds for the whole run.
import { createHash } from "node:crypto";
import type { HttpResponse } from "./client.ts";

/** What is asked, in short: a POST's question is as long as its body. */
export function questionOf(...asked: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(asked)).digest("base64");
}

export interface Answers {
  /** `question`: of `questionOf`. */
  of(question: string): HttpResponse | undefined;
  /** Keeps it as long as there is room. */
  keep(question: string, answer: HttpResponse): void;
}

const MAX_BYTES = 32 * 1024 * 1024;
/** Beside a body: its headers, its address, its entry. About. */
const OVERHEAD = 2048;

/** What comes first stays: a store that let go of the oldest would never hold what is read in circles through more than fits. */
export function createAnswers(): Answers {
  const kept = new Map<string, HttpResponse>();
  let left = MAX_BYTES;
  return {
    of: (question) => kept.get(question),
    keep(question, answer) {
      const size = answer.body.length + OVERHEAD;
      if (size > left || kept.has(question)) return;
      left -= size;
      // A body may be a part of a far larger buffer.
      kept.set(question, { ...answer, body: Buffer.from(answer.body) });
    },
  };
}
