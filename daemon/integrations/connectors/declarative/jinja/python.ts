// Python's values in JavaScript. Text is string, None is null, int is number or bigint, a list is an array, a dict is a Map or a plain
// object of the context; what JavaScript lacks has a class here.
import { EvaluationError, UndefinedError } from "./errors.ts";

/** A missing value: prints as nothing, is false, and fails once something is asked of it. */
export class Undefined {
  readonly what: string;
  constructor(what: string) {
    this.what = what;
  }
}

/** The value itself. @throws UndefinedError for a missing one. */
export function defined(value: unknown): unknown {
  if (value instanceof Undefined) throw new UndefinedError(`${value.what} is undefined`);
  return value;
}

/** A float whose value is a whole number; other floats are plain numbers. */
export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class Tuple {
  readonly items: readonly unknown[];
  /** The field names of a named tuple. */
  readonly names: readonly string[];
  constructor(items: readonly unknown[], names: readonly string[] = []) {
    this.items = items;
    this.names = names;
  }
}

/** Python's complex, bytes, set and Ellipsis come out of literals only; they print as they were written. */
export class Opaque {
  readonly type: string;
  readonly repr: string;
  constructor(type: string, repr: string) {
    this.type = type;
    this.repr = repr;
  }
}

/** A function of the evaluator's: the only thing that a template can call. */
export class Callable {
  readonly name: string;
  readonly call: (positional: unknown[], named: ReadonlyMap<string, unknown>) => unknown;
  constructor(name: string, call: (positional: unknown[], named: ReadonlyMap<string, unknown>) => unknown) {
    this.name = name;
    this.call = call;
  }
}

/** What datetime values implement: see datetime.ts. */
export interface PythonObject {
  readonly pythonType: string;
  str(): string;
  repr(): string;
  truth(): boolean;
  /** A value that orders and equals within one type. */
  key(): number | bigint;
}

export function isPythonObject(value: unknown): value is PythonObject {
  return (
    typeof value === "object" &&
    value !== null &&
    "pythonType" in value &&
    typeof (value as PythonObject).str === "function"
  );
}

export type Dict = Map<unknown, unknown>;

/** A dict as `requests` has it for headers: names are found however they are written. */
export class HeaderDict extends Map<unknown, unknown> {
  override has(key: unknown): boolean {
    return super.has(this.#known(key));
  }
  override get(key: unknown): unknown {
    return super.get(this.#known(key));
  }
  #known(key: unknown): unknown {
    return super.has(key) || typeof key !== "string" ? key : key.toLowerCase();
  }
}

/** A value of the context with attributes beside its members. */
export class Attributed {
  readonly members: Readonly<Record<string, unknown>>;
  readonly attributes: Readonly<Record<string, unknown>>;
  constructor(members: Attributed["members"], attributes: Attributed["attributes"]) {
    this.members = members;
    this.attributes = attributes;
  }
}

export function isDict(value: unknown): value is Dict {
  return value instanceof Map;
}

export function isInt(value: unknown): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}

export function isNumber(value: unknown): value is number | bigint | Float {
  return typeof value === "number" || typeof value === "bigint" || value instanceof Float;
}

export function float(value: number): number | Float {
  return Number.isInteger(value) ? new Float(value) : value;
}

/** A template may make no larger integer: of a few characters it would make one that takes minutes to multiply. */
export const MAX_INT_BITS = 100_000;
const MAX_INT = 1n << BigInt(MAX_INT_BITS);

/** @throws EvaluationError for an integer that is too large. */
export function int(value: bigint): number | bigint {
  if (value > MAX_INT || value < -MAX_INT) throw new EvaluationError("the integer is too large");
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}

/** The numeric value as a JavaScript number; booleans count as 0 and 1 as in Python. */
export function asNumber(value: unknown): number {
  if (value instanceof Float) return value.value;
  return Number(value);
}

export function typeName(value: unknown): string {
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "str";
  if (isInt(value)) return "int";
  if (isNumber(value)) return "float";
  if (Array.isArray(value)) return "list";
  if (value instanceof Tuple) return "tuple";
  if (isDict(value)) return "dict";
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Opaque) return value.type;
  if (value instanceof Callable) return "function";
  if (isPythonObject(value)) return value.pythonType;
  return "object";
}

export function truth(value: unknown): boolean {
  if (value === null || value === false || value === "" || value === 0 || value === 0n) return false;
  if (value instanceof Undefined) return false;
  if (value instanceof Float) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (isDict(value)) return value.size > 0;
  if (isPythonObject(value)) return value.truth();
  return true;
}
