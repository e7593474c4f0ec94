import { Arguments } from "./arguments.ts";
import { EvaluationError, PythonTypeError, UndefinedError } from "./errors.ts";
import { capitalize, centred, joined, member, replace, splitLines } from "./methods.ts";
import { arithmetic, formatPercent, item, MAX_SIZE } from "./operators.ts";
import {
  asNumber,
  type Callable,
  compare,
  type Dict,
  equals,
  Float,
  fixed,
  float,
  int,
  isDict,
  isInt,
  isNumber,
  iterate,
  repr,
  str,
  Tuple,
  truth,
  typeName,
  Undefined,
} from "./python.ts";
import { tests } from "./tests.ts";
import {
  escapeHtml,
  hash,
  hmac,
  regexReplace,
  regexSearch,
  tojson,
  truncate,
  urlencode,
  without,
} from "./text-filters.ts";

export type Filter = (value: unknown, args: Arguments) => unknown;

/** As long as a range may be. */
const MAX_SLICES = 100_000;

const text = (value: unknown): string => str(value);

// Jinja's lazy filters take anything false for an empty sequence.
const sequence = (value: unknown): readonly unknown[] => (truth(value) ? iterate(value) : []);

function mapping(value: unknown): Dict {
  if (!isDict(value)) throw new EvaluationError(`'${typeName(value)}' object has no attribute 'items'`);
  return value;
}

function numeric(value: unknown): number {
  if (!isNumber(value) && typeof value !== "boolean")
    throw new PythonTypeError(`must be real number, not ${typeName(value)}`);
  return asNumber(value);
}

function defined(value: unknown): unknown {
  if (value instanceof Undefined) throw new UndefinedError(`${value.what} is undefined`);
  return value;
}

function length(value: unknown): number {
  if (value instanceof Undefined) return 0;
  if (isDict(value)) return value.size;
  if (isNumber(value) || value === null || typeof value === "boolean")
    throw new PythonTypeError(`object of type '${typeName(value)}' has no len()`);
  return iterate(value).length;
}

const MARKED: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16 };
/** As many as Python reads. */
const MAX_DIGITS = 4_300;

// Python's int(text, base): a mark of another base is digits, or nothing that can be read. Undefined where Python raises.
function wholeIn(text: string, base: number): bigint | undefined {
  const [, sign, mark = "", rest = ""] = /^([+-]?)(?:0([box])_?(?=[^_]))?(.*)$/is.exec(text) ?? [];
  const marked = MARKED[mark.toLowerCase()];
  const own = marked !== undefined && (base === 0 || base === marked);
  const radix = own ? marked : base || 10;
  const written = own ? rest : text.replace(/^[+-]/, "");
  if (radix < 2 || radix > 36 || !/^[\da-z]+(?:_[\da-z]+)*$/i.test(written)) return undefined;
  const digits = written.replaceAll("_", "");
  if (digits.length > MAX_DIGITS) return undefined;
  let value = 0n;
  for (const each of digits) {
    const digit = Number.parseInt(each, 36);
    if (digit >= radix) return undefined;
    value = value * BigInt(radix) + BigInt(digit);
  }
  return sign === "-" ? -value : value;
}

function toInt(value: unknown, args: Arguments): unknown {
  const otherwise = args.any(0, "default", 0);
  const base = args.number(1, "base", 10);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "string") {
    const whole = wholeIn(value.trim(), base);
    if (whole !== undefined) return int(whole);
    const digits = value.trim().replace(/(?<=\d)_(?=\d)/g, "");
    const float = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(digits) ? Number(digits) : Number.NaN;
    return Number.isFinite(float) ? int(BigInt(Math.trunc(float))) : otherwise;
  }
  if (isNumber(value))
    return typeof value === "bigint"
      ? value
      : Number.isFinite(asNumber(value))
        ? Math.trunc(asNumber(value)) + 0
        : otherwise;
  return value instanceof Undefined ? failUndefined(value) : otherwise;
}

const failUndefined = (value: Undefined): never => {
  throw new UndefinedError(`${value.what} is undefined`);
};

function toFloat(value: unknown, args: Arguments): unknown {
  const otherwise = args.any(0, "default", new Float(0));
  if (isNumber(value) || typeof value === "boolean") return float(asNumber(value));
  if (typeof value === "string" && /^\s*[+-]?(\d+(_\d+)*(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/.test(value))
    return float(Number(value.replaceAll("_", "")));
  return value instanceof Undefined ? failUndefined(value) : otherwise;
}

/** The value of `attribute` ("a.b.0") of an item, as map, sort, groupby and their like read it. */
function attributeOf(subject: unknown, path: unknown, otherwise?: unknown): unknown {
  if (isInt(path)) return item(subject, path);
  let value = subject;
  for (const part of String(path).split("."))
    value = /^\d+$/.test(part) ? item(value, Number(part)) : isDict(value) ? item(value, part) : member(value, part);
  return value instanceof Undefined && otherwise !== undefined ? otherwise : value;
}

function map(value: unknown, args: Arguments): unknown {
  if (args.named.has("attribute"))
    return sequence(value).map((each) => attributeOf(each, args.named.get("attribute"), args.named.get("default")));
  const name = args.text(0, "filter");
  const filter = filters.get(name);
  if (!filter) throw new EvaluationError(`No filter named '${name}'.`);
  const rest = new Arguments(name, args.positional.slice(1), args.named);
  return sequence(value).map((each) => filter(each, rest));
}

function choose(value: unknown, args: Arguments, keep: boolean, byAttribute: boolean): unknown[] {
  const from = byAttribute ? 1 : 0;
  const name = args.positional.length > from ? String(args.positional[from]) : undefined;
  const test = name === undefined ? undefined : tests.get(name);
  if (name !== undefined && !test) throw new EvaluationError(`No test named '${name}'.`);
  return sequence(value).filter((each) => {
    const subject = byAttribute ? attributeOf(each, args.required(0, "attribute")) : each;
    return (test ? test(subject, args.positional.slice(from + 1)) : truth(subject)) === keep;
  });
}

function sorted(value: unknown, reverse: boolean, caseSensitive: boolean, attribute: unknown): unknown[] {
  const key = (each: unknown): unknown => {
    const found =
      attribute === null || attribute === undefined
        ? each
        : String(attribute).includes(",")
          ? String(attribute)
              .split(",")
              .map((one) => attributeOf(each, one))
          : attributeOf(each, attribute);
    return !caseSensitive && typeof found === "string" ? found.toLowerCase() : found;
  };
  const keyed = iterate(value).map((each) => [key(each), each] as const);
  keyed.sort(([a], [b]) => (reverse ? compare(b, a) : compare(a, b)));
  return keyed.map(([, each]) => each);
}

function unique(value: unknown, args: Arguments): unknown[] {
  const caseSensitive = truth(args.any(0, "case_sensitive", false));
  // Texts and whole numbers are looked up: to compare each with each takes quadratic time.
  const plain = new Set<unknown>();
  const others: unknown[] = [];
  return iterate(value).filter((each) => {
    const found = args.has(1, "attribute") ? attributeOf(each, args.any(1, "attribute")) : each;
    const key = !caseSensitive && typeof found === "string" ? found.toLowerCase() : found;
    const number = isNumber(key) || typeof key === "boolean" ? asNumber(key) : undefined;
    if (typeof key === "string" || Number.isSafeInteger(number)) {
      const before = plain.size;
      return plain.add(number ?? key).size > before;
    }
    if (others.some((other) => equals(other, key))) return false;
    others.push(key);
    return true;
  });
}

function groupBy(value: unknown, args: Arguments): unknown[] {
  const attribute = args.required(0, "attribute");
  const groups: [unknown, unknown[]][] = [];
  for (const each of sorted(value, false, false, attribute)) {
    const key = attributeOf(each, attribute, args.any(1, "default"));
    const last = groups.at(-1);
    if (last && equals(last[0], key)) last[1].push(each);
    else groups.push([key, [each]]);
  }
  return groups.map((group) => new Tuple(group, ["grouper", "list"]));
}

// Python rounds halves to the even neighbour; `method` may ask for ceil or floor.
function round(value: unknown, args: Arguments): unknown {
  const precision = args.number(0, "precision", 0);
  const method = args.text(1, "method", "common");
  const number = numeric(defined(value));
  if (method === "common" && (isInt(value) || typeof value === "boolean")) return isInt(value) ? value : number;
  const scale = 10 ** precision;
  if (method !== "common") return float((method === "ceil" ? Math.ceil : Math.floor)(number * scale) / scale);
  return float(
    precision < 0 ? Number(fixed(number * scale, 0)) / scale : Number(fixed(number, Math.min(precision, 99))),
  );
}

function sum(value: unknown, args: Arguments): unknown {
  return iterate(value).reduce(
    (total, each) =>
      arithmetic(
        "+",
        total,
        args.has(0, "attribute") && args.any(0, "attribute") !== null
          ? attributeOf(each, args.any(0, "attribute"))
          : each,
      ),
    args.any(1, "start", 0),
  );
}

function join(value: unknown, args: Arguments): string {
  const attribute = args.any(1, "attribute", null);
  return joined(
    iterate(value).map((each) => text(attribute === null ? each : attributeOf(each, attribute))),
    text(args.any(0, "d", "")),
  );
}

function batch(value: unknown, args: Arguments): unknown[][] {
  const size = Math.max(1, args.number(0, "linecount"));
  const items = iterate(value);
  const rows = Array.from({ length: Math.ceil(items.length / size) }, (_, at) =>
    items.slice(at * size, at * size + size),
  );
  const fill = args.any(1, "fill_with", null);
  const last = rows.at(-1);
  if (fill !== null && size > MAX_SLICES) throw new EvaluationError(`${size} are too many for one batch`);
  return fill !== null && last
    ? [...rows.slice(0, -1), [...last, ...Array<unknown>(size - last.length).fill(fill)]]
    : rows;
}

function fileSize(bytes: number, binary: boolean): string {
  const base = binary ? 1024 : 1000;
  if (bytes === 1) return "1 Byte";
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const units = binary ? ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"] : ["kB", "MB", "GB", "TB", "PB", "EB", "ZB"];
  let unit = 1;
  while (unit < units.length && bytes >= base ** (unit + 1)) unit++;
  return `${fixed(bytes / base ** unit, 1)} ${units[unit - 1]}`;
}

const orUndefined = (value: unknown, what: string): unknown => (value === undefined ? new Undefined(what) : value);

const table: Readonly<Record<string, Filter>> = {
  abs: (v) =>
    v instanceof Float
      ? new Float(Math.abs(v.value))
      : typeof v === "bigint"
        ? v < 0n
          ? -v
          : v
        : Math.abs(numeric(defined(v))),
  attr: (v, a) => member(v, a.text(0, "name")),
  base64encode: (v) => Buffer.from(text(v), "utf8").toString("base64"),
  base64decode: (v) => Buffer.from(text(v), "base64").toString("utf8"),
  // Whatever its name says: manifests are written for what the reference does.
  base64binascii_decode: (v) => Buffer.from(text(v)).toString("base64"),
  batch,
  capitalize: (v) => capitalize(text(v)),
  center: (v, a) => centred(text(v), Math.min(a.number(0, "width", 80), MAX_SIZE)),
  count: (v) => length(v),
  default: (v, a) =>
    v instanceof Undefined || (truth(a.any(1, "boolean", false)) && !truth(v)) ? a.any(0, "default_value", "") : v,
  dictsort: (v, a) => {
    const by = a.text(1, "by", "key") === "value" ? 1 : 0;
    const entries = [...mapping(v)].map((entry) => [entry[by], new Tuple(entry)] as const);
    const key = (each: unknown): unknown =>
      typeof each === "string" && !truth(a.any(0, "case_sensitive", false)) ? each.toLowerCase() : each;
    entries.sort(([x], [y]) => compare(key(x), key(y)) * (truth(a.any(2, "reverse", false)) ? -1 : 1));
    return entries.map(([, entry]) => entry);
  },
  escape: escapeHtml,
  filesizeformat: (v, a) => fileSize(numeric(toFloat(defined(v), a)), truth(a.any(0, "binary", false))),
  first: (v) => orUndefined(iterate(v)[0], "No first item, sequence was empty."),
  float: toFloat,
  forceescape: escapeHtml,
  format: (v, a) => formatPercent(text(v), a.named.size ? new Map(a.named) : new Tuple(a.positional)),
  groupby: groupBy,
  hash,
  hmac,
  indent: (v, a) => {
    const pad =
      typeof a.any(0, "width", 4) === "string"
        ? String(a.any(0, "width"))
        : " ".repeat(Math.min(a.number(0, "width", 4), 1000));
    const whole = text(v);
    const [head = "", ...lines] = splitLines(`${whole}\n`);
    if (whole.length + pad.length * (lines.length + 1) > MAX_SIZE)
      throw new EvaluationError("the indented text is too large");
    return [
      truth(a.any(1, "first", false)) ? pad + head : head,
      ...lines.map((line) => (line || truth(a.any(2, "blank", false)) ? pad + line : line)),
    ].join("\n");
  },
  int: toInt,
  items: (v) => (v instanceof Undefined ? [] : [...mapping(v)].map((entry) => new Tuple(entry))),
  join,
  last: (v) => orUndefined(iterate(v).at(-1), "No last item, sequence was empty."),
  length: (v) => length(v),
  list: (v) => [...iterate(v)],
  lower: (v) => text(v).toLowerCase(),
  map,
  max: (v, a) =>
    orUndefined(
      sorted(v, true, truth(a.any(0, "case_sensitive", false)), a.any(1, "attribute", null))[0],
      "No aggregated item, sequence was empty.",
    ),
  min: (v, a) =>
    orUndefined(
      sorted(v, false, truth(a.any(0, "case_sensitive", false)), a.any(1, "attribute", null))[0],
      "No aggregated item, sequence was empty.",
    ),
  pprint: (v) => repr(v),
  random: (v) =>
    orUndefined(iterate(v)[Math.floor(Math.random() * iterate(v).length)], "No random item, sequence was empty."),
  regex_replace: regexReplace,
  regex_search: regexSearch,
  reject: (v, a) => choose(v, a, false, false),
  rejectattr: (v, a) => choose(v, a, false, true),
  replace: (v, a) =>
    replace(
      text(v),
      text(a.required(0, "old")),
      text(a.required(1, "new")),
      a.any(2, "count", null) === null ? -1 : a.number(2, "count"),
    ),
  reverse: (v) => (typeof v === "string" ? [...v].reverse().join("") : [...iterate(v)].reverse()),
  round,
  safe: (v) => v,
  select: (v, a) => choose(v, a, true, false),
  selectattr: (v, a) => choose(v, a, true, true),
  slice: (v, a) => {
    const items = [...iterate(v)];
    const count = a.number(0, "slices");
    if (count > MAX_SLICES) throw new EvaluationError(`${count} slices are too many`);
    const [each, extra] = [Math.floor(items.length / count), items.length % count];
    const fill = a.any(1, "fill_with", null);
    return Array.from({ length: count }, (_, at) => {
      const part = items.slice(at * each + Math.min(at, extra), (at + 1) * each + Math.min(at + 1, extra));
      return fill !== null && at >= extra ? [...part, fill] : part;
    });
  },
  sort: (v, a) =>
    sorted(v, truth(a.any(0, "reverse", false)), truth(a.any(1, "case_sensitive", false)), a.any(2, "attribute", null)),
  string: (v) => text(v),
  striptags: (v) =>
    without(without(text(v), "<!--", "-->"), "<", ">")
      .replace(/\s+/g, " ")
      .trim(),
  sum,
  // Jinja's own idea of a word, which is not str.title()'s.
  title: (v) => text(v).replace(/[^-\s({[<]+/g, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase()),
  tojson,
  trim: (v, a) =>
    a.any(0, "chars", null) === null
      ? text(v).trim()
      : str((member(text(v), "strip") as Callable).call([a.any(0, "chars")], new Map())),
  truncate: (v, a) => truncate(text(v), a),
  unique,
  upper: (v) => text(v).toUpperCase(),
  urlencode,
  wordcount: (v) => text(v).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  xmlattr: (v) =>
    [...mapping(v)]
      .filter(([, each]) => each !== null && !(each instanceof Undefined))
      .map(([key, each]) => ` ${text(key)}="${escapeHtml(each)}"`)
      .join(""),
};

export const filters: ReadonlyMap<string, Filter> = new Map([
  ...Object.entries(table),
  ["d", table["default"] as Filter],
  ["e", escapeHtml],
]);
