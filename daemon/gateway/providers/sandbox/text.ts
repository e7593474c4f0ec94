// Texts that satisfy a schema: a sample of its format, one that its pattern finds, else the property's name.
import { RE2JS } from "re2js";
import { sampleForPattern } from "./pattern.ts";
import { type Context, numberOf, type Schema, spend } from "./sampling.ts";

const LONGEST = 10_000;

/** The nth sample of each. */
const formats: ReadonlyMap<unknown, (n: number) => string> = new Map(
  Object.entries({
    "date-time": (n: number) => `${day(n)}T09:30:00Z`,
    date: day,
    time: (n: number) => `09:${String(30 + Math.floor(n / 60)).padStart(2, "0")}:${String(n % 60).padStart(2, "0")}Z`,
    duration: (n: number) => `PT${1 + n}H`,
    email: mailbox,
    "idn-email": mailbox,
    hostname: host,
    "idn-hostname": host,
    ipv4: (n: number) => `192.0.${2 + Math.floor(n / 250)}.${1 + (n % 250)}`,
    ipv6: (n: number) => `2001:db8::${(1 + n).toString(16)}`,
    uri: address,
    url: address,
    iri: address,
    "uri-reference": path,
    "iri-reference": path,
    "uri-template": (n: number) => `${path(n)}/{id}`,
    uuid: (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
    regex: (n: number) => `^.*${n || ""}$`,
    "json-pointer": (n: number) => `/pointer${n || ""}`,
    "relative-json-pointer": (n: number) => `${1 + n}/pointer`,
    byte: (n: number) => Buffer.from(`sandbox${n || ""}`).toString("base64"),
  }),
);

function day(n: number): string {
  return new Date(Date.UTC(2026, 0, 15 + n)).toISOString().slice(0, 10);
}

function mailbox(n: number): string {
  return `sandbox${n || ""}@example.com`;
}

function address(n: number): string {
  return `https://example.com/${n || ""}`;
}

function path(n: number): string {
  return `/path${n || ""}`;
}

function host(n: number): string {
  return n > 0 ? `host${n}.example.com` : "example.com";
}

export function string(schema: Schema, context: Context): string {
  const least = numberOf(schema["minLength"], 0);
  const most = numberOf(schema["maxLength"], Number.POSITIVE_INFINITY);
  const { again = 0 } = context;
  const format = formats.get(schema["format"])?.(again);
  const pattern = schema["pattern"];
  if (format !== undefined && (typeof pattern !== "string" || matches(pattern, format, context))) return format;
  if (context.budget.left < 0) return "";
  if (typeof pattern === "string") return patterned(pattern, Math.min(least, LONGEST), most, context);
  const name =
    context.name
      .slice(0, LONGEST)
      .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
      .trim() || "text";
  const word = again > 0 ? `${name} ${again}` : name;
  const text = word.padEnd(Math.min(least, LONGEST), " sandbox");
  spend(context, Math.ceil(text.length / 50));
  if (text.length <= most) return text;
  // Items of a list differ in their number.
  const number = /\d*$/.exec(word)?.[0].slice(-most) ?? "";
  return most > 0 ? text.slice(0, most - number.length) + number : "";
}

/** Whether the pattern stands in the text; false also where that would take long to find out. */
export function matches(pattern: string, text: string, context: Context): boolean {
  return expressionOf(pattern, context)?.(text) ?? false;
}

/** About the instructions of a compiled pattern that is still tried out; others are trusted to match. */
const MOST_WEIGHT = 10_000;

// Says of a text whether the pattern stands in it. Null for what RE2 does not know or what would take long.
function expressionOf(pattern: string, context: Context): ((text: string) => boolean) | null {
  const weight = pattern.length * (1 + repetitions(pattern));
  if (weight > MOST_WEIGHT || !spend(context, 50 + weight)) return null;
  // RE2: the pattern is a stranger's, and a backtracking engine can be made to run for years.
  try {
    const expression = RE2JS.compile(pattern);
    return (text) => spend(context, 20 + Math.ceil((weight * text.length) / 100)) && expression.matcher(text).find();
  } catch {
    return null;
  }
}

function patterned(pattern: string, least: number, most: number, context: Context): string {
  const { random } = context;
  const found = expressionOf(pattern, context);
  if (!found) return sampleForPattern(pattern, random);
  let best = "";
  for (let tries = 0; tries < 60 && context.budget.left >= 0; tries++) {
    const text = sampleForPattern(pattern, random);
    if (text.length > 400 || !found(text)) continue;
    best = text;
    if (text.length >= least && text.length <= most) return text;
    if (text.length < least) {
      const padded = text.padEnd(least, text.at(-1) ?? "a");
      if (found(padded)) return padded;
    }
  }
  return best;
}

// What `{n}` and `{n,m}` write out again.
function repetitions(pattern: string): number {
  let sum = 0;
  for (const [, from, to] of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) sum += Number(to || from);
  return sum;
}
