// The methods and attributes of Python's values that a template may use. Nothing else is reachable: not JavaScript's, not Python's own internals.
import { Arguments } from "./arguments.ts";
import { strftime } from "./date-text.ts";
import { DateTime, fields, PyDate, TimeDelta } from "./datetime.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { lookup, MAX_SIZE } from "./operators.ts";
import {
  AttributeDict,
  asNumber,
  Callable,
  compare,
  type Dict,
  equals,
  fixed,
  float,
  fromJson,
  isDict,
  iterate,
  numberText,
  pairsOf,
  repr,
  str,
  Tuple,
  truth,
  typeName,
  Undefined,
} from "./python.ts";

type Method<T> = (self: T, args: Arguments) => unknown;

const chars = (args: Arguments): string | undefined => {
  const given = args.any(0, "chars", null);
  return given === null ? undefined : String(given);
};

function stripped(text: string, set: string | undefined, start: boolean, end: boolean): string {
  const drop = (character: string | undefined): boolean =>
    character !== undefined && (set === undefined ? /\s/.test(character) : set.includes(character));
  let [from, to] = [0, text.length];
  while (start && from < to && drop(text[from])) from++;
  while (end && to > from && drop(text[to - 1])) to--;
  return text.slice(from, to);
}

const title = (text: string): string =>
  text.toLowerCase().replace(/\p{L}+/gu, (word) => word.charAt(0).toUpperCase() + word.slice(1));
export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();

function split(text: string, args: Arguments, fromEnd: boolean): string[] {
  const separator = args.any(0, "sep", null);
  const limit = args.number(1, "maxsplit", -1);
  if (separator === "") throw new EvaluationError("empty separator");
  const parts = separator === null ? text.split(/\s+/).filter(Boolean) : text.split(String(separator));
  if (limit < 0 || parts.length <= limit + 1) return parts;
  if (separator !== null) {
    const joint = String(separator);
    return fromEnd
      ? [parts.slice(0, parts.length - limit).join(joint), ...parts.slice(parts.length - limit)]
      : [...parts.slice(0, limit), parts.slice(limit).join(joint)];
  }
  const words = [...text.matchAll(/\S+/g)];
  if (fromEnd)
    return [text.slice(0, endOf(words[parts.length - limit - 1])).trimStart(), ...parts.slice(parts.length - limit)];
  return [...parts.slice(0, limit), text.slice(words[limit]?.index).trimEnd()];
}

/** In the middle; what cannot be shared alike goes to the left where the width is odd, as in Python. */
export function centred(text: string, width: number, fill = " "): string {
  const room = Math.max(0, width - text.length);
  return text.padStart(text.length + Math.floor(room / 2) + (room & width & 1), fill).padEnd(width, fill);
}

/** str.splitlines: without what ends them, unless `ends`. */
export function splitLines(text: string, ends = false): string[] {
  const parts = text.split(/(\r\n|[\n\r\v\f\u0085\u2028\u2029])/);
  const lines: string[] = [];
  for (let at = 0; at < parts.length; at += 2)
    if (at + 1 < parts.length || parts[at] !== "") lines.push(`${parts[at]}${ends ? (parts[at + 1] ?? "") : ""}`);
  return lines;
}

/** @throws EvaluationError where the text would be too large. */
export function joined(items: readonly string[], separator: string): string {
  const size = items.reduce((total, each) => total + each.length, separator.length * items.length);
  if (size > MAX_SIZE) throw new EvaluationError("the joined text is too large");
  return items.join(separator);
}

const endOf = (match: RegExpMatchArray | undefined): number => (match?.index ?? 0) + (match?.[0].length ?? 0);

export function replace(text: string, from: string, to: string, count = -1): string {
  // Before each character, and at the end.
  if (from === "") {
    const places = [...text, ""].map((character, at) => (count < 0 || at < count ? to + character : character));
    return joined(places, "");
  }
  if (count < 0) {
    const size = text.length + (text.split(from).length - 1) * (to.length - from.length);
    if (size > MAX_SIZE) throw new EvaluationError("the replaced text is too large");
    return text.replaceAll(from, () => to);
  }
  let [out, at] = ["", 0];
  for (let left = count; left > 0; left--) {
    const found = text.indexOf(from, at);
    if (found < 0) break;
    out += text.slice(at, found) + to;
    at = found + from.length;
  }
  return out + text.slice(at);
}

function affix(value: unknown): readonly string[] {
  const texts = value instanceof Tuple ? value.items : [value];
  if (texts.every((each) => typeof each === "string")) return texts;
  throw new PythonTypeError("startswith first arg must be str or a tuple of str");
}

/** str.format: `{}`, `{0}`, `{name}`, `{:05.2f}`, with attribute and item look-ups left out as the sandbox does for private names. */
function format(template: string, args: Arguments): string {
  let automatic = 0;
  return template.replace(
    /\{\{|\}\}|\{([^{}:!]*)(?:!([rsa]))?(?::([^{}]*))?\}/g,
    (whole, field: string | undefined, conversion: string | undefined, spec = "") => {
      if (whole === "{{" || whole === "}}") return whole.charAt(0);
      const [, name = "", rest = ""] = /^([^.[]*)(.*)$/.exec(field ?? "") ?? [];
      let value: unknown =
        name === ""
          ? args.positional[automatic++]
          : /^\d+$/.test(name)
            ? args.positional[Number(name)]
            : args.named.get(name);
      if (value === undefined)
        throw new EvaluationError(
          /^\d*$/.test(name) ? "Replacement index out of range for positional args tuple" : `'${name}'`,
        );
      for (const [, attribute, key] of rest.matchAll(/\.(\w+)|\[([^\]]+)\]/g))
        value = attribute ? member(value, attribute) : isDict(value) ? lookup(value, key) : iterate(value)[Number(key)];
      return formatSpec(conversion === "s" ? str(value) : conversion ? repr(value) : value, spec);
    },
  );
}

function formatSpec(value: unknown, spec: string): string {
  if (value instanceof DateTime || value instanceof PyDate) return spec ? strftime(value, spec) : str(value);
  const found = /^(?:(.)?([<>^=]))?([+ -])?(#)?(0)?(\d+)?(,|_)?(?:\.(\d+))?([bcdeEfFgGnosxX%])?$/su.exec(spec);
  if (!found) throw new EvaluationError(`Invalid format specifier '${spec}'`);
  const [, fill = " ", align, sign, marked, zero, width = "0", comma, precision, kind] = found;
  let text = formatted(value, kind, precision);
  const isNumberText = typeof value !== "string";
  if (comma && isNumberText) text = text.replace(/^-?\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, comma));
  if (marked && kind && "boxX".includes(kind)) text = text.replace(/^-?/, (minus) => `${minus}0${kind}`);
  if (sign && sign !== "-" && isNumberText && !text.startsWith("-")) text = sign + text;
  const size = Math.min(Number(width), 10_000);
  if (zero && !align)
    return text.replace(
      /^([+ -]?)(.*)$/s,
      (_all, mark: string, digits: string) => mark + digits.padStart(size - mark.length, "0"),
    );
  const direction = align ?? (isNumberText ? ">" : "<");
  if (direction === "<") return text.padEnd(size, fill);
  if (direction === "^")
    return text.padStart(text.length + Math.floor(Math.max(0, size - text.length) / 2), fill).padEnd(size, fill);
  return text.padStart(size, fill);
}

function formatted(value: unknown, kind: string | undefined, precision: string | undefined): string {
  if (typeof value === "string") {
    if (kind && kind !== "s") throw new EvaluationError(`Unknown format code '${kind}' for object of type 'str'`);
    return precision === undefined ? value : value.slice(0, Number(precision));
  }
  if (kind === "s") throw new EvaluationError(`Unknown format code 's' for object of type '${typeName(value)}'`);
  if (kind === "%") return `${fixed(asNumber(value) * 100, Math.min(Number(precision ?? 6), 99))}%`;
  if (kind === undefined && precision === undefined) return str(value);
  return numberText(value, kind === undefined || kind === "n" ? "g" : kind, precision);
}

const text: Readonly<Record<string, Method<string>>> = {
  upper: (s) => s.toUpperCase(),
  lower: (s) => s.toLowerCase(),
  casefold: (s) => s.toLowerCase().replaceAll("ß", "ss"),
  title: (s) => title(s),
  capitalize: (s) => capitalize(s),
  swapcase: (s) => [...s].map((c) => (c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase())).join(""),
  strip: (s, a) => stripped(s, chars(a), true, true),
  lstrip: (s, a) => stripped(s, chars(a), true, false),
  rstrip: (s, a) => stripped(s, chars(a), false, true),
  split: (s, a) => split(s, a.bind("sep", "maxsplit"), false),
  rsplit: (s, a) => split(s, a.bind("sep", "maxsplit"), true),
  splitlines: (s, a) => splitLines(s, truth(a.any(0, "keepends", false))),
  join: (s, a) => {
    const items = iterate(a.required(0, "iterable"));
    items.forEach((item, at) => {
      if (typeof item !== "string")
        throw new PythonTypeError(`sequence item ${at}: expected str instance, ${typeName(item)} found`);
    });
    return joined(items as readonly string[], s);
  },
  replace: (s, a) => replace(s, a.text(0, "old"), a.text(1, "new"), a.number(2, "count", -1)),
  startswith: (s, a) =>
    affix(a.required(0, "prefix")).some((prefix) => s.slice(a.number(1, "start", 0)).startsWith(prefix)),
  endswith: (s, a) => affix(a.required(0, "suffix")).some((suffix) => s.endsWith(suffix)),
  removeprefix: (s, a) => (s.startsWith(a.text(0, "prefix")) ? s.slice(a.text(0, "prefix").length) : s),
  removesuffix: (s, a) =>
    a.text(0, "suffix") && s.endsWith(a.text(0, "suffix")) ? s.slice(0, -a.text(0, "suffix").length) : s,
  find: (s, a) => s.indexOf(a.text(0, "sub"), a.number(1, "start", 0)),
  rfind: (s, a) => s.lastIndexOf(a.text(0, "sub")),
  index: (s, a) => found(s.indexOf(a.text(0, "sub"))),
  rindex: (s, a) => found(s.lastIndexOf(a.text(0, "sub"))),
  count: (s, a) => (a.text(0, "sub") ? s.split(a.text(0, "sub")).length - 1 : s.length + 1),
  format: (s, a) => format(s, a),
  format_map: (s, a) => format(s, new Arguments("format_map", [], a.required(0, "mapping") as Map<string, unknown>)),
  zfill: (s, a) =>
    s.replace(/^([+-]?)(.*)$/s, (_all, sign: string, rest: string) => sign + rest.padStart(size(a) - sign.length, "0")),
  ljust: (s, a) => s.padEnd(size(a), a.text(1, "fillchar", " ")),
  rjust: (s, a) => s.padStart(size(a), a.text(1, "fillchar", " ")),
  center: (s, a) => centred(s, size(a), a.text(1, "fillchar", " ")),
  partition: (s, a) => {
    const at = s.indexOf(a.text(0, "sep"));
    return new Tuple(at < 0 ? [s, "", ""] : [s.slice(0, at), a.text(0, "sep"), s.slice(at + a.text(0, "sep").length)]);
  },
  rpartition: (s, a) => {
    const at = s.lastIndexOf(a.text(0, "sep"));
    return new Tuple(at < 0 ? ["", "", s] : [s.slice(0, at), a.text(0, "sep"), s.slice(at + a.text(0, "sep").length)]);
  },
  isdigit: (s) => /^\p{Nd}+$/u.test(s),
  isdecimal: (s) => /^\p{Nd}+$/u.test(s),
  isnumeric: (s) => /^\p{N}+$/u.test(s),
  isalpha: (s) => /^\p{L}+$/u.test(s),
  isalnum: (s) => /^[\p{L}\p{N}]+$/u.test(s),
  isspace: (s) => /^\s+$/.test(s),
  isupper: (s) => s !== s.toLowerCase() && s === s.toUpperCase(),
  islower: (s) => s !== s.toUpperCase() && s === s.toLowerCase(),
  istitle: (s) => s !== "" && /\p{L}/u.test(s) && s === title(s),
  isascii: (s) => /^[\0-\x7f]*$/.test(s),
  isprintable: (s) => !/[\p{C}\p{Z}]/u.test(s.replaceAll(" ", "")),
  isidentifier: (s) => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(s),
  encode: (s) => s,
  expandtabs: (s, a) => s.replaceAll("\t", " ".repeat(Math.min(a.number(0, "tabsize", 8), 100))),
};

function found(at: number): number {
  if (at < 0) throw new EvaluationError("substring not found");
  return at;
}

const size = (args: Arguments): number => Math.min(args.number(0, "width"), MAX_SIZE);

const dict: Readonly<Record<string, Method<Dict>>> = {
  get: (d, a) => {
    const found = lookup(d, a.required(0, "key"));
    return found instanceof Undefined ? a.any(1, "default", null) : found;
  },
  keys: (d) => [...d.keys()],
  values: (d) => [...d.values()],
  items: (d) => [...d].map((entry) => new Tuple(entry)),
  copy: (d) => new Map(d),
  // The sandbox lets a template change its own values: manifests use update, setdefault and pop on them.
  update: (d, a) => {
    for (const [key, value] of [...pairsOf(a.any(0, "other", [])), ...a.named]) d.set(key, value);
    return null;
  },
  setdefault: (d, a) => {
    if (!d.has(a.required(0, "key"))) d.set(a.required(0, "key"), a.any(1, "default", null));
    return d.get(a.required(0, "key"));
  },
  pop: (d, a) => {
    const key = a.required(0, "key");
    if (!d.has(key) && !a.has(1, "default")) throw new EvaluationError(str(key));
    const value = d.has(key) ? d.get(key) : a.any(1, "default");
    d.delete(key);
    return value;
  },
};

const list: Readonly<Record<string, Method<readonly unknown[]>>> = {
  index: (l, a) => {
    const at = l.findIndex((item) => equals(item, a.required(0, "value")));
    if (at < 0) throw new EvaluationError(`${str(a.required(0, "value"))} is not in list`);
    return at;
  },
  count: (l, a) => l.filter((item) => equals(item, a.required(0, "value"))).length,
  copy: (l) => [...l],
};

const mutations: Readonly<Record<string, Method<unknown[]>>> = {
  append: (l, a) => {
    if (l.length >= MAX_SIZE) throw new EvaluationError("the list is too large");
    l.push(a.required(0, "object"));
    return null;
  },
  extend: (l, a) => {
    for (const item of iterate(a.required(0, "iterable"))) l.push(item);
    return null;
  },
  pop: (l, a) => l.splice(a.number(0, "index", -1), 1)[0] ?? new Undefined("list"),
  insert: (l, a) => {
    l.splice(a.number(0, "index"), 0, a.required(1, "object"));
    return null;
  },
  remove: (l, a) => {
    l.splice(list["index"]?.(l, a) as number, 1);
    return null;
  },
  reverse: (l) => {
    l.reverse();
    return null;
  },
  sort: (l, a) => {
    l.sort((x, y) => (truth(a.any(1, "reverse", false)) ? compare(y, x) : compare(x, y)));
    return null;
  },
};

const dateTime: Readonly<Record<string, Method<DateTime | PyDate>>> = {
  strftime: (d, a) => strftime(d, a.text(0, "format")),
  isoformat: (d, a) =>
    d instanceof DateTime ? d.isoformat(a.text(0, "sep", "T"), a.text(1, "timespec", "auto")) : d.str(),
  date: (d) =>
    new PyDate(
      Number(
        (BigInt.asIntN(64, fieldsUs(d)) - (((fieldsUs(d) % 86_400_000_000n) + 86_400_000_000n) % 86_400_000_000n)) /
          86_400_000_000n,
      ),
    ),
  timestamp: (d) => float(d instanceof DateTime ? Number(d.us) / 1e6 : d.days * 86_400),
  weekday: (d) => fields(d).weekday,
  isoweekday: (d) => fields(d).weekday + 1,
  replace: (d, a) => replaceFields(d, a),
};

const fieldsUs = (value: DateTime | PyDate): bigint =>
  value instanceof PyDate ? BigInt(value.days) * 86_400_000_000n : value.us + BigInt(value.offset ?? 0) * 60_000_000n;

function replaceFields(value: DateTime | PyDate, args: Arguments): DateTime | PyDate {
  args.bind("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo");
  const f = fields(value);
  const offset = BigInt(value instanceof DateTime ? (value.offset ?? 0) : 0) * 60_000_000n;
  const date = new Date(0);
  date.setUTCFullYear(
    args.number(0, "year", f.year),
    args.number(1, "month", f.month) - 1,
    args.number(2, "day", f.day),
  );
  date.setUTCHours(
    args.number(3, "hour", f.hour),
    args.number(4, "minute", f.minute),
    args.number(5, "second", f.second),
  );
  if (value instanceof PyDate) return new PyDate(Math.floor(date.getTime() / 86_400_000));
  return new DateTime(
    BigInt(date.getTime()) * 1000n + BigInt(args.number(6, "microsecond", f.micro)) - offset,
    value.offset,
  );
}

const dateFields: Readonly<Record<string, (value: DateTime | PyDate) => unknown>> = {
  year: (d) => fields(d).year,
  month: (d) => fields(d).month,
  day: (d) => fields(d).day,
  hour: (d) => fields(d).hour,
  minute: (d) => fields(d).minute,
  second: (d) => fields(d).second,
  microsecond: (d) => fields(d).micro,
};

const delta: Readonly<Record<string, (value: TimeDelta) => unknown>> = {
  days: (d) => d.days(),
  seconds: (d) => Number((d.us - BigInt(d.days()) * 86_400_000_000n) / 1_000_000n),
  microseconds: (d) => Number(((d.us % 1_000_000n) + 1_000_000n) % 1_000_000n),
};

const method = <T>(table: Readonly<Record<string, Method<T>>>, self: T, name: string): Callable | undefined => {
  const found = Object.hasOwn(table, name) ? table[name] : undefined;
  return found && new Callable(name, (positional, named) => found(self, new Arguments(name, positional, named)));
};

/** A method or attribute of the value, or undefined when there is none of that name. */
function pythonAttribute(value: unknown, name: string): unknown {
  if (typeof value === "string") return method(text, value, name);
  if (value instanceof AttributeDict && Object.hasOwn(value.attributes, name)) return fromJson(value.attributes[name]);
  if (isDict(value)) return method(dict, value, name);
  if (Array.isArray(value)) return method(list, value, name) ?? method(mutations, value, name);
  if (value instanceof Tuple)
    return value.names.includes(name) ? value.items[value.names.indexOf(name)] : method(list, value.items, name);
  if (value instanceof DateTime || value instanceof PyDate) {
    if (Object.hasOwn(dateFields, name)) return dateFields[name]?.(value);
    return method(dateTime, value, name);
  }
  if (value instanceof TimeDelta) {
    if (name === "total_seconds") return new Callable(name, () => float(Number(value.us) / 1e6));
    return Object.hasOwn(delta, name) ? delta[name]?.(value) : undefined;
  }
  return undefined;
}

/** `value.name` as a template sees it: Python's attribute first, then the item, else Undefined. */
export function member(value: unknown, name: string): unknown {
  if (name.startsWith("_") && !isDict(value)) return new Undefined(`access to attribute '${name}'`);
  const attribute = pythonAttribute(value, name);
  if (attribute !== undefined) return attribute;
  if (isDict(value)) return lookup(value, name);
  return new Undefined(`'${typeName(value)} object' has no attribute '${name}'`);
}
