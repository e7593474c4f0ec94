// A string that matches a regular expression, for `pattern` in a JSON schema: literals, classes, groups, alternation, quantifiers,
// anchors, unicode properties. What it does not know (look-arounds, back references) it leaves out; the caller tests the result.
import { digits, withProperty, words } from "./characters.ts";
import type { Random } from "./random.ts";

/** May not match where the pattern uses what is not known here. Never longer than a few hundred characters. */
export function sampleForPattern(pattern: string, random: Random): string {
  if (pattern.length > 1000) return "";
  return alternatives({ text: pattern, at: 0, budget: { left: 1000 } }, random).slice(0, 400);
}

interface Reader {
  readonly text: string;
  at: number;
  /** Shared by all repetitions: nested quantifiers multiply. */
  readonly budget: { left: number };
}

function alternatives(reader: Reader, random: Random): string {
  const options = [sequence(reader, random)];
  while (reader.text[reader.at] === "|") {
    reader.at++;
    options.push(sequence(reader, random));
  }
  return random.pick(options);
}

function sequence(reader: Reader, random: Random): string {
  let text = "";
  while (reader.at < reader.text.length && !"|)".includes(reader.text[reader.at] as string)) {
    const start = reader.at;
    let piece = atom(reader, random);
    const end = reader.at;
    const [min, max] = quantifier(reader);
    const after = reader.at;
    const times = min === max ? min : min + random.below(Math.min(max - min, 3) + 1);
    if (times === 0) piece = "";
    for (let n = 1; n < times && --reader.budget.left > 0; n++) {
      reader.at = start;
      piece += atom({ ...reader, text: reader.text.slice(0, end) }, random);
    }
    reader.at = after;
    text += piece;
  }
  return text;
}

function atom(reader: Reader, random: Random): string {
  const char = reader.text[reader.at++] as string;
  if (char === "(") {
    const special = /^\?(?::|<[A-Za-z_]\w*>|=|!|<=|<!)/.exec(reader.text.slice(reader.at));
    if (special) reader.at += special[0].length;
    const inner = alternatives(reader, random);
    if (reader.text[reader.at] === ")") reader.at++;
    return special && /[=!]$/.test(special[0]) ? "" : inner;
  }
  if (char === "[") return characterClass(reader, random);
  if (char === "\\") return classMember(reader, random);
  if (char === ".") return random.pick([..."abcdefgh"]);
  if (char === "^" || char === "$") return "";
  return char;
}

function classMember(reader: Reader, random: Random): string {
  return random.pick(escaped(reader));
}

function escaped(reader: Reader): string[] {
  const char = reader.text[reader.at++] ?? "\\";
  switch (char) {
    case "d":
      return digits;
    case "w":
      return words;
    case "s":
      return [" "];
    case "D":
    case "S":
      return [..."abcdef"];
    case "W":
      return ["-"];
    case "b":
    case "B":
      return [""];
    case "t":
      return ["\t"];
    case "n":
      return ["\n"];
    case "r":
      return ["\r"];
    case "x":
    case "u": {
      const length = char === "x" ? 2 : 4;
      const code = Number.parseInt(reader.text.slice(reader.at, reader.at + length), 16);
      reader.at += length;
      return [Number.isNaN(code) ? "" : String.fromCharCode(code)];
    }
    case "p":
    case "P": {
      const [braced = ""] = /^\{[\w=]{1,60}\}/.exec(reader.text.slice(reader.at, reader.at + 64)) ?? [];
      reader.at += braced.length;
      return braced ? withProperty(`\\${char}${braced}`) : [char];
    }
    default:
      return [char];
  }
}

function characterClass(reader: Reader, random: Random): string {
  const negated = reader.text[reader.at] === "^";
  if (negated) reader.at++;
  const members: string[] = [];
  while (reader.at < reader.text.length && reader.text[reader.at] !== "]") {
    const char = reader.text[reader.at++] as string;
    const found = char === "\\" ? escaped(reader) : [char];
    const dash = reader.text[reader.at] === "-" && reader.text[reader.at + 1] !== "]";
    if (dash && found.length === 1) {
      reader.at++;
      const next = reader.text[reader.at++] as string;
      const last = next === "\\" ? escaped(reader)[0] : next;
      const from = found[0]?.charCodeAt(0) ?? 0;
      const to = Math.min(last?.charCodeAt(0) ?? from, from + 200);
      for (let code = from; code <= to; code++) members.push(String.fromCharCode(code));
    } else members.push(...found);
  }
  reader.at++;
  if (!negated) return members.length > 0 ? random.pick(members) : "";
  const allowed = words.filter((word) => !members.includes(word));
  return allowed.length > 0 ? random.pick(allowed) : "~";
}

function quantifier(reader: Reader): [number, number] {
  const rest = reader.text.slice(reader.at, reader.at + 16);
  const braces = /^\{(\d{1,4})(,(\d{0,4}))?\}\??/.exec(rest);
  if (braces) {
    reader.at += braces[0].length;
    const min = Number(braces[1]);
    if (braces[2] === undefined) return [min, min];
    return [min, braces[3] ? Math.max(Number(braces[3]), min) : min + 3];
  }
  const simple = /^[*+?]\??/.exec(rest);
  if (!simple) return [1, 1];
  reader.at += simple[0].length;
  if (simple[0][0] === "?") return [0, 1];
  return simple[0][0] === "*" ? [0, 3] : [1, 3];
}
