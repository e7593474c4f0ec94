// How far a sync has come, between its worker's process and the one that keeps it durably.
import { isMagicError, knownCode, MagicError } from "#contract/errors.ts";
import type { StateAnswer, StateKeeper, StateRequest } from "#contract/sync.ts";

/** The parent's side, for one worker. */
export async function answerState(request: StateRequest, keeper: StateKeeper | undefined): Promise<StateAnswer> {
  const { type, id } = request;
  try {
    if (!keeper) throw new MagicError("internal", "nobody keeps the state of this run");
    const state = request.ask === "read" ? await keeper.read() : await keeper.save(request.state);
    return { type, id, state: state ?? null };
  } catch (thrown) {
    const code = isMagicError(thrown) ? thrown.code : "internal";
    return { type, id, state: null, error: { code, message: (thrown as Error).message } };
  }
}

/** The worker's side: a keeper that asks the parent, and what takes the parent's answers. */
export function askForState(send: (request: StateRequest) => void): {
  readonly states: StateKeeper;
  handle(answer: StateAnswer): void;
} {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let next = 1;
  const asked = () => {
    const answer = Promise.withResolvers<unknown>();
    const id = next++;
    waiting.set(id, answer);
    return { type: "state", id, answer: answer.promise } as const;
  };
  return {
    states: {
      read() {
        const { answer, ...request } = asked();
        send({ ...request, ask: "read" });
        return answer;
      },
      async save(state) {
        const { answer, ...request } = asked();
        send({ ...request, ask: "save", state });
        await answer;
      },
    },
    handle({ id, state, error }) {
      const answer = waiting.get(id);
      waiting.delete(id);
      if (error) answer?.reject(new MagicError(knownCode(error.code), error.message));
      else answer?.resolve(state);
    },
  };
}
