// So many pieces of work at once and no more: the others wait in turn.

export interface PlacesOptions {
  readonly atOnce: number;
  /** By default any number. */
  readonly mostWaiting?: number;
  /** What is told to who would wait as one too many, or whose signal came before the turn. */
  readonly refusal: () => Error;
}

export interface Places {
  hold<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function openPlaces({ atOnce, mostWaiting = Number.POSITIVE_INFINITY, refusal }: PlacesOptions): Places {
  const waiting = new Set<() => void>();
  let free = atOnce;

  function turn(signal: AbortSignal | undefined): Promise<void> {
    if (waiting.size >= mostWaiting || signal?.aborted) return Promise.reject(refusal());
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

  return {
    async hold(work, signal) {
      if (free > 0) free--;
      else await turn(signal);
      try {
        return await work();
      } finally {
        const [next] = waiting;
        if (next) next();
        else free++;
      }
    },
  };
}
