// Events from whoever has them to the one who reads them, in order, bounded.
export interface EventQueue<E> extends AsyncIterable<E> {
  push(event: E): void;
  /** What nobody has read yet, taken out. */
  takeAll(): E[];
  /** No more events; the reader gets what is there, then the end. */
  end(): void;
}

const MAX_WAITING = 10_000;

export function eventQueue<E>(): EventQueue<E> {
  const waiting: E[] = [];
  let ended = false;
  let wake: (() => void) | null = null;
  return {
    push(event) {
      if (ended) return;
      waiting.push(event);
      // A reader that has gone to sleep is not worth the daemon's memory: the oldest go.
      if (waiting.length > MAX_WAITING) waiting.shift();
      wake?.();
    },
    takeAll: () => waiting.splice(0),
    end() {
      ended = true;
      wake?.();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const event = waiting.shift();
        if (event !== undefined) yield event;
        else if (ended) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    },
  };
}
