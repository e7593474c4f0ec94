// What OpenAI's format has no place for and a provider wants back with a tool call: Gemini's thought signatures, Claude's thinking. By the
// call's id, for clients that send back only id, type and function; each caller has a memory of its own.

export interface ThoughtMemory {
  keep(caller: string, id: string, thought: string): void;
  recall(caller: string, id: string): string | undefined;
  /** Brings what is kept elsewhere within reach of `recall`. Never rejects: what cannot be read is forgotten. */
  load?(caller: string, ids: readonly string[]): Promise<void>;
}

const MAX_ENTRIES = 10_000;
/** Characters. */
const MAX_SIZE = 32 * 1024 * 1024;

/** Keeps the newest, by number and by size. */
export function thoughtMemory(): ThoughtMemory {
  const kept = new Map<string, string>();
  let size = 0;
  return {
    recall: (caller, id) => kept.get(keyOf(caller, id)),
    keep(caller, id, thought) {
      const key = keyOf(caller, id);
      size += thought.length - (kept.get(key)?.length ?? 0);
      kept.delete(key);
      kept.set(key, thought);
      for (const [oldest, text] of kept) {
        if (kept.size <= MAX_ENTRIES && size <= MAX_SIZE) break;
        kept.delete(oldest);
        size -= text.length;
      }
    },
  };
}

/** Who and which call, in one word; a caller's name holds no NUL. */
export function keyOf(caller: string, id: string): string {
  return `${caller}\0${id}`;
}
