// So many pieces of work at once and no more: the others wait in turn.

export interface PlacesOptions {
  readonly atOnce: number;
  /** By default any number. */
  readonly mostWaiting?: number;
  /** What is told to who would wait as one too many, or whose signal came before the turn. */
  readonly refusal: () => Error;
}

export interface Places {
  /** `line`: the two lines are served by turns, so that a long one of the one kind does not hold up the other. */
  hold<T>(work: () => Promise<T>, signal?: AbortSignal, line?: 0 | 1): Promise<T>;
}

export function openPlaces({ atOnce, mostWaiting = Number.POSITIVE_INFINITY, refusal }: PlacesOptions): Places {
  const lines = [new Set<() => void>(), new Set<() => void>()] as const;
  let last: 0 | 1 = 1;
  let free = atOnce;

  function turn(signal: AbortSignal | undefined, line: 0 | 1): Promise<void> {
    const waiting = lines[line];
    if (lines[0].size + lines[1].size >= mostWaiting || signal?.aborted) return Promise.reject(refusal());
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener("abort", give);
        waiting.delete(enter);
        resolve();
      };
      const give = (): void => {
        waiting.delete(enter);
        reject(refusal());
      };
      signal?.addEventListener("abort", give, { once: true });
      waiting.add(enter);
    });
  }

  /** Lets the next one in; false where nobody waits. */
  function letIn(): boolean {
    const other = last === 0 ? 1 : 0;
    const line = lines[other].size > 0 ? other : last;
    const [next] = lines[line];
    last = line;
    next?.();
    return next !== undefined;
  }

  return {
    async hold(work, signal, line = 0) {
      if (free > 0) free--;
      else await turn(signal, line);
      try {
        return await work();
      } finally {
        if (!letIn()) free++;
      }
    },
  };
}
