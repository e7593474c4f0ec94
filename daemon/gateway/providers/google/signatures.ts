// Thought signatures of calls whose ids are Gemini's own, and so cannot carry them. Bounded; what is forgotten (a restart, another replica)
// is replaced by Google's documented stand-in.

export interface SignatureStore {
  get(id: string): string | undefined;
  set(id: string, signature: string): void;
}

/** Keeps the newest, by number and by size in characters. */
export function signatureStore(maxEntries = 10_000, maxSize = 32 * 1024 * 1024): SignatureStore {
  const kept = new Map<string, string>();
  let size = 0;
  return {
    get: (id) => kept.get(id),
    set(id, signature) {
      size += signature.length - (kept.get(id)?.length ?? 0);
      kept.delete(id);
      kept.set(id, signature);
      for (const [oldest, text] of kept) {
        if (kept.size <= maxEntries && size <= maxSize) break;
        kept.delete(oldest);
        size -= text.length;
      }
    },
  };
}
