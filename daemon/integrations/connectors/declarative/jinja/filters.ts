// Jinja's filters, and the reference's own: the table of all, with those that are short or call others.
import { Arguments } from "./arguments.ts";
import { compare } from "./compare.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { iterate } from "./iterate.ts";
import { member } from "./methods.ts";
import { fileSize, numeric, round, toFloat, toInt } from "./number-filters.ts";
import { formatPercent, MAX_SIZE } from "./operators.ts";
import {
  type Callable,
  type Dict,
  defined,
  Float,
  isDict,
  isNumber,
  Tuple,
  truth,
  typeName,
  Undefined,
} from "./python.ts";
import { repr, str } from "./repr.ts";
import { attributeOf, batch, groupBy, join, MAX_SLICES, sorted, sum, unique } from "./sequence-filters.ts";
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
import { capitalize, centred, replace, splitLines } from "./texts.ts";

export type Filter = (value: unknown, args: Arguments) => unknown;

// Jinja's lazy filters take anything false for an empty sequence.
const sequence = (value: unknown): readonly unknown[] => (truth(value) ? iterate(value) : []);

function mapping(value: unknown): Dict {
  if (!isDict(value)) throw new EvaluationError(`'${typeName(value)}' object has no attribute 'items'`);
  return value;
}

function length(value: unknown): number {
  if (value instanceof Undefined) return 0;
  if (isDict(value)) return value.size;
  if (isNumber(value) || value === null || typeof value === "boolean")
    throw new PythonTypeError(`object of type '${typeName(value)}' has no len()`);
  return iterate(value).length;
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

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// Of what is no text in base64 (an API key pasted as it is) nothing but noise would be sent.
function fromBase64(text: string): string {
  try {
    return utf8.decode(Buffer.from(text, "base64"));
  } catch {
    throw new EvaluationError("base64decode needs text in base64");
  }
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
  base64encode: (v) => Buffer.from(str(v), "utf8").toString("base64"),
  base64decode: (v) => fromBase64(str(v)),
  // Whatever its name says: manifests are written for what the reference does.
  base64binascii_decode: (v) => Buffer.from(str(v)).toString("base64"),
  batch,
  capitalize: (v) => capitalize(str(v)),
  center: (v, a) => centred(str(v), Math.min(a.number(0, "width", 80), MAX_SIZE)),
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
  format: (v, a) => formatPercent(str(v), a.named.size ? new Map(a.named) : new Tuple(a.positional)),
  groupby: groupBy,
  hash,
  hmac,
  indent: (v, a) => {
    const pad =
      typeof a.any(0, "width", 4) === "string"
        ? String(a.any(0, "width"))
        : " ".repeat(Math.min(a.number(0, "width", 4), 1000));
    const whole = str(v);
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
  lower: (v) => str(v).toLowerCase(),
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
      str(v),
      str(a.required(0, "old")),
      str(a.required(1, "new")),
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
  string: (v) => str(v),
  striptags: (v) =>
    without(without(str(v), "<!--", "-->"), "<", ">")
      .replace(/\s+/g, " ")
      .trim(),
  sum,
  // Jinja's own idea of a word, which is not str.title()'s.
  title: (v) => str(v).replace(/[^-\s({[<]+/g, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase()),
  tojson,
  trim: (v, a) =>
    a.any(0, "chars", null) === null
      ? str(v).trim()
      : str((member(str(v), "strip") as Callable).call([a.any(0, "chars")], new Map())),
  truncate: (v, a) => truncate(str(v), a),
  unique,
  upper: (v) => str(v).toUpperCase(),
  urlencode,
  wordcount: (v) => str(v).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  xmlattr: (v) =>
    [...mapping(v)]
      .filter(([, each]) => each !== null && !(each instanceof Undefined))
      .map(([key, each]) => ` ${str(key)}="${escapeHtml(each)}"`)
      .join(""),
};

export const filters: ReadonlyMap<string, Filter> = new Map([
  ...Object.entries(table),
  ["d", table["default"] as Filter],
  ["e", escapeHtml],
]);
