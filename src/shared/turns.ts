// One at a time for each name, in the order of asking.

export interface Turns {
  /** Resolves when it is the caller's turn; what it gives ends the turn, and may be called again. */
  take(name: string): Promise<() => void>;
}

/** Does the work when it is its turn. */
export async function inTurn<T>(turns: Turns, name: string, work: () => Promise<T>): Promise<T> {
  const release = await turns.take(name);
  try {
    return await work();
  } finally {
    release();
  }
}

export function createTurns(): Turns & {
  /** Whether it is somebody's turn. */
  taken(name: string): boolean;
} {
  const last = new Map<string, Promise<void>>();
  return {
    taken: (name) => last.has(name),
    async take(name) {
      const before = last.get(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      last.set(name, promise);
      await before;
      return () => {
        if (last.get(name) === promise) last.delete(name);
        resolve();
      };
    },
  };
}
