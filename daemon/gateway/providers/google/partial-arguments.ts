// Vertex streams a call's arguments as values at JSON paths (`$.steps[2].text`), strings in pieces. They are put together here; what a
// provider sends is not trusted to be small or to be in order.
import { ExactNumber } from "#shared/exact-number.ts";

export interface PartialArguments {
  add(parts: readonly unknown[]): void;
  /** True when no value of the last parts is still to be continued. */
  settled(): boolean;
  json(): string;
}

type Container = Record<string | number, unknown>;

export function partialArguments(): PartialArguments {
  const root: Container = {};
  let settled = true;

  function add(parts: readonly unknown[]): void {
    settled = true;
    for (const part of parts) {
      if (typeof part !== "object" || part === null) continue;
      const fields = part as Record<string, unknown>;
      if (fields["willContinue"] === true) settled = false;
      if (typeof fields["jsonPath"] === "string") set(root, fields["jsonPath"], fields);
    }
  }
  return {
    add,
    settled: () => settled,
    json: () => JSON.stringify(root),
  };
}

const MAX_DEPTH = 64;

function set(root: Container, jsonPath: string, part: Record<string, unknown>): void {
  const list = jsonPath.endsWith("[]");
  const path = segments(list ? jsonPath.slice(0, -2) : jsonPath);
  const leaf = path.pop();
  if (leaf === undefined || path.length > MAX_DEPTH) return;
  let at = root;
  for (const [index, segment] of path.entries()) {
    const next = path[index + 1] ?? leaf;
    const child = own(at, segment) ?? define(at, segment, typeof next === "number" ? [] : {});
    if (typeof child !== "object" || child === null) return;
    at = child as Container;
  }
  const before = own(at, leaf);
  const value = valueIn(part);
  if (typeof value === "string" && typeof before === "string") define(at, leaf, before + value);
  else if (value !== undefined) define(at, leaf, value);
  // A path without a value is an empty container, or the end of one that is there already.
  else if (before === undefined && part["willContinue"] !== true) define(at, leaf, list ? [] : {});
}

function valueIn(part: Record<string, unknown>): unknown {
  const { stringValue: text, numberValue: number, boolValue: flag } = part;
  const counted = typeof number === "number" || number instanceof ExactNumber;
  if (typeof text === "string" || counted || typeof flag === "boolean") return text ?? number ?? flag;
  return "nullValue" in part ? null : undefined;
}

function own(at: Container, key: string | number): unknown {
  return Object.hasOwn(at, key) ? at[key] : undefined;
}

// Arrays grow by one: an index beyond would be filled with holes up to it. defineProperty: `__proto__` is a name like any other.
function define(at: Container, key: string | number, value: unknown): unknown {
  if (Array.isArray(at) && (typeof key !== "number" || key > at.length)) return undefined;
  Object.defineProperty(at, key, { value, enumerable: true, configurable: true, writable: true });
  return value;
}

/** `$.a.b[0]['c d']` -> a, b, 0, c d. */
function segments(path: string): (string | number)[] {
  const found: (string | number)[] = [];
  for (const match of path.replace(/^\$/, "").matchAll(/\.?([^.[\]]+)|\[(\d+)\]|\[['"]([^'"]*)['"]\]/g)) {
    if (match[2] !== undefined) found.push(Number(match[2]));
    else found.push(match[3] ?? match[1] ?? "");
  }
  return found;
}
