// A number of JSON that no double is: its own digits wherever it is written, about as much wherever it is counted with.

// Not in the language's declarations yet.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

let made = false;

export class ExactNumber {
  readonly digits: string;
  /** `digits`: as JSON has it. */
  constructor(digits: string) {
    this.digits = digits;
    made = true;
  }
  valueOf(): number {
    return Number(this.digits);
  }
  toString(): string {
    return this.digits;
  }
  toJSON(): unknown {
    return rawJSON(this.digits);
  }
}

/** Whether there is any: seldom, and looking for them takes long. */
export const anyExact = (): boolean => made;

/** For a message to another process, which knows no classes: nothing else in records is a String object. */
export function packNumbers<T>(value: T): T {
  return mapped(value, (each) => (each instanceof ExactNumber ? Object(each.digits) : undefined)) as T;
}

export function unpackNumbers<T>(value: T): T {
  return mapped(value, (each) => (each instanceof String ? new ExactNumber(each.toString()) : undefined)) as T;
}

function mapped(value: unknown, change: (value: object) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const changed = change(value);
  if (changed !== undefined) return changed;
  if (Array.isArray(value)) return value.map((each) => mapped(each, change));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapped(each, change)]));
}
