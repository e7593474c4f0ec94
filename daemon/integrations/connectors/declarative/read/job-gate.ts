// How many asynchronous jobs of a connection are under way at a time: vendors refuse more than their limit.
export interface JobGate {
  /** Runs the work when there is room. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

export function createJobGate(most: number): JobGate {
  let free = Math.max(1, Math.floor(most) || 1);
  const waiting: (() => void)[] = [];
  return {
    async run(work) {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else free++;
      }
    },
  };
}
