// The limits of several daemons that share a database. What comes while the database is being asked is asked for together, for all callers
// at once, so that a daemon meets the others once a round and not once a call. What a round could not tell is told by the next one.
import type { CallLimits } from "#daemon/storage/call-limits.ts";
import type { CallerRound, CallOutcome, RoundOutcome } from "#daemon/storage/repositories/gateway-limit.ts";

/** daemon/storage/repositories/gateway-limit.ts satisfies it. */
export type LimitRounds = (callers: readonly CallerRound[]) => Promise<RoundOutcome>;

export interface Taken extends CallOutcome {
  /** Ends the call; `tokens` is what it really used. */
  release(tokens: number): void;
}

export interface SharedLimits {
  take(caller: string, limits: CallLimits, tokens: number): Promise<Taken>;
  /** Resolves when the database knows of every call that ended. */
  idle(): Promise<void>;
}

interface Waiting {
  readonly tokens: number;
  readonly limits: CallLimits;
  resolve(taken: Taken): void;
  reject(error: unknown): void;
}

interface Caller {
  underWay: number;
  calls: Waiting[];
  corrections: { second: number; tokens: number }[];
  /** Something ended that the database does not know of. */
  ended: boolean;
}

interface Asked {
  readonly caller: Caller;
  readonly calls: readonly Waiting[];
  readonly round: CallerRound;
}

const RETRY_MS = 1_000;
/** Of calls that a round asks for. */
const MOST_CALLS = 1_000;

export function createSharedLimits(rounds: LimitRounds): SharedLimits {
  const callers = new Map<string, Caller>();
  let running = false;
  let newest = Promise.resolve();
  let retry: NodeJS.Timeout | undefined;

  const callerOf = (name: string): Caller => {
    let caller = callers.get(name);
    if (!caller) {
      caller = { underWay: 0, calls: [], corrections: [], ended: false };
      callers.set(name, caller);
    }
    return caller;
  };

  const run = (): Promise<void> => {
    clearTimeout(retry);
    if (!running) {
      running = true;
      newest = goOn();
    }
    return newest;
  };

  // Whether anything is left is seen in the very step that says that nothing runs: what ends a moment later begins anew.
  const goOn = async (): Promise<void> => {
    for (let asked = collect(); asked.length > 0; asked = collect())
      try {
        answer(asked, await rounds(asked.map(({ round }) => round)));
      } catch (error) {
        giveBack(asked, error);
        retry = setTimeout(run, RETRY_MS).unref();
        break;
      }
    running = false;
  };

  const collect = (): Asked[] => {
    const asked: Asked[] = [];
    let room = MOST_CALLS;
    for (const [name, caller] of callers) {
      if (caller.calls.length === 0 && !caller.ended) continue;
      const calls = caller.calls.splice(0, room);
      room -= calls.length;
      const { underWay, corrections } = caller;
      const wanted = calls.map(({ tokens, limits }) => ({ tokens, limits }));
      asked.push({ caller, calls, round: { caller: name, underWay, calls: wanted, corrections } });
      caller.corrections = [];
      caller.ended = false;
      if (room <= 0) break;
    }
    return asked;
  };

  const answer = (asked: readonly Asked[], { second, callers: outcomes }: RoundOutcome): void => {
    for (const [at, { caller, calls, round }] of asked.entries()) {
      for (const [index, call] of calls.entries())
        call.resolve(takenOf(caller, outcomes[at]?.[index] as CallOutcome, call.tokens, second));
      if (caller.underWay === 0 && caller.calls.length === 0 && !caller.ended) callers.delete(round.caller);
    }
  };

  const giveBack = (asked: readonly Asked[], error: unknown): void => {
    for (const { caller, calls, round } of asked) {
      for (const call of calls) call.reject(error);
      caller.corrections.push(...round.corrections);
      caller.ended = true;
    }
  };

  const takenOf = (caller: Caller, outcome: CallOutcome, tokens: number, second: number): Taken => {
    if (!outcome.refused) caller.underWay++;
    let released = outcome.refused !== null;
    return {
      ...outcome,
      release(actual) {
        if (released) return;
        released = true;
        caller.underWay--;
        caller.ended = true;
        if (actual !== tokens) caller.corrections.push({ second, tokens: actual - tokens });
        void run();
      },
    };
  };

  return {
    take(name, limits, tokens) {
      return new Promise((resolve, reject) => {
        callerOf(name).calls.push({ tokens, limits, resolve, reject });
        void run();
      });
    },
    idle: run,
  };
}
