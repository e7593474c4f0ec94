// The calls under way in a cell, by id. Not a Map: one that entries come to and leave without end replaces its table every few dozen calls,
// and each replaced table points to the next. Once one of them is old, the garbage collector takes all that follow, with the calls that
// were in them, for alive, and copies them.

interface Numbered {
  readonly id: number;
}

export interface CallTable<Call extends Numbered> {
  /** An id that no call had before (after 2^32 calls: that none has now), to be entered with `add`. */
  nextId(): number;
  add(call: Call): void;
  get(id: number): Call | undefined;
  delete(id: number): void;
  /** True for an id that a call got, be it over or not. */
  given(id: number): boolean;
  readonly size: number;
  /** Takes all calls out. */
  drain(): Call[];
}

const PLACES = 64;

export function openCallTable<Call extends Numbered>(): CallTable<Call> {
  // A power of two; a call's place is the low bits of its id.
  let places: (Call | undefined)[] = new Array(PLACES).fill(undefined);
  let size = 0;
  let last = 0;
  const placeOf = (id: number): number => id & (places.length - 1);

  function grow(): void {
    const calls = places;
    places = new Array(calls.length * 2).fill(undefined);
    for (const call of calls) if (call) places[placeOf(call.id)] = call;
  }

  const table: CallTable<Call> = {
    nextId() {
      if (size === places.length) grow();
      // An id whose place a long call holds is left out.
      do last = (last + 1) >>> 0 || 1;
      while (places[placeOf(last)]);
      return last;
    },
    add(call) {
      places[placeOf(call.id)] = call;
      size++;
    },
    get(id) {
      const call = places[placeOf(id)];
      return call?.id === id ? call : undefined;
    },
    delete(id) {
      if (!table.get(id)) return;
      places[placeOf(id)] = undefined;
      size--;
    },
    given: (id) => id !== 0 && id <= last,
    get size() {
      return size;
    },
    drain() {
      const calls = places.filter((call) => call !== undefined);
      places.fill(undefined);
      size = 0;
      return calls;
    },
  };
  return table;
}
