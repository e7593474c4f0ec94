// The tests behind `is`: Jinja 3.1's own.
import { compare, contains, equals } from "./compare.ts";
import { EvaluationError } from "./errors.ts";
import { iterate } from "./iterate.ts";
import { asNumber, Callable, isDict, isInt, isNumber, Tuple, Undefined } from "./python.ts";
import { str } from "./repr.ts";

export type Test = (value: unknown, args: readonly unknown[]) => boolean;

const whole = (value: unknown): number => {
  if (!isNumber(value) && typeof value !== "boolean")
    throw new EvaluationError("not all arguments converted during string formatting");
  return asNumber(value);
};
const remainder = (value: unknown, by: unknown): number | bigint =>
  typeof value === "bigint" || typeof by === "bigint" ? bigintOf(value) % bigintOf(by) : whole(value) % whole(by);
// Ids and sums may be longer than a double is exact.
const bigintOf = (value: unknown): bigint => (typeof value === "bigint" ? value : BigInt(Math.trunc(whole(value))));
const iterable = (value: unknown): boolean =>
  typeof value === "string" ||
  Array.isArray(value) ||
  value instanceof Tuple ||
  isDict(value) ||
  value instanceof Undefined;

const table: Readonly<Record<string, Test>> = {
  boolean: (v) => typeof v === "boolean",
  callable: (v) => v instanceof Callable,
  defined: (v) => !(v instanceof Undefined),
  divisibleby: (v, [by]) => Number(remainder(v, by)) === 0,
  eq: (v, [other]) => equals(v, other),
  escaped: () => false,
  even: (v) => Number(remainder(v, 2)) === 0,
  false: (v) => v === false,
  float: (v) => isNumber(v) && !isInt(v),
  ge: (v, [other]) => compare(v, other, ">=") >= 0,
  gt: (v, [other]) => compare(v, other, ">") > 0,
  in: (v, [other]) => contains(other, v),
  integer: (v) => isInt(v),
  iterable,
  le: (v, [other]) => compare(v, other, "<=") <= 0,
  lower: (v) => str(v) !== str(v).toUpperCase() && str(v) === str(v).toLowerCase(),
  lt: (v, [other]) => compare(v, other) < 0,
  mapping: (v) => isDict(v),
  ne: (v, [other]) => !equals(v, other),
  none: (v) => v === null,
  number: (v) => isNumber(v) || typeof v === "boolean",
  odd: (v) => Math.abs(Number(remainder(v, 2))) === 1,
  sameas: (v, [other]) => v === other,
  sequence: (v) =>
    typeof v === "string" ||
    Array.isArray(v) ||
    v instanceof Tuple ||
    isDict(v) ||
    (v instanceof Undefined && iterate(v).length === 0),
  string: (v) => typeof v === "string",
  true: (v) => v === true,
  undefined: (v) => v instanceof Undefined,
  upper: (v) => str(v) !== str(v).toLowerCase() && str(v) === str(v).toUpperCase(),
};

const aliases: Readonly<Record<string, string>> = {
  equalto: "eq",
  "==": "eq",
  "!=": "ne",
  ">": "gt",
  greaterthan: "gt",
  ">=": "ge",
  "<": "lt",
  lessthan: "lt",
  "<=": "le",
};

export const tests: ReadonlyMap<string, Test> = new Map([
  ...Object.entries(table),
  ...Object.entries(aliases).map(([alias, name]) => [alias, table[name] as Test] as const),
]);
