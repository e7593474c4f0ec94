// The calls inside of others that wait for a place, of all controllers: whether one more would wait for ever.

/** What has places; so many are taken. */
export interface Place {
  readonly active: number;
}

/** An invocation that has a place for as long as those within it take. */
export interface Holder {
  readonly place: Place;
  readonly within: Holder | undefined;
}

/** A call inside of others that waits for a place of `full`. */
export interface Nested {
  readonly full: Place;
  readonly within: Holder;
}

export interface NestedCalls {
  add(one: Nested): void;
  delete(one: Nested): void;
  /** Whether no place that `newcomer` waits for would ever become free. */
  wouldStick(newcomer: Nested): boolean;
}

export function openNestedCalls(): NestedCalls {
  const waiting = new Set<Nested>();
  /** Of each place who has one for calls that wait, and for how many. */
  const held = new Map<Place, Map<Holder, number>>();

  return {
    add(one) {
      waiting.add(one);
      for (const holder of around(one)) {
        const holders = held.get(holder.place) ?? new Map<Holder, number>();
        held.set(holder.place, holders.set(holder, (holders.get(holder) ?? 0) + 1));
      }
    },
    delete(one) {
      waiting.delete(one);
      for (const holder of around(one)) {
        const holders = held.get(holder.place);
        const left = (holders?.get(holder) ?? 1) - 1;
        if (left > 0) holders?.set(holder, left);
        else holders?.delete(holder);
        if (holders?.size === 0) held.delete(holder.place);
      }
    },
    wouldStick(newcomer) {
      // Nearly always some other call has a place: that is seen without a look at all that wait.
      const holders = held.get(newcomer.full);
      const more = around(newcomer).filter((holder) => holder.place === newcomer.full && !holders?.has(holder)).length;
      return (holders?.size ?? 0) + more >= newcomer.full.active && stick(newcomer, waiting);
    },
  };
}

/** Each place is held for a call that waits likewise. Who waits for one that some other call gives back is left out, until nobody is. */
function stick(newcomer: Nested, others: Iterable<Nested>): boolean {
  for (let left = [newcomer, ...others]; ; ) {
    const held = new Map<Place, Set<Holder>>();
    for (const one of left)
      for (const holder of around(one)) held.set(holder.place, (held.get(holder.place) ?? new Set()).add(holder));
    const stuck = left.filter(({ full }) => (held.get(full)?.size ?? 0) >= full.active);
    if (stuck[0] !== newcomer) return false;
    if (stuck.length === left.length) return true;
    left = stuck;
  }
}

function around({ within }: Nested): Holder[] {
  const holders: Holder[] = [];
  for (let holder: Holder | undefined = within; holder; holder = holder.within) holders.push(holder);
  return holders;
}
