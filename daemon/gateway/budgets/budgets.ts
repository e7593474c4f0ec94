// Spending limits that hold under concurrency and across a crash. A call reserves the dearest that it can become before it is
// dispatched and settles to what it cost; the sum of spent and reserved never exceeds the limit.
//
// Reservations live in memory. What makes them durable is a lease: an amount on disk that covers everything in flight, raised
// (and awaited) before a dispatch that it does not cover, lowered with the ledger's next batch. Ordinary calls find enough lease
// and wait for nothing. A daemon that dies leaves its lease behind, and the next one charges it: rather too much than too little.
// Daemons that share the state see each other's leases: one is raised no further than spending and the others' leave of the limit.
import { setTimeout as sleep } from "node:timers/promises";
import { MagicError } from "#contract/errors.ts";
import { dollars } from "#daemon/gateway/pricing/price.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { PICO_PER_DOLLAR } from "#shared/money.ts";
import type { Account } from "./applicable.ts";
import { createPasts, type Sums } from "./past.ts";
import type { AccountChange, BudgetStore, StoredAccount } from "./store.ts";

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
  /** Why `reserve` would refuse now, as far as this daemon knows; null where it would not. Reserves nothing. */
  refusal(accounts: readonly Account[], amount: number): Promise<MagicError | null>;
  /** What has to be written since the last call, or some of it. */
  takeChanges(): BudgetChanges;
  /** True while changes are waiting or a lease is larger than it has to be. */
  readonly dirty: boolean;
}

/** Spent amounts and new leases on their way to storage: told how each try to write them ends, until they are stored. */
export interface BudgetChanges {
  readonly accounts: readonly AccountChange[];
  /** There may be more of them to be taken. */
  readonly more: boolean;
  stored(): void;
  failed(error: unknown): void;
  /** The same changes in two parts, each on its way by itself from now on. */
  halves(): readonly [BudgetChanges, BudgetChanges];
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
  /** What other daemons may have in flight, when it was last looked. */
  elsewhere: number;
  /** On disk. */
  lease: number;
  raising: Promise<void> | undefined;
  /** Settles with the try to store what was handed over that is under way, or the next one. */
  handedOver: Promise<unknown> | undefined;
  active: boolean;
  usedAt: number;
}

/** What is handed over of an account. */
interface Taken {
  readonly state: State;
  readonly spent: number;
  readonly lease: number;
}

interface Held {
  readonly account: Account;
  readonly state: State;
}

/** A lease is raised to so many times what is needed, so that few calls wait for one: a crash charges it, so not by a share of the limit. */
const HEADROOM = 4;
/** And by no more than this share of the limit and this amount. */
const MOST_SHARE = 0.01;
const MOST_HEADROOM = 100 * PICO_PER_DOLLAR;
const MAX_STATES = 20_000;
/** Accounts handed over at once: storage takes up to two round trips for each. */
const MOST_CHANGES = 500;
/** How often it is looked whether another daemon's calls under way cost less than they may, before one is refused for them. */
const MOST_LOOKS = 4;
const LOOK_MS = 100;

/** @param sums what was spent before the budgets of now were configured, by the ledger; what is about to be stored included. */
export function createBudgets(store: BudgetStore, logger: Logger, sums: Sums = async () => []): Budgets {
  const enterPast = createPasts(store, sums, logger);
  const states = new Map<string, State>();
  const loading = new Map<string, Promise<void>>();
  let uses = 0;

  const find = async ({ key, past }: Account): Promise<StoredAccount | undefined> => {
    const [stored] = await store.load([key]);
    if (stored || !past || !(await enterPast(past()))) return stored;
    return (await store.load([key]))[0];
  };
  const load = (account: Account): Promise<void> => {
    const { key } = account;
    let promise = loading.get(key);
    promise ??= find(account)
      .then((stored) => {
        makeRoom(states);
        const { spent = 0, elsewhere = 0 } = stored ?? {};
        const amounts = { spent, unwritten: 0, writing: 0, reserved: 0, elsewhere, lease: 0 };
        // Used now: a call that waits for its other accounts must find this one still here.
        states.set(key, {
          key,
          ...amounts,
          raising: undefined,
          handedOver: undefined,
          active: false,
          usedAt: ++uses,
        });
      })
      .finally(() => loading.delete(key));
    loading.set(key, promise);
    return promise;
  };

  const own = (state: State) => state.spent + state.unwritten + state.reserved;
  const committed = (state: State) => own(state) + state.elsewhere;

  // Raises the lease as far as it can be, and learns what others have spent.
  const grow = (state: State, account: Account): Promise<void> => {
    state.raising ??= growing(state, account).finally(() => {
      state.raising = undefined;
    });
    return state.raising;
  };
  const growing = async (state: State, { key, limit, alerts }: Account): Promise<void> => {
    // A batch under way lowers the lease: it must not come after this. Where it failed it is tried again, and may be stored already.
    await state.handedOver;
    const room = store.shared ? 0 : Math.max(0, limit - committed(state));
    const now = needed(state);
    const wanted = now + Math.min(room, now * (HEADROOM - 1), Math.floor(limit * MOST_SHARE), MOST_HEADROOM);
    const { spent, elsewhere, lease } = await store.raise({ key, lease: wanted, limit });
    alertOver({ key, alerts }, state.spent + state.unwritten, spent + state.unwritten);
    Object.assign(state, { spent, elsewhere, lease });
  };

  // What is reserved becomes durable, or is withdrawn at once where others have spent what seemed to be left: whoever waits here as well
  // may then pass.
  const secure = async (held: readonly Held[], amount: number, withdraw: () => void): Promise<void> => {
    try {
      for (const { account, state } of held)
        for (let looks = 1; needed(state) > state.lease; ) {
          await grow(state, account);
          if (committed(state) <= account.limit) continue;
          if (own(state) > account.limit || state.elsewhere === 0 || looks++ === MOST_LOOKS)
            throw exhausted(account, committed(state) - amount, amount);
          await sleep(LOOK_MS);
        }
    } catch (error) {
      withdraw();
      throw error;
    }
  };

  const alertOver = (account: Pick<Account, "key" | "alerts">, before: number, after: number): void => {
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

  const loaded = (accounts: readonly Account[]): null | Promise<unknown> => {
    const missing = accounts.filter(({ key }) => !states.has(key));
    return missing.length > 0 ? Promise.all(missing.map(load)) : null;
  };
  const stateOf = ({ key }: Account): State => {
    const state = states.get(key);
    if (!state) throw new Error(`the account ${key} is not loaded`);
    return state;
  };

  function hold(accounts: readonly Account[], amount: number): Reservation | Promise<Reservation> {
    const held = accounts.map((account) => {
      const state = stateOf(account);
      // What others have in flight may cost less: that is looked at when the lease is raised. What costs nothing is nobody's to refuse.
      if (amount > 0 && own(state) + amount > account.limit) throw exhausted(account, own(state), amount);
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
    const reservation: Reservation = {
      raise(to) {
        const more = to - reserved;
        if (more <= 0) return true;
        if (held.some(({ account, state }) => own(state) + more > account.limit)) return false;
        const take = (amount: number) => {
          reserved += amount;
          add(amount);
        };
        take(more);
        return isDurable() || secure(held, more, () => take(-more)).then(() => true);
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
    if (amount === 0 || isDurable()) return reservation;
    return secure(held, amount, () => add(-amount)).then(() => reservation);
  }

  return {
    get dirty() {
      for (const state of states.values()) if (state.unwritten > 0 || state.lease > state.reserved) return true;
      return false;
    },
    reserve(accounts, amount) {
      const loading = loaded(accounts);
      return loading ? loading.then(() => hold(accounts, amount)) : hold(accounts, amount);
    },
    async refusal(accounts, amount) {
      await loaded(accounts);
      for (const account of amount > 0 ? accounts : []) {
        const used = committed(stateOf(account));
        if (used + amount > account.limit) return exhausted(account, used, amount);
      }
      return null;
    },
    takeChanges() {
      const taken: Taken[] = [];
      for (const state of states.values()) {
        if (state.raising || state.handedOver) continue;
        // An account in use keeps its lease, so that the next call need not wait for one; not where that is in others' way. What waits for
        // a lease has none yet.
        const covered = Math.min(state.reserved, Math.max(0, state.lease - state.unwritten));
        const lease = state.active && !store.shared ? state.lease : covered;
        state.active = false;
        if (state.unwritten === 0 && lease >= state.lease) continue;
        taken.push({ state, spent: state.unwritten, lease });
        state.spent += state.unwritten;
        state.writing += state.unwritten;
        state.unwritten = 0;
        state.lease = lease;
        if (taken.length === MOST_CHANGES) break;
      }
      const more = taken.length === MOST_CHANGES;
      // The others come first the next time.
      if (more)
        for (const { state } of taken) {
          states.delete(state.key);
          states.set(state.key, state);
        }
      return onTheirWay(taken, more);
    },
  };
}

function onTheirWay(taken: readonly Taken[], more: boolean): BudgetChanges {
  let attempt: PromiseWithResolvers<unknown>;
  const handOver = () => {
    attempt = Promise.withResolvers();
    // Mostly nobody waits for it.
    attempt.promise.catch(() => undefined);
    for (const { state } of taken) state.handedOver = attempt.promise;
  };
  handOver();
  return {
    accounts: taken.map(({ state, spent, lease }) => ({ key: state.key, spent, lease })),
    more,
    stored() {
      for (const { state, spent } of taken) {
        state.writing -= spent;
        state.handedOver = undefined;
      }
      attempt.resolve(undefined);
    },
    failed(error) {
      const { reject } = attempt;
      handOver();
      reject(error);
    },
    halves() {
      const middle = Math.ceil(taken.length / 2);
      const parts = [taken.slice(0, middle), taken.slice(middle)] as const;
      const made = [onTheirWay(parts[0], more), onTheirWay(parts[1], more)] as const;
      attempt.resolve(Promise.all(taken.map(({ state }) => state.handedOver)));
      return made;
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
