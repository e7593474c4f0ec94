// The filters of lists, and what they read of their items.
import type { Arguments } from "./arguments.ts";
import { compare, equals } from "./compare.ts";
import { EvaluationError } from "./errors.ts";
import { iterate } from "./iterate.ts";
import { member } from "./methods.ts";
import { arithmetic, item } from "./operators.ts";
import { asNumber, defined, isDict, isInt, isNumber, Tuple, truth, Undefined } from "./python.ts";
import { str } from "./repr.ts";
import { joined } from "./texts.ts";

/** As long as a range may be. */
export const MAX_SLICES = 100_000;

/** The value of `attribute` ("a.b.0") of an item, as map, sort, groupby and their like read it. */
export function attributeOf(subject: unknown, path: unknown, otherwise?: unknown): unknown {
  if (isInt(path)) return item(subject, path);
  let value = subject;
  for (const part of String(path).split(".")) {
    const of = defined(value);
    value = /^\d+$/.test(part) ? item(of, Number(part)) : isDict(of) ? item(of, part) : member(of, part);
    if (value instanceof Undefined && otherwise !== undefined) value = otherwise;
  }
  return value;
}

const withoutCase = (value: unknown): unknown => (typeof value === "string" ? value.toLowerCase() : value);

export function sorted(
  value: unknown,
  reverse: boolean,
  caseSensitive: boolean,
  attribute: unknown,
  otherwise?: unknown,
): unknown[] {
  const folded = (found: unknown): unknown => (caseSensitive ? found : withoutCase(found));
  const key = (each: unknown): unknown => {
    if (attribute === null || attribute === undefined) return folded(each);
    if (!String(attribute).includes(",")) return folded(attributeOf(each, attribute, otherwise));
    return String(attribute)
      .split(",")
      .map((one) => folded(attributeOf(each, one)));
  };
  const keyed = iterate(value).map((each) => [key(each), each] as const);
  keyed.sort(([a], [b]) => (reverse ? compare(b, a) : compare(a, b)));
  return keyed.map(([, each]) => each);
}

export function unique(value: unknown, args: Arguments): unknown[] {
  const caseSensitive = truth(args.any(0, "case_sensitive", false));
  // Texts and whole numbers are looked up: to compare each with each takes quadratic time.
  const plain = new Set<unknown>();
  const others: unknown[] = [];
  return iterate(value).filter((each) => {
    const found = args.has(1, "attribute") ? attributeOf(each, args.any(1, "attribute")) : each;
    const key = caseSensitive ? found : withoutCase(found);
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

export function groupBy(value: unknown, args: Arguments): unknown[] {
  const [attribute, otherwise] = [args.required(0, "attribute"), args.any(1, "default")];
  const caseSensitive = truth(args.any(2, "case_sensitive", false));
  const same = (a: unknown, b: unknown): boolean =>
    equals(caseSensitive ? a : withoutCase(a), caseSensitive ? b : withoutCase(b));
  const groups: [unknown, unknown[]][] = [];
  for (const each of sorted(value, false, caseSensitive, attribute, otherwise)) {
    const key = attributeOf(each, attribute, otherwise);
    const last = groups.at(-1);
    if (last && same(last[0], key)) last[1].push(each);
    else groups.push([key, [each]]);
  }
  return groups.map((group) => new Tuple(group, ["grouper", "list"]));
}

export function sum(value: unknown, args: Arguments): unknown {
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

export function join(value: unknown, args: Arguments): string {
  const attribute = args.any(1, "attribute", null);
  return joined(
    iterate(value).map((each) => str(attribute === null ? each : attributeOf(each, attribute))),
    str(args.any(0, "d", "")),
  );
}

export function batch(value: unknown, args: Arguments): unknown[][] {
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
