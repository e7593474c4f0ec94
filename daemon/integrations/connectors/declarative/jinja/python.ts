// Python's values in JavaScript, and their str(), repr(), truth, equality and order. Text is string, None is null, int is number or
// bigint, a list is an array, a dict is a Map or a plain object of the context; what JavaScript lacks has a class here.
import { setField } from "#contract/json-object.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";

/** A missing value: prints as nothing, is false, and fails once something is asked of it. */
export class Undefined {
  readonly what: string;
  constructor(what: string) {
    this.what = what;
  }
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

function isPythonObject(value: unknown): value is PythonObject {
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

/** The same as a dict: `.name` finds an attribute first, `['name']` an item. */
export class AttributeDict extends Map<unknown, unknown> {
  readonly attributes: Attributed["attributes"];
  constructor({ members, attributes }: Attributed) {
    super(Object.keys(members).map((key) => [key, fromJson(members[key])]));
    this.attributes = attributes;
  }
}

export function isDict(value: unknown): value is Dict {
  return value instanceof Map;
}

/** The context's JSON as Python sees it: objects become Maps, so that no property of JavaScript's is ever reachable. */
export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (value === undefined) return null;
  if (value instanceof ExactNumber) return float(Number(value.digits));
  // A template may change what it is given.
  if (value instanceof HeaderDict) return new HeaderDict(value);
  if (value instanceof Attributed) return new AttributeDict(value);
  if (
    typeof value !== "object" ||
    value === null ||
    value instanceof Map ||
    isPythonObject(value) ||
    value instanceof Callable ||
    value instanceof Float
  )
    return value;
  const map = new Map<unknown, unknown>();
  for (const key of Object.keys(value)) map.set(key, fromJson((value as Record<string, unknown>)[key]));
  return map;
}

/** A Python value as JSON; tuples become arrays, keys text. Values that JSON cannot hold fail. `whole`: what 5.0 becomes. */
export function toJson(value: unknown, whole: (value: Float) => unknown = (each) => each.value): unknown {
  if (value instanceof Float) return whole(value);
  if (value instanceof Tuple) return value.items.map((each) => toJson(each, whole));
  if (Array.isArray(value)) return value.map((each) => toJson(each, whole));
  if (isDict(value)) {
    const object: Record<string, unknown> = {};
    for (const [key, item] of value) setField(object, typeof key === "string" ? key : str(key), toJson(item, whole));
    return object;
  }
  if (value instanceof Undefined) return "";
  if (value instanceof Opaque || isPythonObject(value)) return str(value);
  return value;
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

/** Python's str(). */
export function str(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Undefined) return "";
  if (isPythonObject(value)) return value.str();
  return repr(value);
}

/** Python's repr(). */
export function repr(value: unknown): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return reprText(value);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Float) return reprFloat(value.value);
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value).toString() : reprFloat(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (value instanceof Tuple)
    return value.items.length === 1 ? `(${repr(value.items[0])},)` : `(${value.items.map(repr).join(", ")})`;
  if (isDict(value)) return `{${[...value].map(([key, item]) => `${repr(key)}: ${repr(item)}`).join(", ")}}`;
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Opaque) return value.repr;
  if (value instanceof Callable) return `<function ${value.name}>`;
  if (isPythonObject(value)) return value.repr();
  throw new EvaluationError("a value that templates cannot show");
}

function reprText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let out = quote;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (character === quote || character === "\\") out += `\\${character}`;
    else if (character === "\n") out += "\\n";
    else if (character === "\r") out += "\\r";
    else if (character === "\t") out += "\\t";
    else if (/[\p{C}\p{Z}]/u.test(character) && character !== " ") out += escapeCode(code);
    else out += character;
  }
  return out + quote;
}

function escapeCode(code: number): string {
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

// JavaScript and Python agree on the shortest digits; they differ in when the exponent begins and how it looks.
function reprFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits = "0", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16)
    return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const sign = value < 0 ? "-" : "";
  const bare = digits.replace(/[-.]/g, "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${bare}`;
  const whole = bare.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${bare.slice(exponent + 1) || "0"}`;
}

/** So many places behind the point, of the number as it is exactly; Python rounds halves to the even digit, JavaScript up. */
export function fixed(value: number, places: number): string {
  const sign = Object.is(value, -0) ? "-" : "";
  const rounded = sign + value.toFixed(places);
  const beyond = value.toFixed(100).split(".")[1]?.slice(places) ?? "";
  if (!/^50*$/.test(beyond)) return rounded;
  const below = value.toFixed(places + 1).slice(0, places === 0 ? -2 : -1);
  return /[02468]$/.test(below) ? below : rounded;
}

function general(value: number, precision: number): string {
  const significant = Math.max(1, precision);
  const exponent = Number(value.toExponential(significant - 1).split("e")[1]);
  const [digits = "", power] =
    exponent < -4 || exponent >= significant
      ? exponential(value, significant - 1).split("e")
      : [value.toFixed(significant - 1 - exponent)];
  const short = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  return power === undefined ? short : `${short}e${power}`;
}

function exponential(value: number, places: number): string {
  return value.toExponential(places).replace(/e([+-])(\d)$/, "e$10$2");
}

const RADIX: Readonly<Record<string, number>> = { b: 2, d: 10, o: 8, x: 16 };

/** A number by one of the letters of Python's formats: b, c, d, e, f, g, o, x, the large ones too. Whole numbers only for some. */
export function numberText(value: unknown, letter: string, precision: string | undefined): string {
  const small = letter.toLowerCase();
  const places = Math.min(Number(precision ?? 6), 99);
  if (small === "c" || small in RADIX) {
    if (!isInt(value) && typeof value !== "boolean")
      throw new EvaluationError(`Unknown format code '${letter}' for object of type '${typeName(value)}'`);
    const whole = BigInt(value);
    if (small === "c") return String.fromCodePoint(Number(whole));
    return letter === "X" ? whole.toString(16).toUpperCase() : whole.toString(RADIX[small]);
  }
  const number = asNumber(value);
  if (!Number.isFinite(number)) return repr(number);
  const text =
    small === "f" ? fixed(number, places) : small === "e" ? exponential(number, places) : general(number, places);
  return letter === small ? text : text.toUpperCase();
}

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

function sequence(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  return value instanceof Tuple ? value.items : undefined;
}

/** What a loop over the value yields: characters of a text, keys of a dict. */
export function iterate(value: unknown): readonly unknown[] {
  const items = sequence(value);
  if (items) return items;
  if (typeof value === "string") return [...value];
  if (isDict(value)) return [...value.keys()];
  if (value instanceof Undefined) return [];
  throw new PythonTypeError(`'${typeName(value)}' object is not iterable`);
}

/** What dict() takes: a dict, or pairs. */
export function pairsOf(value: unknown): [unknown, unknown][] {
  if (isDict(value)) return [...value];
  return iterate(value).map((pair) => {
    const items = iterate(pair);
    if (items.length !== 2)
      throw new EvaluationError(`dictionary update sequence element has length ${items.length}; 2 is required`);
    return [items[0], items[1]];
  });
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
