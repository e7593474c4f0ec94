// A token that every user of the same credentials shares: fetched once however many ask, again when it ends or is refused.
import { createHash } from "node:crypto";
import { untilAborted } from "#shared/abort.ts";
import type { Context } from "../context.ts";
import type { Component } from "../manifest/component.ts";

export interface Token {
  readonly value: string;
  /** On the wall clock, milliseconds; Infinity: until it is refused. */
  readonly expiresAt: number;
}

export function sharedToken(
  context: Context,
  component: Component,
  initial: Token | undefined,
  fetchToken: (last: Token | undefined) => Promise<Token>,
): { get(): Promise<string>; renew(used: string | undefined): Promise<boolean> } {
  const key = `token ${createHash("sha256").update(JSON.stringify(component)).digest("hex")}`;
  interface State {
    token: Token | undefined;
    flight: Promise<Token> | undefined;
  }
  const known = context.shared.get(key) as State | undefined;
  const state: State = known ?? { token: initial, flight: undefined };
  context.shared.set(key, state);
  const fresh = (): Promise<Token> => {
    state.flight ??= fetchToken(state.token)
      .then((token) => {
        state.token = token;
        return token;
      })
      .finally(() => {
        state.flight = undefined;
      });
    // Who is told to stop does not wait; the refresh goes on, for its answer may be the only way in from now on.
    return untilAborted(state.flight, context.signal);
  };
  return {
    async get() {
      const { token } = state;
      return token && token.expiresAt - 5000 > context.clock.now() ? token.value : (await fresh()).value;
    },
    // When another request has renewed it meanwhile, there is nothing to renew.
    async renew(used) {
      if (state.token === undefined || state.token.value === used) await fresh();
      return true;
    },
  };
}
