// Python's equality, order and membership.
import { PythonTypeError } from "./errors.ts";
import { iterate, sequence } from "./iterate.ts";
import { asNumber, isDict, isNumber, isPythonObject, Tuple, typeName, Undefined } from "./python.ts";

export function equals(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (left instanceof Undefined || right instanceof Undefined)
    return left instanceof Undefined && right instanceof Undefined;
  if (numeric(left) && numeric(right)) {
    const [a, b] = [bigOrNumber(left), bigOrNumber(right)];
    return !(a < b) && !(a > b) && !Number.isNaN(a) && !Number.isNaN(b);
  }
  if (Array.isArray(left) && Array.isArray(right)) return sameItems(left, right);
  if (left instanceof Tuple && right instanceof Tuple) return sameItems(left.items, right.items);
  if (isDict(left) && isDict(right)) {
    if (left.size !== right.size) return false;
    for (const [key, value] of left) if (!right.has(key) || !equals(value, right.get(key))) return false;
    return true;
  }
  if (isPythonObject(left) && isPythonObject(right))
    return left.pythonType === right.pythonType && left.key() === right.key();
  return false;
}

function sameItems(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((item, at) => equals(item, right[at]));
}

function numeric(value: unknown): boolean {
  return typeof value === "boolean" || isNumber(value);
}

function bigOrNumber(value: unknown): number | bigint {
  return typeof value === "bigint" ? value : asNumber(value);
}

/** Negative, zero or positive as Python orders two values; throws where Python has no order. */
export function compare(left: unknown, right: unknown, operator = "<"): number {
  if (numeric(left) && numeric(right)) {
    const [a, b] = [bigOrNumber(left), bigOrNumber(right)];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  const [a, b] = [sequence(left), sequence(right)];
  if (a && b && Array.isArray(left) === Array.isArray(right)) {
    for (let at = 0; at < Math.min(a.length, b.length); at++)
      if (!equals(a[at], b[at])) return compare(a[at], b[at], operator);
    return a.length - b.length;
  }
  if (isPythonObject(left) && isPythonObject(right) && left.pythonType === right.pythonType) {
    const [x, y] = [left.key(), right.key()];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  throw new PythonTypeError(
    `'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`,
  );
}

// Python compares code points, JavaScript UTF-16 units.
function compareText(left: string, right: string): number {
  if (left === right) return 0;
  const [a, b] = [[...left], [...right]];
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = (a[at]?.codePointAt(0) ?? 0) - (b[at]?.codePointAt(0) ?? 0);
    if (difference) return difference;
  }
  return a.length - b.length;
}

export function contains(container: unknown, item: unknown): boolean {
  if (typeof container === "string") {
    if (typeof item !== "string")
      throw new PythonTypeError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    return container.includes(item);
  }
  if (isDict(container)) return container.has(item) || [...container.keys()].some((key) => equals(key, item));
  return iterate(container).some((candidate) => equals(candidate, item));
}
