// Template text -> tokens. Follows Jinja 3.1: whitespace control by `-` and `+`, comments, raw blocks, one trailing newline dropped.
import { TemplateSyntaxError } from "./errors.ts";

export interface Token {
  readonly kind: "text" | "open" | "close" | "begin" | "end" | "name" | "number" | "string" | "operator" | "eof";
  readonly text: string;
  readonly offset: number;
}

const operators = [
  "**",
  "//",
  "==",
  "!=",
  "<=",
  ">=",
  "+",
  "-",
  "*",
  "/",
  "%",
  "~",
  "<",
  ">",
  "=",
  "(",
  ")",
  "[",
  "]",
  "{",
  "}",
  ",",
  ".",
  ":",
  "|",
  ";",
];
const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy;
const NUMBER =
  /0[xX][\da-fA-F]+(?:_[\da-fA-F]+)*|0[oO][0-7]+(?:_[0-7]+)*|0[bB][01]+(?:_[01]+)*|(?:\d+(?:_\d+)*)(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+(?:_\d+)*)?/y;
const TAG = /\{\{|\{%|\{#/g;

export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  // keep_trailing_newline is off: Jinja drops one.
  const template = source.replaceAll("\r\n", "\n").replace(/\n$/, "");
  let at = 0;
  let trimNext = false;
  const text = (raw: string, offset: number, trimEnd: boolean): void => {
    let value = raw;
    if (trimNext) value = value.trimStart();
    if (trimEnd) value = value.trimEnd();
    trimNext = false;
    if (value) tokens.push({ kind: "text", text: value, offset });
  };
  while (at < template.length) {
    TAG.lastIndex = at;
    const tag = TAG.exec(template);
    if (!tag) {
      text(template.slice(at), at, false);
      break;
    }
    const start = tag.index;
    const strip = template[start + 2] === "-";
    text(template.slice(at, start), at, strip);
    if (tag[0] === "{#") {
      const close = template.indexOf("#}", start + 2);
      if (close < 0) throw new TemplateSyntaxError("Missing end of comment tag", start);
      trimNext = template[close - 1] === "-";
      at = close + 2;
      continue;
    }
    const raw = tag[0] === "{%" ? rawBlock(template, start) : undefined;
    if (raw) {
      if (raw.body) tokens.push({ kind: "text", text: raw.body, offset: start });
      trimNext = raw.trimNext;
      at = raw.end;
      continue;
    }
    const block = tag[0] === "{%";
    tokens.push({ kind: block ? "begin" : "open", text: tag[0], offset: start });
    at = start + 2 + (strip || template[start + 2] === "+" ? 1 : 0);
    [at, trimNext] = expression(template, at, block ? "%}" : "}}", tokens);
  }
  tokens.push({ kind: "eof", text: "", offset: template.length });
  return tokens;
}

function rawBlock(template: string, start: number): { body: string; end: number; trimNext: boolean } | undefined {
  const open = /\{%[-+]?\s*raw\s*(-?)%\}/y;
  open.lastIndex = start;
  const begin = open.exec(template);
  if (!begin) return undefined;
  const close = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g;
  close.lastIndex = open.lastIndex;
  const end = close.exec(template);
  if (!end) throw new TemplateSyntaxError("Missing end of raw directive", start);
  let body = template.slice(open.lastIndex, end.index);
  if (begin[1]) body = body.trimStart();
  if (end[1] === "-") body = body.trimEnd();
  return { body, end: close.lastIndex, trimNext: end[2] === "-" };
}

/** The tokens of one tag, and where the text after it begins. */
function expression(template: string, from: number, close: "}}" | "%}", tokens: Token[]): [number, boolean] {
  let at = from;
  let depth = 0;
  for (;;) {
    while (/\s/.test(template[at] ?? "")) at++;
    if (at >= template.length) throw new TemplateSyntaxError(`unexpected end of template, expected '${close}'`, at);
    const trimmed = template.startsWith(`-${close}`, at);
    const marked = trimmed || (close === "%}" && template.startsWith("+%}", at));
    // Inside brackets `}}` closes two dictionaries, not the tag.
    if (depth === 0 && (marked || template.startsWith(close, at))) {
      tokens.push({ kind: close === "}}" ? "close" : "end", text: close, offset: at });
      return [at + (marked ? 3 : 2), trimmed];
    }
    const character = template[at] as string;
    if (character === "'" || character === '"') {
      const end = stringEnd(template, at);
      tokens.push({ kind: "string", text: unescapePython(template.slice(at + 1, end)), offset: at });
      at = end + 1;
      continue;
    }
    const previous = tokens.at(-1);
    if (/\d/.test(character)) {
      // `items.0.name`: after a dot a number is one subscript, never a float.
      const number = previous?.text === "." && previous.kind === "operator" ? /\d+/y : NUMBER;
      number.lastIndex = at;
      const found = number.exec(template)?.[0] ?? character;
      tokens.push({ kind: "number", text: found, offset: at });
      at += found.length;
      continue;
    }
    NAME.lastIndex = at;
    const name = NAME.exec(template);
    if (name) {
      tokens.push({ kind: "name", text: name[0], offset: at });
      at += name[0].length;
      continue;
    }
    const operator = operators.find((candidate) => template.startsWith(candidate, at));
    if (!operator) throw new TemplateSyntaxError(`unexpected char '${character}'`, at);
    if ("([{".includes(operator)) depth++;
    if (")]}".includes(operator)) depth = Math.max(0, depth - 1);
    tokens.push({ kind: "operator", text: operator, offset: at });
    at += operator.length;
  }
}

function stringEnd(template: string, start: number): number {
  for (let at = start + 1; at < template.length; at++) {
    if (template[at] === "\\") at++;
    else if (template[at] === template[start]) return at;
  }
  throw new TemplateSyntaxError("unexpected end of string", start);
}

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  a: "\x07",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
};

/** Python's backslash escapes; an unknown one stays as it is. */
export function unescapePython(body: string): string {
  return body.replace(/\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{1,3}|[\s\S])/g, (whole, code: string) => {
    if (/^[xuU]./.test(code)) return String.fromCodePoint(Number.parseInt(code.slice(1), 16));
    if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8));
    return escapes[code] ?? whole;
  });
}
