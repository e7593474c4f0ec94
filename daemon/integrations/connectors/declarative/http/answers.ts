// Answers that parents were given. Where several parents stand beside one another, one of them is read again for each record of the
// other: what the vendor said the first time holds for the whole run.
import { createHash } from "node:crypto";
import type { HttpResponse } from "./client.ts";

export interface Answers {
  of(question: string): HttpResponse | undefined;
  /** Keeps it as long as there is room. */
  keep(question: string, answer: HttpResponse): void;
}

const MAX_BYTES = 32 * 1024 * 1024;
/** Beside a body: its headers, its address, its entry. About. */
const OVERHEAD = 2048;

/** What comes first stays: a store that let go of the oldest would never hold what is read in circles through more than fits. */
export function createAnswers(maxBytes = MAX_BYTES): Answers {
  const kept = new Map<string, HttpResponse>();
  let left = maxBytes;
  // A POST's question is as long as its body.
  const keyOf = (question: string): string => createHash("sha256").update(question).digest("base64");
  return {
    of: (question) => kept.get(keyOf(question)),
    keep(question, answer) {
      const size = answer.body.length + OVERHEAD;
      const key = keyOf(question);
      if (size > left || kept.has(key)) return;
      left -= size;
      // A body may be a part of a far larger buffer.
      kept.set(key, { ...answer, body: Buffer.from(answer.body) });
    },
  };
}
