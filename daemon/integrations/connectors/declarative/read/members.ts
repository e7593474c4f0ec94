// Where the members of a JSON object stand in a page's bytes: found without making values of them. What is not written as expected is
// left to the parser (-1); numbers, words and strings that are passed over here are valid JSON, and nested values are not looked into.

/** What stands there. `fraction` has a point, `number` anything else that is no plain integer; `escaped` is a string with a backslash. */
export const ABSENT = 0;
export const STRING = 1;
const ESCAPED = 2;
export const INTEGER = 3;
export const FRACTION = 4;
const NUMBER = 5;
export const TRUE = 6;
export const FALSE = 7;
export const NULL = 8;
const NESTED = 9;

/** In place of a column: a member that is passed over, and one that is told among the others. */
export const UNWANTED = -1;
export const OTHER = -2;

/** The members of a page's records, by record and column: what it is, and from where to where (strings with their quotes). */
export interface Members {
  kind: Uint8Array;
  from: Int32Array;
  to: Int32Array;
  /** By record: from where to where the members stand that no column is for, names and all. */
  readonly others: Map<number, number[]>;
}

export function emptyMembers(): Members {
  return { kind: new Uint8Array(0), from: new Int32Array(0), to: new Int32Array(0), others: new Map() };
}

/** Reads the object that begins at `at` ("{") into row `row`; answers where it ends, or -1. Rows are read in turn. */
export type ScanMembers = (bytes: Uint8Array, at: number, into: Members, row: number) => number;

/** `columns`: the column of each name; UNWANTED: nobody asks for it. Other names are `otherwise`. */
export function memberScanner(
  columns: ReadonlyMap<string, number>,
  count: number,
  otherwise: typeof UNWANTED | typeof OTHER,
): ScanMembers {
  // The names of the record before, quotes and all, in their order: this one's are likely the same.
  const names: Uint8Array[] = [];
  const places: number[] = [];
  let found = ABSENT;

  return (bytes, start, into, row) => {
    if (row === 0) begin(into);
    const base = row * count;
    if (base + count > into.kind.length) grow(into, count);
    const { kind, from, to } = into;
    let at = blank(bytes, start + 1);
    if (bytes[at] === 0x7d) return at + 1;
    for (let member = 0; ; member++) {
      const name = at;
      at = nameAt(bytes, at, member);
      if (at < 0) return -1;
      at = blank(bytes, at);
      if (bytes[at] !== 0x3a) return -1;
      at = blank(bytes, at + 1);
      const value = at;
      at = valueAt(bytes, at);
      if (at < 0) return -1;
      const column = places[member] as number;
      if (column >= 0) {
        // A name that stands twice: nobody would look into the value that does not count.
        if (kind[base + column] !== ABSENT) return -1;
        kind[base + column] = found;
        from[base + column] = value;
        to[base + column] = at;
      } else {
        if (column === OTHER) into.others.set(row, [...(into.others.get(row) ?? []), name, at]);
        // Nobody else will look into it.
        else if ((found === NESTED || found === ESCAPED) && !isJson(bytes, value, at)) return -1;
      }
      at = blank(bytes, at);
      if (bytes[at] === 0x7d) return at + 1;
      if (bytes[at] !== 0x2c) return -1;
      at = blank(bytes, at + 1);
    }
  };

  // Behind the name at `at`, which then is names[member].
  function nameAt(bytes: Uint8Array, at: number, member: number): number {
    const expected = names[member];
    if (expected) {
      let same = 0;
      while (same < expected.length && bytes[at + same] === expected[same]) same++;
      if (same === expected.length) return at + same;
    }
    const end = stringAt(bytes, at);
    if (end < 0 || found === ESCAPED) return -1;
    const name = Uint8Array.from(bytes.subarray(at, end));
    names[member] = name;
    places[member] = columns.get(new TextDecoder().decode(name.subarray(1, -1))) ?? otherwise;
    return end;
  }

  // Behind the value at `at`, whose kind then is `found`.
  function valueAt(bytes: Uint8Array, at: number): number {
    const first = bytes[at] as number;
    if (first === 0x22) return stringAt(bytes, at);
    if (first === 0x2d || (first >= 48 && first <= 57)) return numberAt(bytes, at);
    if (first === 0x7b || first === 0x5b) return nestedAt(bytes, at);
    if (first === 0x74) return wordAt(bytes, at, "true", TRUE);
    if (first === 0x66) return wordAt(bytes, at, "false", FALSE);
    return wordAt(bytes, at, "null", NULL);
  }

  function stringAt(bytes: Uint8Array, start: number): number {
    if (bytes[start] !== 0x22) return -1;
    found = STRING;
    let at = start + 1;
    for (;;) {
      const byte = bytes[at++] as number;
      if (byte === 0x22) return at;
      if (byte === 0x5c) {
        found = ESCAPED;
        at++;
      } else if (!(byte >= 32)) return -1;
    }
  }

  function numberAt(bytes: Uint8Array, start: number): number {
    found = INTEGER;
    let at = bytes[start] === 0x2d ? start + 1 : start;
    const zero = bytes[at] === 48;
    let end = digitsAt(bytes, at);
    if (end === at || (zero && end > at + 1)) return -1;
    if (bytes[end] === 0x2e) {
      found = FRACTION;
      at = end + 1;
      end = digitsAt(bytes, at);
      if (end === at) return -1;
    }
    if (bytes[end] === 0x65 || bytes[end] === 0x45) {
      found = NUMBER;
      at = end + 1;
      if (bytes[at] === 0x2b || bytes[at] === 0x2d) at++;
      end = digitsAt(bytes, at);
      if (end === at) return -1;
    }
    return end;
  }

  function wordAt(bytes: Uint8Array, at: number, word: string, kind: number): number {
    found = kind;
    for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word.charCodeAt(i)) return -1;
    return at + word.length;
  }

  function nestedAt(bytes: Uint8Array, start: number): number {
    let depth = 0;
    let at = start;
    do {
      const byte = bytes[at];
      if (byte === 0x22) {
        at = stringAt(bytes, at);
        if (at < 0) return -1;
        continue;
      }
      if (byte === 0x7b || byte === 0x5b) depth++;
      else if (byte === 0x7d || byte === 0x5d) depth--;
      else if (byte === undefined) return -1;
      at++;
    } while (depth > 0);
    found = NESTED;
    return at;
  }
}

function begin(members: Members): void {
  members.kind.fill(ABSENT);
  members.others.clear();
}

function grow(members: Members, count: number): void {
  const length = Math.max(members.kind.length * 2, count * 1024);
  const { kind, from, to } = members;
  members.kind = new Uint8Array(length);
  members.from = new Int32Array(length);
  members.to = new Int32Array(length);
  members.kind.set(kind);
  members.from.set(from);
  members.to.set(to);
}

function isJson(bytes: Uint8Array, start: number, end: number): boolean {
  try {
    JSON.parse(new TextDecoder().decode(bytes.subarray(start, end)));
    return true;
  } catch {
    return false;
  }
}

/** Behind the blanks at `at`. */
export function blank(bytes: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at] as number;
    if (byte === 32 || byte === 10 || byte === 13 || byte === 9) at++;
    else return at;
  }
}

function digitsAt(bytes: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at] as number;
    if (byte >= 48 && byte <= 57) at++;
    else return at;
  }
}
