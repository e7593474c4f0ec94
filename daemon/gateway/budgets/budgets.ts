// Spending limits that hold under concurrency and across a crash. A call reserves the dearest that it can become before it is
// dispatched and settles to what it cost; the sum of spent and reserved never exceeds the limit.
//
// Reservations live in memory. What makes them durable is a lease: an amount on disk that covers everything in flight, raised
// (and awaited) before a dispatch that it does not cover, lowered with the ledger's next batch. Ordinary calls find enough lease
// and wait for nothing. A daemon that dies leaves its lease behind, and the next one charges it: rather too much than too little.
import { MagicError } from "#contract/errors.ts";
import { dollars, PICO_PER_DOLLAR } from "#daemon/gateway/pricing/price.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Account } from "./applicable.ts";
import type { AccountChange, BudgetStore } from "./store.ts";

export interface Reservation {
  /** Raises the reserved amount to `amount`; false where a budget does not allow it, and then nothing changed. */
  raise(amount: number): boolean | Promise<boolean>;
  /** Replaces the reservation by what the call cost (0: nothing). Later calls do nothing. */
  settle(cost: number): void;
}

export interface Budgets {
  /**
   * Reserves `amount` pico-dollars in every account, or throws `insufficient_quota`. A reservation that is durable already, as nearly
   * every one is, comes at once; else a promise of it.
   */
  reserve(accounts: readonly Account[], amount: number): Reservation | Promise<Reservation>;
  /** What has to be written since the last call: spent amounts and new leases. `given` tells how the writing ended. */
  takeChanges(): { readonly changes: readonly AccountChange[]; given(stored: boolean): void };
  /** True while changes are waiting or a lease is larger than it has to be. */
  readonly dirty: boolean;
}

interface State {
  readonly key: string;
  /** Spent and stored, or being stored. */
  spent: number;
  /** Spent, not yet handed to the ledger's batch. */
  unwritten: number;
  /** Handed over, not yet known to be stored. */
  writing: number;
  reserved: number;
  /** On disk. */
  lease: number;
  raising: Promise<void> | undefined;
  active: boolean;
  usedAt: number;
}

/** A lease is raised by this share of the limit at once, so that few calls wait for one. */
const HEADROOM = 0.01;
/** And by no more than this: what a crash may charge too much. */
const MOST_HEADROOM = 100 * PICO_PER_DOLLAR;
const MAX_STATES = 20_000;

export function createBudgets(store: BudgetStore, logger: Logger): Budgets {
  const states = new Map<string, State>();
  const loading = new Map<string, Promise<void>>();
  let uses = 0;

  const load = (key: string): Promise<void> => {
    let promise = loading.get(key);
    promise ??= store
      .load([key])
      .then(([stored]) => {
        makeRoom(states);
        const spent = stored?.spent ?? 0;
        const rest = { unwritten: 0, writing: 0, reserved: 0, lease: 0, raising: undefined, active: false };
        // Used now: a call that waits for its other accounts must find this one still here.
        states.set(key, { key, spent, ...rest, usedAt: ++uses });
      })
      .finally(() => loading.delete(key));
    loading.set(key, promise);
    return promise;
  };

  const committed = (state: State) => state.spent + state.unwritten + state.reserved;

  const raiseLease = async (state: State, limit: number): Promise<void> => {
    while (needed(state) > state.lease) {
      state.raising ??= grow(state, limit).finally(() => {
        state.raising = undefined;
      });
      await state.raising;
    }
  };
  const grow = async (state: State, limit: number): Promise<void> => {
    const room = Math.max(0, limit - committed(state));
    const lease = needed(state) + Math.min(room, Math.floor(limit * HEADROOM), MOST_HEADROOM);
    await store.change([{ key: state.key, spent: 0, lease }]);
    state.lease = Math.max(state.lease, lease);
  };

  const alertOver = (account: Account, before: number, after: number): void => {
    for (const { share, limit } of account.alerts) {
      const at = limit * share;
      if (before < at && after >= at)
        logger.warn("gateway.budget_alert", {
          budget: account.key,
          share,
          spent_usd: dollars(after),
          limit_usd: dollars(limit),
        });
    }
  };

  function hold(accounts: readonly Account[], amount: number): Reservation | Promise<Reservation> {
    const held = accounts.map((account) => {
      const state = states.get(account.key);
      if (!state) throw new Error(`the account ${account.key} is not loaded`);
      if (committed(state) + amount > account.limit) throw exhausted(account, committed(state), amount);
      return { account, state };
    });
    let reserved = amount;
    let settled = false;
    const add = (more: number) => {
      for (const { state } of held) {
        state.reserved += more;
        state.active = true;
        state.usedAt = ++uses;
      }
    };
    const isDurable = () => held.every(({ state }) => needed(state) <= state.lease);
    const makeDurable = () => Promise.all(held.map(({ account, state }) => raiseLease(state, account.limit)));
    const reservation: Reservation = {
      raise(to) {
        const more = to - reserved;
        if (more <= 0) return true;
        if (held.some(({ account, state }) => committed(state) + more > account.limit)) return false;
        reserved = to;
        add(more);
        return isDurable() || makeDurable().then(() => true);
      },
      settle(cost) {
        if (settled) return;
        settled = true;
        for (const { account, state } of held) {
          const before = state.spent + state.unwritten;
          state.reserved -= reserved;
          state.unwritten += cost;
          alertOver(account, before, before + cost);
        }
      },
    };
    add(amount);
    if (isDurable()) return reservation;
    return makeDurable().then(
      () => reservation,
      (error: unknown) => {
        add(-reserved);
        throw error;
      },
    );
  }

  return {
    get dirty() {
      for (const state of states.values()) if (state.unwritten > 0 || state.lease > state.reserved) return true;
      return false;
    },
    reserve(accounts, amount) {
      const missing = accounts.filter(({ key }) => !states.has(key));
      if (missing.length === 0) return hold(accounts, amount);
      return Promise.all(missing.map(({ key }) => load(key))).then(() => hold(accounts, amount));
    },
    takeChanges() {
      const taken: { readonly state: State; readonly spent: number; readonly lease: number }[] = [];
      for (const state of states.values()) {
        if (state.raising) continue;
        // An account in use keeps its lease, so that the next call need not wait for one.
        const lease = state.active ? state.lease : state.reserved;
        state.active = false;
        if (state.unwritten === 0 && lease >= state.lease) continue;
        taken.push({ state, spent: state.unwritten, lease });
        state.spent += state.unwritten;
        state.writing += state.unwritten;
        state.unwritten = 0;
        state.lease = lease;
      }
      return {
        changes: taken.map(({ state, spent, lease }) => ({ key: state.key, spent, lease })),
        given(stored) {
          for (const { state, spent } of taken) {
            state.writing -= spent;
            if (stored) continue;
            state.spent -= spent;
            state.unwritten += spent;
          }
        },
      };
    },
  };
}

// What a crash now must not forget.
function needed(state: State): number {
  return state.reserved + state.unwritten + state.writing;
}

// Accounts of past periods and one-time users are dropped, the longest unused first; they are loaded again when needed.
function makeRoom(states: Map<string, State>): void {
  if (states.size < MAX_STATES) return;
  const idle = [...states.values()].filter((state) => needed(state) === 0 && state.lease === 0);
  idle.sort((a, b) => a.usedAt - b.usedAt);
  for (const { key } of idle.slice(0, MAX_STATES / 10)) states.delete(key);
}

function exhausted(account: Account, used: number, amount: number): MagicError {
  const left = Math.max(0, account.limit - used);
  const detail =
    `${account.label} does not cover this call: it may cost up to $${money(amount)} and $${money(left)} are left ` +
    `(calls under way are reserved at the most they may cost). ${account.remedy} A smaller max_tokens reserves less.`;
  return new MagicError("insufficient_quota", detail, { extra: { budget: account.key } });
}

function money(pico: number): string {
  return dollars(pico)
    .toFixed(6)
    .replace(/0{1,4}$/, "");
}
