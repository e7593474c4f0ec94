// Paths into decoded answers, as dpath reads them: `*` is any key or index, numbers index lists, `**` any depth.
import { setField } from "#contract/json-object.ts";
import { compileRegex } from "../jinja/regex.ts";
import { isRecord } from "../manifest/component.ts";

/** Every value at the path, in document order. */
export function dpath(value: unknown, path: readonly string[]): unknown[] {
  const [first, ...rest] = path;
  if (first === undefined) return [value];
  if (first === "**") return [...dpath(value, rest), ...entries(value).flatMap(([, each]) => dpath(each, path))];
  if (/[*?[]/.test(first)) {
    const matcher = globMatcher(first);
    return entries(value)
      .filter(([key]) => matcher(key))
      .flatMap(([, each]) => dpath(each, rest));
  }
  if (Array.isArray(value)) {
    const at = Number(first);
    return Number.isInteger(at) && first.trim() !== "" && value.at(at) !== undefined ? dpath(value.at(at), rest) : [];
  }
  return isRecord(value) && Object.hasOwn(value, first) ? dpath(value[first], rest) : [];
}

/** The first value at the path, or undefined. */
export function dpathOne(value: unknown, path: readonly string[]): unknown {
  return dpath(value, path)[0];
}

function entries(value: unknown): [string, unknown][] {
  if (Array.isArray(value)) return value.map((each, at) => [String(at), each]);
  return isRecord(value) ? Object.entries(value) : [];
}

// As fnmatch has it: brackets are a set where they hold something (`[!ab]`: none of them), else they are meant as they are (`items[]`).
const GLOB_PART = /\[(!?)(\]?[^\]]{0,200})\]|\*+|./gs;

function regexOf(part: string, not: string | undefined, set: string | undefined): string {
  if (set) return `[${not ? "^" : ""}${set.replace(/[\\\][^]/g, "\\$&")}]`;
  if (part.startsWith("*")) return ".*";
  return part === "?" ? "." : part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
}

function globMatcher(glob: string): (key: string) => boolean {
  if (glob === "*") return () => true;
  if (!/[*?[]/.test(glob)) return (key) => key === glob;
  const pattern = compileRegex(`(?s)^${glob.replace(GLOB_PART, regexOf)}$`);
  return (key) => pattern.matcher(key).find();
}

/** A copy that shares nothing with it: what lies in it may be changed. */
export function copyOf<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(copyOf) as Value;
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copyOf(each)])) as Value;
}

/** A list's place: another number is a name, for lists are filled up to the place that is set. */
const PLACE = /^(?:0|[1-9]\d{0,3})$/;

/**
 * Sets a value, making what is missing on the way: lists where the path goes on with a place, else objects. A name has no meaning in a
 * list that is there. A key such as __proto__ stays data.
 */
export function setAt(target: Record<string, unknown> | unknown[], path: readonly string[], value: unknown): void {
  const [first = "", ...rest] = path;
  if (Array.isArray(target) && !PLACE.test(first)) return;
  if (!rest.length) {
    put(target, first, value);
    return;
  }
  const inner = Object.hasOwn(target, first) ? (target as Record<string, unknown>)[first] : undefined;
  const next = isRecord(inner) || Array.isArray(inner) ? inner : PLACE.test(rest[0] ?? "") ? [] : {};
  put(target, first, next);
  setAt(next, rest, value);
}

function put(target: Record<string, unknown> | unknown[], key: string, value: unknown): void {
  if (Array.isArray(target)) {
    while (target.length < Number(key)) target.push(null);
    target[Number(key)] = value;
  } else setField(target, key, value);
}

/** Puts the value in place of every one at the path; false where there is none. */
export function replaceAt(target: unknown, path: readonly string[], value: unknown): boolean {
  const matches = globMatcher(path.at(-1) ?? "");
  let found = false;
  for (const place of dpath(target, path.slice(0, -1)))
    for (const [key] of entries(place)) {
      if (!matches(key)) continue;
      found = true;
      put(place as Record<string, unknown> | unknown[], key, value);
    }
  return found;
}

/** Removes every value at the path. */
export function removeAt(
  target: unknown,
  path: readonly string[],
  keep: (value: unknown) => boolean = () => false,
): void {
  const [first = "", ...rest] = path;
  if (first === "**") {
    removeAt(target, rest.length ? rest : ["*"], keep);
    for (const [, each] of entries(target)) removeAt(each, path, keep);
    return;
  }
  if (rest.length) {
    const matcher = globMatcher(first);
    for (const [key, each] of entries(target)) if (key === first || matcher(key)) removeAt(each, rest, keep);
    return;
  }
  const matcher = globMatcher(first);
  if (Array.isArray(target)) {
    // What comes after it keeps its place, as in the reference.
    for (let at = target.length - 1; at >= 0; at--)
      if (matcher(String(at)) && !keep(target[at])) target.splice(at, 1, ...(at < target.length - 1 ? [null] : []));
  } else if (isRecord(target))
    for (const key of Object.keys(target)) if (matcher(key) && !keep(target[key])) delete target[key];
}
