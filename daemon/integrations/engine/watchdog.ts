// Ends a run that makes no progress, and says what it was waiting for; the same signal carries a cancel.
import { MagicError } from "#contract/errors.ts";

export interface Watchdog {
  readonly signal: AbortSignal;
  /** Progress was made: rows or bytes moved, or a step ended. */
  touch(): void;
  /** Names the present wait; a new wait is progress too, and one that will take `forMs` has not stalled until then. */
  waiting(what: string, forMs?: number): void;
  readonly waitingFor: string;
  /** Settles as `work` does, or rejects as soon as the signal is aborted, however long the work still hangs. */
  race<T>(work: Promise<T>): Promise<T>;
  stop(): void;
}

/** `movement`: a number that grows while bytes flow (a socket's counters), asked a few times a second. */
export function createWatchdog(timeoutS: number, cancel: AbortSignal, movement: () => number): Watchdog {
  const controller = new AbortController();
  /** The latest progress; later than now: the end of a wait that is known. */
  let last = performance.now();
  const progress = (forMs = 0): void => {
    last = Math.max(last, performance.now() + forMs);
  };
  let moved = 0;
  let waitingFor = "the connections";
  const timer = setInterval(
    () => {
      const now = movement();
      if (now !== moved) {
        moved = now;
        progress();
      } else if (performance.now() - last >= timeoutS * 1000)
        controller.abort(
          new MagicError("run_stalled", `No progress for ${timeoutS} s: the run was waiting for ${waitingFor}.`),
        );
    },
    Math.min(250, timeoutS * 250),
  );
  const canceled = () => controller.abort(cancel.reason ?? new MagicError("interrupted", "The run was cancelled."));
  if (cancel.aborted) canceled();
  else cancel.addEventListener("abort", canceled, { once: true });
  return {
    signal: controller.signal,
    touch: () => progress(),
    waiting: (what, forMs = 0) => {
      if (what !== waitingFor || forMs > 0) progress(forMs);
      waitingFor = what;
    },
    get waitingFor() {
      return waitingFor;
    },
    race: (work) =>
      new Promise((resolve, reject) => {
        const stop = () => reject(controller.signal.reason);
        if (controller.signal.aborted) return stop();
        controller.signal.addEventListener("abort", stop, { once: true });
        work
          .then(resolve, (error) => reject(controller.signal.aborted ? controller.signal.reason : error))
          .finally(() => {
            controller.signal.removeEventListener("abort", stop);
          });
      }),
    stop: () => {
      clearInterval(timer);
      cancel.removeEventListener("abort", canceled);
    },
  };
}
