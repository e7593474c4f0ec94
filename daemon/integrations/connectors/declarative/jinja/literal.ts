// ast.literal_eval: what the reference does to every rendered text. Text that is no Python literal stays text.
import { unescapePython } from "./lexer.ts";
import { Float, float, int, isNumber, Opaque, Tuple } from "./python.ts";
import { repr } from "./repr.ts";

const MAX_DEPTH = 90;
/** Python refuses to read longer decimal integers (sys.int_info.default_max_str_digits). */
const MAX_DIGITS = 4300;
const notLiteral = Symbol("not a literal");

/** The value that the text denotes as a Python literal, or the text itself. */
export function literalEval(text: string): unknown {
  // Lines of statements leave empty lines before a value. What is indented below them is none, nor is
  // what ends in the beginning of a line, as in Python.
  const body = text.replace(/^(?:[ \t]*(?:#[^\n]*)?\r?\n)+|^[ \t]+/, "");
  // A quick no for what can't be one: most rendered texts are paths, dates and names.
  if (!/^[-+.\d'"([{TFNbBrRuUs]/.test(body) || /\n[ \t]+$/.test(body)) return text;
  const reader = { text: body, at: 0, depth: 0 };
  try {
    const value = tuple(reader, false);
    skip(reader, true);
    return reader.at === reader.text.length ? value : text;
  } catch (error) {
    // V8's regular expressions give up within some millions of digits in a row, which Python reads no number in either.
    if (error === notLiteral || error instanceof RangeError) return text;
    throw error;
  }
}

interface Reader {
  readonly text: string;
  at: number;
  depth: number;
}

const fail = (): never => {
  throw notLiteral;
};

// Inside brackets a line may end anywhere; outside, only trailing blank lines and comments may follow.
function skip(reader: Reader, lines: boolean): void {
  const space = lines ? /(?:[ \t\f\r\n]|\\\n|#[^\n]*)*/y : /(?:[ \t\f]|\\\n)*/y;
  space.lastIndex = reader.at;
  space.exec(reader.text);
  reader.at = space.lastIndex;
}

function take(reader: Reader, pattern: RegExp): string | undefined {
  pattern.lastIndex = reader.at;
  const found = pattern.exec(reader.text);
  if (!found) return undefined;
  reader.at = pattern.lastIndex;
  return found[0];
}

function tuple(reader: Reader, inside: boolean): unknown {
  const first = complexOrValue(reader, inside);
  skip(reader, inside);
  if (inside || reader.text[reader.at] !== ",") return first;
  const items = [first];
  while (reader.text[reader.at] === ",") {
    reader.at++;
    skip(reader, false);
    if (reader.at >= reader.text.length || "\n#".includes(reader.text[reader.at] ?? "")) break;
    items.push(complexOrValue(reader, false));
    skip(reader, false);
  }
  return new Tuple(items);
}

// `1+2j` is a literal, `1+2` is not.
function complexOrValue(reader: Reader, inside: boolean): unknown {
  const left = signed(reader, inside);
  skip(reader, inside);
  const sign = reader.text[reader.at];
  if (sign !== "+" && sign !== "-") return left;
  if (!isNumber(left)) return fail();
  reader.at++;
  skip(reader, inside);
  const right = primary(reader, inside);
  if (!(right instanceof Opaque) || right.type !== "complex") return fail();
  return new Opaque("complex", `(${repr(left)}${sign}${right.repr})`);
}

function signed(reader: Reader, inside: boolean): unknown {
  skip(reader, inside);
  const sign = take(reader, /[+-]/y);
  if (!sign) return primary(reader, inside);
  skip(reader, inside);
  const value = /[+-]/.test(reader.text[reader.at] ?? "") ? fail() : primary(reader, inside);
  if (value instanceof Opaque && value.type === "complex")
    return sign === "-" ? new Opaque("complex", `-${value.repr}`) : value;
  if (!isNumber(value)) return fail();
  if (sign === "+") return value;
  if (value instanceof Float) return new Float(-value.value);
  return typeof value === "bigint" ? int(-value) : value === 0 ? 0 : -value;
}

const NUMBER =
  /0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|(?:\d(?:_?\d)*\.(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*|\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?[jJ]?/y;

function primary(reader: Reader, inside: boolean): unknown {
  skip(reader, inside);
  const next = reader.text[reader.at] ?? "";
  if (next === "(" || next === "[" || next === "{") return nested(reader, next);
  const word = take(reader, /(?:True|False|None)(?![\p{L}\p{N}_'"])/uy);
  if (word) return word === "None" ? null : word === "True";
  if (take(reader, /\.\.\./y)) return new Opaque("ellipsis", "Ellipsis");
  if (take(reader, /set\(\s*\)/y)) return new Opaque("set", "set()");
  const text = strings(reader, inside);
  if (text !== undefined) return text;
  const number = take(reader, NUMBER);
  if (number === undefined || /[\p{L}\p{N}_]/u.test(reader.text[reader.at] ?? "")) return fail();
  return numberValue(number.replaceAll("_", ""));
}

function numberValue(digits: string): unknown {
  if (/[jJ]$/.test(digits)) return new Opaque("complex", `${digits.slice(0, -1)}j`);
  if (/^0[xXoObB]/.test(digits)) return int(BigInt(digits));
  if (/^\d+$/.test(digits)) {
    if (/^0+[1-9]/.test(digits) || digits.length > MAX_DIGITS) return fail();
    return int(BigInt(digits));
  }
  const value = Number(digits);
  return Number.isFinite(value) ? float(value) : new Opaque("float", digits);
}

const STRING =
  /([rRuUbB]{0,2})('''(?:[^\\]|\\[\s\S])*?'''|"""(?:[^\\]|\\[\s\S])*?"""|'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*")/y;

function strings(reader: Reader, inside: boolean): unknown {
  let value: string | undefined;
  let bytes: boolean | undefined;
  for (;;) {
    STRING.lastIndex = reader.at;
    const found = STRING.exec(reader.text);
    if (!found) break;
    reader.at = STRING.lastIndex;
    const prefix = (found[1] ?? "").toLowerCase();
    if (!["", "r", "u", "b", "br", "rb"].includes(prefix)) return fail();
    const binary = prefix.includes("b");
    if (bytes !== undefined && bytes !== binary) return fail();
    bytes = binary;
    const quoted = found[2] as string;
    const marks = /^('''|""")/.test(quoted) ? 3 : 1;
    const body = quoted.slice(marks, -marks);
    value = (value ?? "") + (prefix.includes("r") ? body : unescapePython(body));
    skip(reader, inside);
  }
  return bytes && value !== undefined ? new Opaque("bytes", `b${repr(value)}`) : value;
}

function nested(reader: Reader, open: string): unknown {
  if (++reader.depth > MAX_DEPTH) fail();
  reader.at++;
  const close = open === "(" ? ")" : open === "[" ? "]" : "}";
  const items: unknown[] = [];
  const dict = new Map<unknown, unknown>();
  let pairs = false;
  let trailing = false;
  for (;;) {
    skip(reader, true);
    if (reader.text[reader.at] === close) break;
    const value = complexOrValue(reader, true);
    skip(reader, true);
    if (open === "{" && reader.text[reader.at] === ":") {
      reader.at++;
      pairs = true;
      dict.set(value instanceof Float ? value.value : value, complexOrValue(reader, true));
      skip(reader, true);
    } else items.push(value);
    trailing = reader.text[reader.at] === ",";
    if (trailing) reader.at++;
    else if (reader.text[reader.at] !== close) fail();
  }
  reader.at++;
  reader.depth--;
  if (open === "[") return items;
  if (open === "(") return items.length === 1 && !trailing ? items[0] : new Tuple(items);
  if (pairs && items.length) return fail();
  return pairs || !items.length ? dict : new Opaque("set", `{${items.map(repr).join(", ")}}`);
}
