// The signal of everything that is done for a call, and why it was aborted.
import { type AbortNotice, abortSource } from "#shared/abort.ts";
import { Deadline } from "#shared/deadline.ts";
import { type Failure, failure } from "./providers/failure.ts";
import type { Plan } from "./routing/plan.ts";

// A class: an object literal with a getter gets a hidden class of its own at every call, which lives in old memory and holds the call there
// until the next full collection.
export class Work {
  outOfTime = false;
  stopped = false;
  readonly #source = abortSource();
  readonly #leave = () => this.#source.abort();
  readonly #deadline: Deadline;
  /** Where the client's leaving is told; null for a call that runs to its end regardless. */
  readonly #client: AbortNotice | null;

  /** @param until milliseconds of the monotonic clock. */
  constructor(client: AbortNotice, until: number, detached: boolean) {
    this.#client = detached ? null : client;
    this.#deadline = new Deadline(until, () => {
      this.outOfTime = true;
      this.#source.abort();
    });
    if (this.#client?.aborted) this.#source.abort();
    else this.#client?.addEventListener("abort", this.#leave, { once: true });
  }

  get signal(): AbortNotice {
    return this.#source.signal;
  }

  /** The daemon ends. */
  stop(): void {
    this.stopped = true;
    this.#source.abort();
  }

  /** Why it was aborted, unless the client left. */
  reason(plan: Plan): Failure | null {
    if (this.outOfTime)
      return failure("timeout", `The call took longer than its total time of ${plan.totalTimeoutMs} ms.`);
    if (this.stopped)
      return failure("reset", "The daemon was stopped before the answer was complete.", {
        status: 503,
        code: "draining",
      });
    return null;
  }

  end(): void {
    this.#deadline.clear();
    this.#client?.removeEventListener("abort", this.#leave);
  }
}
