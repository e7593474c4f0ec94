// The methods of Python's texts.
import type { Arguments, Method } from "./arguments.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { iterate } from "./iterate.ts";
import { MAX_SIZE } from "./operators.ts";
import { Tuple, truth, typeName } from "./python.ts";
import {
  capitalize,
  centred,
  expandTabs,
  joined,
  replace,
  split,
  splitLines,
  stripped,
  surplus,
  title,
} from "./texts.ts";

const chars = (args: Arguments): string | undefined => {
  const given = args.any(0, "chars", null);
  return given === null ? undefined : String(given);
};

function affix(value: unknown): readonly string[] {
  const texts = value instanceof Tuple ? value.items : [value];
  if (texts.every((each) => typeof each === "string")) return texts;
  throw new PythonTypeError("startswith first arg must be str or a tuple of str");
}

export const textMethods: Readonly<Record<string, Method<string>>> = {
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
  find: (s, a) => at(s, s.indexOf(a.text(0, "sub"), a.number(1, "start", 0))),
  rfind: (s, a) => at(s, s.lastIndexOf(a.text(0, "sub"))),
  index: (s, a) => found(at(s, s.indexOf(a.text(0, "sub")))),
  rindex: (s, a) => found(at(s, s.lastIndexOf(a.text(0, "sub")))),
  count: (s, a) => (a.text(0, "sub") ? s.split(a.text(0, "sub")).length - 1 : s.length + 1),
  zfill: (s, a) =>
    s.replace(
      /^([+-]?)(.*)$/s,
      (_all, sign: string, rest: string) => sign + rest.padStart(size(s, a) - sign.length, "0"),
    ),
  ljust: (s, a) => s.padEnd(size(s, a), a.text(1, "fillchar", " ")),
  rjust: (s, a) => s.padStart(size(s, a), a.text(1, "fillchar", " ")),
  center: (s, a) => centred(s, Math.min(a.number(0, "width"), MAX_SIZE), a.text(1, "fillchar", " ")),
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
  expandtabs: (s, a) => expandTabs(s, Math.min(a.number(0, "tabsize", 8), 100)),
};

const at = (text: string, unit: number): number => unit - surplus(text.slice(0, Math.max(0, unit)));

function found(place: number): number {
  if (place < 0) throw new EvaluationError("substring not found");
  return place;
}

// As padStart counts it: Python counts code points, JavaScript UTF-16 units.
const size = (text: string, args: Arguments): number => Math.min(args.number(0, "width"), MAX_SIZE) + surplus(text);
