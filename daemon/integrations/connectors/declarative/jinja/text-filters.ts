// The filters whose result is text: JSON, hashes, regular expressions, escaping.
import { createHash, createHmac } from "node:crypto";
import type { Arguments } from "./arguments.ts";
import { compare } from "./compare.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { iterate } from "./iterate.ts";
import { asNumber, defined, isDict, isNumber, Tuple, truth, typeName } from "./python.ts";
import { compileRegex } from "./regex.ts";
import { str } from "./repr.ts";

const MAX_INDENT = 100;

// htmlsafe_json_dumps: Python's separators, sorted keys, and the characters that end a script element escaped.
export function tojson(value: unknown, args: Arguments): string {
  defined(value);
  const indent = args.any(0, "indent", null);
  if (asNumber(indent ?? 0) > MAX_INDENT)
    throw new EvaluationError(`an indent of more than ${MAX_INDENT} is too large`);
  return pythonJson(value, indent === null ? undefined : asNumber(indent), 0, true)
    .replaceAll("<", "\\u003c")
    .replaceAll(">", "\\u003e")
    .replaceAll("&", "\\u0026")
    .replaceAll("'", "\\u0027");
}

/** json.dumps. */
export function pythonJson(value: unknown, indent?: number, level = 0, sorted = false): string {
  const newline = indent === undefined ? "" : `\n${" ".repeat(indent * (level + 1))}`;
  const end = indent === undefined ? "" : `\n${" ".repeat(indent * level)}`;
  const comma = indent === undefined ? ", " : `,${newline}`;
  if (typeof value === "string")
    return JSON.stringify(value).replace(
      /[\u007f-\uffff]/g,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  if (value === null || typeof value === "boolean") return String(value);
  if (isNumber(value)) return str(value);
  if (isDict(value)) {
    if (!value.size) return "{}";
    const keys = sorted ? [...value].sort(([a], [b]) => compare(a, b)) : [...value];
    return `{${newline}${keys.map(([key, each]) => `${JSON.stringify(str(key))}: ${pythonJson(each, indent, level + 1, sorted)}`).join(comma)}${end}}`;
  }
  if (Array.isArray(value) || value instanceof Tuple) {
    const items = iterate(value);
    return items.length
      ? `[${newline}${items.map((each) => pythonJson(each, indent, level + 1, sorted)).join(comma)}${end}]`
      : "[]";
  }
  throw new PythonTypeError(`Object of type ${typeName(value)} is not JSON serializable`);
}

export function hash(value: unknown, args: Arguments): string {
  const kind = args.text(0, "hash_type", "md5");
  const salt = args.any(1, "salt", null);
  if (!/^(md5|sha1|sha224|sha256|sha384|sha512)$/.test(kind))
    throw new EvaluationError(`No hashing function named ${kind}.`);
  return createHash(kind)
    .update(str(value) + (salt === null ? "" : str(salt)))
    .digest("hex");
}

export function hmac(value: unknown, args: Arguments): string {
  const kind = args.text(1, "hash_type", "sha256");
  if (kind !== "sha256" && kind !== "sha512" && kind !== "sha1" && kind !== "md5")
    throw new EvaluationError(`Hash type ${kind} is not supported`);
  return createHmac(kind, args.text(0, "key")).update(str(value)).digest("hex");
}

export function regexSearch(value: unknown, args: Arguments): unknown {
  const matcher = compileRegex(args.text(0, "regex")).matcher(str(value));
  if (!matcher.find()) return "";
  // Without a group there is nothing that was looked for, as in the reference.
  return matcher.groupCount() > 0 ? (matcher.group(1) ?? "") : "";
}

export function regexReplace(value: unknown, args: Arguments): string {
  const regex = compileRegex(args.text(0, "regex"));
  try {
    return regex.matcher(str(value)).replaceAll(replacementOf(args.text(1, "replacement")), true);
  } catch {
    throw new EvaluationError(`invalid group reference in '${args.text(1, "replacement")}'`);
  }
}

const controls: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", f: "\f", v: "\v", a: "\x07", b: "\b" };

// Python's \1 and \g<name> as the linear-time engine writes them in its Java mode; a dollar is a dollar.
function replacementOf(template: string): string {
  const reference = (name: string): string => (/^\d+$/.test(name) ? `$${name}` : ["$", "{", name, "}"].join(""));
  return template.replace(/\\g<(\w+)>|\\([1-9]\d?)|\\([\s\S]?)|\$/g, (whole, name, group, character: string) => {
    if (name ?? group) return reference(name ?? group);
    const meant = character === "\\" ? character : (controls[character] ?? whole);
    return meant.replace(/[\\$]/g, "\\$&");
  });
}

export function truncate(value: string, args: Arguments): string {
  const size = args.number(0, "length", 255);
  const end = args.text(2, "end", "...");
  const characters = [...value];
  if (characters.length <= size + args.number(3, "leeway", 5)) return value;
  const cut = characters.slice(0, Math.max(0, size - end.length)).join("");
  const blank = truth(args.any(1, "killwords", false)) ? -1 : cut.lastIndexOf(" ");
  return (blank < 0 ? cut : cut.slice(0, blank)) + end;
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
  '"': "&#34;",
};
export const escapeHtml = (value: unknown): string =>
  str(value).replace(/[&<>'"]/g, (character) => escapes[character] ?? character);
const quote = (value: string): string =>
  encodeURIComponent(value)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%2F", "/");

/** As in a query: a blank is a plus. */
export const quotePlus = (value: string): string => quote(value).replaceAll("/", "%2F").replaceAll("%20", "+");

export function urlencode(value: unknown): string {
  if (typeof value === "string" || isNumber(value) || typeof value === "boolean" || value === null)
    return quote(str(value));
  const pairs: readonly (readonly unknown[])[] = isDict(value)
    ? [...value]
    : iterate(value).map((each) => iterate(each));
  return pairs.map(([key, each]) => `${quotePlus(str(key))}=${quotePlus(str(each))}`).join("&");
}

/** The text without what stands between these marks, in one pass: a regular expression would look for each end anew. */
export function without(value: string, open: string, close: string): string {
  const kept: string[] = [];
  let at = 0;
  for (;;) {
    const start = value.indexOf(open, at);
    const end = start < 0 ? -1 : value.indexOf(close, start);
    if (end < 0) return kept.join("") + value.slice(at);
    kept.push(value.slice(at, start));
    at = end + close.length;
  }
}
