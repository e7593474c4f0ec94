// The tokens of a connection between a worker's process and the one that keeps them durably.
import { isMagicError, knownCode, MagicError } from "#contract/errors.ts";
import type { HeldTokens, KeptToken, TokenAnswer, TokenKeeper, TokenRequest } from "#contract/tokens.ts";
import { createTurns } from "./turns.ts";

/** One that waits for a vendor's new tokens may take so much longer: to end it would lose the connection's grant. */
export const REFRESH_GRACE_MS = 30_000;

/** Keeps tokens as long as it lives: where there is nothing durable. */
export function memoryTokens(): TokenKeeper {
  const turns = createTurns();
  const tokens = new Map<string, KeptToken>();
  return {
    async hold(grant) {
      const release = await turns.take(grant);
      return { kept: tokens.get(grant) ?? null, save: async (token) => void tokens.set(grant, token), release };
    },
  };
}

/** The parent's side, for one worker. */
export interface TokenServer {
  handle(request: TokenRequest): void;
  /** The worker is at a refresh: the answer that it waits for may be the only way in from now on. */
  busy(): boolean;
  /** The worker is gone: its turns are over. */
  end(): void;
}

export function serveTokens(keeper: TokenKeeper, answer: (answer: TokenAnswer) => void): TokenServer {
  const held = new Map<number, HeldTokens>();
  let ended = false;
  const release = (id: number): void => {
    held.get(id)?.release();
    held.delete(id);
  };
  const handle = async (request: TokenRequest): Promise<KeptToken | null> => {
    if (request.ask === "hold") {
      const turn = await keeper.hold(request.grant, request.last);
      if (ended) turn.release();
      else held.set(request.id, turn);
      return turn.kept;
    }
    if (request.ask === "save") await held.get(request.id)?.save(request.token);
    else release(request.id);
    return null;
  };
  return {
    handle(request) {
      const { id } = request;
      handle(request).then(
        (kept) => request.ask === "release" || answer({ type: "token", id, kept }),
        (error: Error) => {
          const code = isMagicError(error) ? error.code : "internal";
          answer({ type: "token", id, kept: null, error: { code, message: error.message } });
        },
      );
    },
    busy: () => held.size > 0,
    end() {
      ended = true;
      for (const id of [...held.keys()]) release(id);
    },
  };
}

/** The same keeper for a process that ends: with `idle`. `onTurns` hears how many turns are held whenever that changes. */
export function endable(keeper: TokenKeeper, onTurns: (held: number) => void = () => {}): Required<TokenKeeper> {
  const held = new Set<Promise<void>>();
  let closing = false;
  return {
    async hold(grant, last) {
      const turn = await keeper.hold(grant, last);
      if (closing) {
        turn.release();
        throw new MagicError("interrupted");
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      held.add(promise);
      onTurns(held.size);
      const release = (): void => {
        turn.release();
        held.delete(promise);
        resolve();
        onTurns(held.size);
      };
      return { ...turn, release };
    },
    async idle(last = false) {
      closing ||= last;
      await Promise.all(held);
    },
  };
}

/** The worker's side: a keeper that asks the parent, and what takes the parent's answers. */
export function askForTokens(send: (request: TokenRequest) => void): {
  readonly tokens: Required<TokenKeeper>;
  handle(answer: TokenAnswer): void;
} {
  interface Waiting {
    readonly ask: TokenRequest["ask"];
    resolve(kept: KeptToken | null): void;
    reject(error: Error): void;
  }
  const waiting = new Map<number, Waiting>();
  let next = 1;
  const ask = (request: TokenRequest): Promise<KeptToken | null> =>
    new Promise((resolve, reject) => {
      waiting.set(request.id, { ask: request.ask, resolve, reject });
      send(request);
    });
  const hold = async (grant: string, last?: string): Promise<HeldTokens> => {
    const id = next++;
    return {
      kept: await ask({ type: "token", id, ask: "hold", grant, last }),
      save: async (token) => void (await ask({ type: "token", id, ask: "save", token })),
      release: () => send({ type: "token", id, ask: "release" }),
    };
  };
  return {
    tokens: endable({ hold }),
    handle({ id, kept, error }) {
      const asked = waiting.get(id);
      waiting.delete(id);
      if (!error) asked?.resolve(kept);
      else if (asked?.ask === "hold") asked.reject(new MagicError(knownCode(error.code), error.message));
      else asked?.reject(new MagicError("internal", `the token could not be kept: ${error.message}`));
    },
  };
}
