// One call in a loaded cell: up to its deadline, or until its caller leaves. The handler may go on after either.
import { MagicError } from "#contract/errors.ts";
import type { AbortNotice } from "#shared/abort.ts";
import type { Clock } from "#shared/clock.ts";
import type { CellOutcome } from "../cell/cell.ts";
import type { InvokeMessage, LogMessage } from "../cell/frames.ts";
import type { BrokerSession } from "../cell/streams.ts";
import { cellFailure } from "./failures.ts";
import type { Holder } from "./nested.ts";
import type { LiveCell, Watchdog } from "./watchdog.ts";

/** Why what an invocation has under way stops; made once, because an error with its stack costs more than the rest. */
const ENDED = new DOMException("the invocation has ended", "AbortError");

export interface InstanceCall {
  readonly input: unknown;
  readonly requestId: string;
  readonly environment: string;
  readonly signal: AbortNotice | undefined;
  /** The deadline of the call that this one is nested in. */
  readonly deadline: number | undefined;
  /** The call that this one is nested in. */
  readonly within: Holder | undefined;
  /** Made when the handler first asks for something; `ended` is aborted when the call ends, by `deadline` at the latest. */
  broker(ended: AbortSignal, deadline: number): BrokerSession;
  onLog(line: LogMessage): void;
  /** A secret that was handed out must not appear in what is written down. */
  redact(text: string): string;
}

/** What all calls of an instance share. */
export interface Running {
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  /** The handler had its time and goes on. */
  onOverdue(live: LiveCell): void;
  /** A call is over, or its caller waits no longer. */
  onLeft(live: LiveCell): void;
}

/**
 * Rejects with what the call fails with for its caller, who need not wait for the handler's end. null where the cell ended before it had read
 * the call, which another one may run then. `spentMs`: of the call's time, before.
 */
export function execute(
  live: LiveCell,
  call: InstanceCall,
  running: Running,
  spentMs: number,
): Promise<CellOutcome | null> {
  const { clock, watchdog, timeoutMs, memoryMb } = running;
  const restMs = Math.max(0, timeoutMs - spentMs);
  return new Promise((resolve, reject) => {
    let ended: AbortController | null = null;
    let over = false;
    const signalOfEnd = (): AbortSignal => {
      ended ??= new AbortController();
      if (over) ended.abort(ENDED);
      return ended.signal;
    };
    const deadline = Math.min(clock.now() + restMs, call.deadline ?? Number.POSITIVE_INFINITY);
    const message: InvokeMessage = {
      input: call.input,
      id: call.requestId,
      deadline,
      environment: call.environment,
    };
    let waited = true;
    let overdue = false;
    /** The deadline of a call whose caller has left. */
    let rest: NodeJS.Timeout | undefined;
    const invoked = live.cell.invoke({
      message,
      broker: () => call.broker(signalOfEnd(), deadline),
      onLog: call.onLog,
      onEnd(outcome) {
        clearTimeout(rest);
        if (waited) leave();
        else live.late--;
        if (overdue) live.overdue--;
        running.onLeft(live);
        resolve(outcome);
      },
      onGone(why) {
        clearTimeout(rest);
        if (!waited) return;
        leave();
        if (live.cell.spinning() > 0) return resolve(null);
        const gone = cellFailure(why, memoryMb);
        const { code, retryAfterS } = gone;
        reject(new MagicError(code, call.redact(gone.message), retryAfterS === undefined ? {} : { retryAfterS }));
      },
    });
    live.calls++;
    watchdog.stir();

    const leave = (): void => {
      waited = false;
      clearTimeout(timer);
      call.signal?.removeEventListener("abort", left);
      live.calls--;
      live.lastUsed = performance.now();
      over = true;
      ended?.abort(ENDED);
    };
    const depart = (error: MagicError, reason: string): void => {
      if (!waited) return;
      leave();
      live.late++;
      running.onLeft(live);
      invoked.abort(reason);
      reject(error);
    };
    const passDeadline = (): void => {
      overdue = true;
      live.overdue++;
      running.onOverdue(live);
    };
    const timer = setTimeout(() => {
      depart(new MagicError("timeout", `the handler was given ${timeoutMs} ms (limits.timeout_ms)`), "deadline");
      passDeadline();
    }, restMs);
    const left = (): void => {
      depart(new MagicError("client_closed"), "the caller left");
      // Its deadline still stands.
      rest = setTimeout(passDeadline, Math.max(0, deadline - clock.now())).unref();
    };
    call.signal?.addEventListener("abort", left, { once: true });
  });
}
