// A token that every user of the same credentials shares: fetched once however many ask, again when it ends or is refused.
import { createHash } from "node:crypto";
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
  fetchToken: () => Promise<Token>,
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
    state.flight ??= fetchToken()
      .then((token) => {
        state.token = token;
        return token;
      })
      .finally(() => {
        state.flight = undefined;
      });
    return state.flight;
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
