// A development session that outlives its daemon: when the daemon goes away it is found or started again, and the session with it.
import { setTimeout as sleep } from "node:timers/promises";
import { develop } from "#client/controllers.ts";
import type { ApiClient } from "#client/http.ts";
import { errors, isMagicError } from "#contract/errors.ts";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import { backoff } from "#shared/backoff.ts";

export interface SessionOptions {
  /** `start`: false where a daemon was stopped, and stays so unless somebody starts it. */
  readonly client: (start: boolean) => Promise<ApiClient>;
  readonly folder: string;
  readonly only: readonly string[];
  readonly signal: AbortSignal;
  /** Told once each time the connection is lost; `stopped`: the daemon said so itself. */
  readonly onLost: (stopped: boolean) => void;
}

export interface SessionEvent {
  readonly client: ApiClient;
  readonly event: DevelopmentEvent;
}

const LONGEST_WAIT = 5_000;

/** Events until the signal aborts. A refusal of the daemon that waiting cannot mend is thrown. */
export async function* sessionEvents(options: SessionOptions): AsyncGenerator<SessionEvent> {
  const { folder, only, signal, onLost } = options;
  let stopped = false;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      const client = await options.client(!stopped);
      for await (const event of develop(client, { folder, only, signal })) {
        attempt = 0;
        stopped = event.type === "stopped";
        if (!stopped) yield { client, event };
      }
    } catch (error) {
      if (signal.aborted) return;
      // One that lives and does nothing is not mended by waiting.
      if (isMagicError(error) && (!errors[error.code].retryable || attempt > 8 || error.extra["reason"] === "wedged"))
        throw error;
      if (!isMagicError(error) && !(error instanceof TypeError)) throw error;
    }
    if (signal.aborted) return;
    if (attempt === 0) onLost(stopped);
    await sleep(backoff(attempt, 100, LONGEST_WAIT), undefined, { signal }).catch(() => undefined);
  }
}
