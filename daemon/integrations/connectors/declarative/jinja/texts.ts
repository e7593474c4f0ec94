// What methods and filters do to texts, as Python does it.
import type { Arguments } from "./arguments.ts";
import { EvaluationError } from "./errors.ts";
import { MAX_SIZE } from "./operators.ts";

export function stripped(text: string, set: string | undefined, start: boolean, end: boolean): string {
  const drop = (character: string | undefined): boolean =>
    character !== undefined && (set === undefined ? /\s/.test(character) : set.includes(character));
  let [from, to] = [0, text.length];
  while (start && from < to && drop(text[from])) from++;
  while (end && to > from && drop(text[to - 1])) to--;
  return text.slice(from, to);
}

export const title = (text: string): string =>
  text.toLowerCase().replace(/\p{L}+/gu, (word) => word.charAt(0).toUpperCase() + word.slice(1));

export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();

export function split(text: string, args: Arguments, fromEnd: boolean): string[] {
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

/** By how much the length in JavaScript (UTF-16 units) exceeds Python's (code points). */
export const surplus = (text: string): number => text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0;

/** In the middle; what cannot be shared alike goes to the left where the width is odd, as in Python. */
export function centred(text: string, width: number, fill = " "): string {
  const room = Math.max(0, width - text.length + surplus(text));
  return text.padStart(text.length + Math.floor(room / 2) + (room & width & 1), fill).padEnd(text.length + room, fill);
}

/** str.splitlines: without what ends them, unless `ends`. */
export function splitLines(text: string, ends = false): string[] {
  const parts = text.split(/(\r\n|[\n\r\v\f\u0085\u2028\u2029])/);
  const lines: string[] = [];
  for (let at = 0; at < parts.length; at += 2)
    if (at + 1 < parts.length || parts[at] !== "") lines.push(`${parts[at]}${ends ? (parts[at + 1] ?? "") : ""}`);
  return lines;
}

/** Each tab leads to the next multiple of `size` in its line. */
export function expandTabs(text: string, size: number): string {
  let column = 0;
  return text.replace(/\t|[\r\n]|[^\t\r\n]+/g, (part) => {
    const out = part === "\t" ? " ".repeat(size > 0 ? size - (column % size) : 0) : part;
    column = /[\r\n]/.test(part) ? 0 : column + [...out].length;
    return out;
  });
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
