// One exchange over a dispatcher, the body collected as it comes: a stream in between costs as much again as the reading itself.
import type { Dispatcher } from "undici";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Bytes in a millisecond: what comes as fast is no hang, however long it takes. */
const LEAST_PACE = 64;

export interface Bounds {
  /** For the whole answer; one that comes at 64 kB a second has as much longer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** What to fail with. */
  timedOut(): Error;
  tooLarge(): Error;
}

/** Rejects with what the signal aborts with, with what the bounds say, or with the dispatcher's error. */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  { timeoutMs, maxBytes, timedOut, tooLarge }: Bounds,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    let controller: Dispatcher.DispatchController | undefined;
    let answer: Omit<Answer, "body"> | undefined;
    let parts: Buffer[] = [];
    let size = 0;
    let ended: Error | undefined;
    const settle = (error?: Error) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
      if (error) reject(error);
      else if (answer) resolve({ ...answer, body: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts) });
    };
    const stop = (error: Error) => {
      if (ended) return;
      ended = error;
      parts = [];
      controller?.abort(error);
      settle(error);
    };
    const aborted = () => stop(signal.reason);
    const begun = performance.now();
    const look = (): void => {
      const left = timeoutMs + size / LEAST_PACE - (performance.now() - begun);
      if (left <= 0) stop(timedOut());
      else timer = setTimeout(look, left);
    };
    let timer = setTimeout(look, timeoutMs);
    signal.addEventListener("abort", aborted, { once: true });
    try {
      dispatcher.dispatch(
        { ...request, headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
        {
          onRequestStart(given) {
            controller = given;
            if (ended) controller.abort(ended);
          },
          onResponseStart(_controller, status, headers) {
            // 1xx: the answer proper follows.
            if (status >= 200) answer = { status, headers };
          },
          onResponseData(_controller, chunk) {
            if (ended) return;
            size += chunk.length;
            if (size > maxBytes) stop(tooLarge());
            else parts.push(chunk);
          },
          onResponseEnd() {
            if (!ended) settle();
          },
          onResponseError(_controller, error) {
            if (!ended) settle(error);
          },
        },
      );
    } catch (error) {
      settle(error as Error);
    }
  });
}
