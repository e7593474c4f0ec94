// Python's arithmetic, subscripts and slices over the values of python.ts, with bounds on what a template can make.
import { equals } from "./compare.ts";
import { DAY_US, DateTime, PyDate, TimeDelta } from "./datetime.ts";
import { addDuration } from "./duration.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { numberText } from "./number-text.ts";
import {
  asNumber,
  type Dict,
  defined,
  float,
  int,
  isDict,
  isInt,
  isNumber,
  MAX_INT_BITS,
  Tuple,
  typeName,
  Undefined,
} from "./python.ts";
import { repr, str } from "./repr.ts";

/** The longest text or list that a template may make. */
export const MAX_SIZE = 10_000_000;

type Arithmetic = (left: unknown, right: unknown) => unknown;

const operations: Readonly<Record<string, Arithmetic>> = {
  "+": add,
  "-": subtract,
  "*": multiply,
  "/": divide,
  "//": floorDivide,
  "%": modulo,
  "**": power,
};

export function arithmetic(operator: string, left: unknown, right: unknown): unknown {
  const formats = operator === "%" && typeof left === "string";
  defined(left);
  if (!formats) defined(right);
  const operation = operations[operator];
  if (!operation) throw new EvaluationError(`no operator '${operator}'`);
  return operation(left, right);
}

const unsupported = (operator: string, left: unknown, right: unknown): never => {
  throw new PythonTypeError(
    `unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`,
  );
};

const number = (value: unknown): boolean => isNumber(value) || typeof value === "boolean";
const integer = (value: unknown): boolean => isInt(value) || typeof value === "boolean";
const big = (value: unknown): bigint => BigInt(value as number | bigint | boolean);

function numeric(
  operator: string,
  left: unknown,
  right: unknown,
  whole: (a: bigint, b: bigint) => bigint,
  real: (a: number, b: number) => number,
): unknown {
  if (!number(left) || !number(right)) return unsupported(operator, left, right);
  if (integer(left) && integer(right)) {
    const quick = real(asNumber(left), asNumber(right));
    return Number.isSafeInteger(quick) && typeof left !== "bigint" && typeof right !== "bigint"
      ? quick
      : int(whole(big(left), big(right)));
  }
  return float(real(asNumber(left), asNumber(right)));
}

function add(left: unknown, right: unknown): unknown {
  if (typeof left === "string" && typeof right === "string")
    return bounded(left.length + right.length, () => left + right);
  if (typeof left === "string" || typeof right === "string") {
    if (typeof left === "string")
      throw new PythonTypeError(`can only concatenate str (not "${typeName(right)}") to str`);
    return unsupported("+", left, right);
  }
  if (Array.isArray(left) && Array.isArray(right))
    return bounded(left.length + right.length, () => [...left, ...right]);
  if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items]);
  if (right instanceof TimeDelta) return shift(left, right) ?? unsupported("+", left, right);
  if (left instanceof TimeDelta) return shift(right, left) ?? unsupported("+", left, right);
  return numeric(
    "+",
    left,
    right,
    (a, b) => a + b,
    (a, b) => a + b,
  );
}

function shift(value: unknown, by: TimeDelta): unknown {
  if (value instanceof DateTime) return addDuration(value, by);
  if (value instanceof PyDate) {
    const day = addDuration(new DateTime(BigInt(value.days) * DAY_US, 0), { months: by.months, us: 0n });
    return new PyDate(Number(day.us / DAY_US) + by.days());
  }
  return value instanceof TimeDelta ? new TimeDelta(value.us + by.us, value.months + by.months) : undefined;
}

const scaled = (delta: TimeDelta, count: bigint): TimeDelta =>
  new TimeDelta(delta.us * count, delta.months * Number(count));

function subtract(left: unknown, right: unknown): unknown {
  if (right instanceof TimeDelta) return shift(left, scaled(right, -1n)) ?? unsupported("-", left, right);
  if (left instanceof DateTime && right instanceof DateTime) return new TimeDelta(left.us - right.us);
  if (left instanceof PyDate && right instanceof PyDate)
    return new TimeDelta(BigInt(left.days - right.days) * 86_400_000_000n);
  return numeric(
    "-",
    left,
    right,
    (a, b) => a - b,
    (a, b) => a - b,
  );
}

function multiply(left: unknown, right: unknown): unknown {
  const [sequence, times] = integer(left) && !integer(right) ? [right, left] : [left, right];
  if (integer(times) && (typeof sequence === "string" || Array.isArray(sequence) || sequence instanceof Tuple)) {
    const count = Math.max(0, asNumber(times));
    if (count > MAX_SIZE) throw new EvaluationError(`${count} repetitions are too many`);
    if (typeof sequence === "string") return bounded(sequence.length * count, () => sequence.repeat(count));
    const items = sequence instanceof Tuple ? sequence.items : sequence;
    const repeated = bounded(items.length * count, () => Array.from({ length: count }, () => items).flat(1));
    return sequence instanceof Tuple ? new Tuple(repeated) : repeated;
  }
  if (left instanceof TimeDelta && integer(right)) return scaled(left, big(right));
  if (right instanceof TimeDelta && integer(left)) return scaled(right, big(left));
  return numeric(
    "*",
    left,
    right,
    (a, b) => a * b,
    (a, b) => a * b,
  );
}

function divide(left: unknown, right: unknown): unknown {
  if (left instanceof TimeDelta && right instanceof TimeDelta) return float(Number(left.us) / Number(right.us));
  if (!(number(left) || left instanceof TimeDelta) || !number(right)) return unsupported("/", left, right);
  if (asNumber(right) === 0) throw new EvaluationError("division by zero");
  if (left instanceof TimeDelta) return new TimeDelta(BigInt(Math.round(Number(left.us) / asNumber(right))));
  return float(asNumber(left) / asNumber(right));
}

function floorDivide(left: unknown, right: unknown): unknown {
  if (number(right) && asNumber(right) === 0) throw new EvaluationError("integer division or modulo by zero");
  const whole = (a: bigint, b: bigint): bigint => (a % b !== 0n && a < 0n !== b < 0n ? a / b - 1n : a / b);
  if (left instanceof TimeDelta && right instanceof TimeDelta && right.us !== 0n) return int(whole(left.us, right.us));
  if (left instanceof TimeDelta && integer(right)) return new TimeDelta(whole(left.us, big(right)));
  return numeric("//", left, right, whole, (a, b) => Math.round((a - remainder(a, b)) / b));
}

// Of the divisor's sign, as in Python.
function remainder(a: number, b: number): number {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return rest < 0 !== b < 0 ? rest + b : rest;
}

function modulo(left: unknown, right: unknown): unknown {
  if (typeof left === "string") return formatPercent(left, right);
  if (number(right) && asNumber(right) === 0) throw new EvaluationError("integer modulo by zero");
  return numeric("%", left, right, (a, b) => ((a % b) + b) % b, remainder);
}

function power(left: unknown, right: unknown): unknown {
  if (!number(left) || !number(right)) return unsupported("**", left, right);
  if (integer(left) && integer(right) && asNumber(right) >= 0) {
    const bits = big(left).toString(16).length * 4;
    if (bits * asNumber(right) > 2 * MAX_INT_BITS) throw new EvaluationError("the exponent is too large");
    return int(big(left) ** big(right));
  }
  if (asNumber(left) === 0 && asNumber(right) < 0)
    throw new EvaluationError("0.0 cannot be raised to a negative power");
  return float(asNumber(left) ** asNumber(right));
}

/** printf-style formatting: `'%s-%d' % (a, b)`, and the `format` filter. */
export function formatPercent(format: string, values: unknown): string {
  const list = values instanceof Tuple ? [...values.items] : [values];
  let used = 0;
  const text = format.replace(
    /%(?:\((\w+)\))?([-+ 0#]*)([1-9]\d*)?(?:\.(\d+))?([sdifFgGeExXorc%])/g,
    (_, key: string | undefined, flags: string, width = "", precision: string | undefined, kind: string) => {
      if (kind === "%") return "%";
      if (key === undefined && used >= list.length) throw new PythonTypeError("not enough arguments for format string");
      const value = key === undefined ? list[used++] : isDict(values) ? values.get(key) : undefined;
      const signed = percentOne(value, kind, flags, precision);
      const size = Math.min(Number(width), 1000);
      if (flags.includes("-")) return signed.padEnd(size);
      return flags.includes("0") && !"src".includes(kind)
        ? signed.replace(
            /^([+ -]?)(.*)$/,
            (_all, sign: string, digits: string) => sign + digits.padStart(size - sign.length, "0"),
          )
        : signed.padStart(size);
    },
  );
  if (used < list.length && !isDict(values) && !Array.isArray(values))
    throw new PythonTypeError("not all arguments converted during string formatting");
  return text;
}

function percentOne(value: unknown, kind: string, flags: string, precision: string | undefined): string {
  if (kind === "s" || kind === "r")
    return (kind === "s" ? str(value) : repr(value)).slice(0, Number(precision ?? Infinity));
  if (kind === "c" && typeof value === "string") return value;
  if (!number(value)) throw new PythonTypeError(`%${kind} format: a real number is required, not ${typeName(value)}`);
  const decimal = kind === "d" || kind === "i";
  const whole = decimal && !integer(value) ? Math.trunc(asNumber(value)) : value;
  const text = numberText(whole, decimal ? "d" : kind, precision);
  const mark = flags.includes("#") && "oxX".includes(kind) ? `0${kind}` : "";
  const sign = text.startsWith("-") || kind === "c" ? "" : flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
  return sign + text.replace(/^-?/, (minus) => minus + mark);
}

/** `object[key]`: an item, else Undefined as Jinja's getitem. */
export function item(object: unknown, key: unknown): unknown {
  defined(object);
  if (isDict(object)) return lookup(object, key);
  const items = typeof object === "string" ? [...object] : object instanceof Tuple ? object.items : object;
  if (Array.isArray(items) && integer(key)) {
    const at = asNumber(key);
    const value = items[at < 0 ? items.length + at : at];
    return value === undefined ? new Undefined(`${typeName(object)} object has no element ${at}`) : value;
  }
  return new Undefined(`'${typeName(object)} object' has no attribute ${str(key)}`);
}

export function lookup(dict: Dict, key: unknown): unknown {
  if (dict.has(key)) return dict.get(key);
  if (typeof key === "string") return new Undefined(`'dict object' has no attribute '${key}'`);
  for (const [candidate, value] of dict) if (equals(candidate, key)) return value;
  return new Undefined(`'dict object' has no attribute ${str(key)}`);
}

/** `object[start:stop:step]`. */
export function slice(object: unknown, parts: readonly unknown[]): unknown {
  defined(object);
  const items = typeof object === "string" ? [...object] : object instanceof Tuple ? [...object.items] : object;
  if (!Array.isArray(items)) throw new PythonTypeError(`'${typeName(object)}' object is not subscriptable`);
  const [start, stop, step] = parts.map((part) => (part === undefined || part === null ? undefined : asNumber(part)));
  const by = step ?? 1;
  if (by === 0) throw new EvaluationError("slice step cannot be zero");
  const clamp = (value: number | undefined, otherwise: number): number => {
    if (value === undefined) return otherwise;
    const from = value < 0 ? value + items.length : value;
    return by > 0 ? Math.min(Math.max(from, 0), items.length) : Math.min(Math.max(from, -1), items.length - 1);
  };
  const first = clamp(start, by > 0 ? 0 : items.length - 1);
  const last = clamp(stop, by > 0 ? items.length : -1);
  const out: unknown[] = [];
  for (let at = first; by > 0 ? at < last : at > last; at += by) out.push(items[at]);
  if (typeof object === "string") return out.join("");
  return object instanceof Tuple ? new Tuple(out) : out;
}

function bounded<T>(size: number, make: () => T): T {
  if (size > MAX_SIZE) throw new EvaluationError(`a value of ${size} elements is too large`);
  return make();
}
