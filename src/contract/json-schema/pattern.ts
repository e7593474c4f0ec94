// Regular expressions of contracts run on every input, in the daemon. One that backtracks without end would stop it: each is tried
// on texts made from its own loops (a prefix that reaches the loop, the loop's body many times, an end that cannot match), short
// enough that the trial ends soon even for the worst.
import ret, { type Root, type Token } from "ret";
import { OutOfTime, within } from "../time-limit.ts";

// Its types say that the function is under `default`; in fact it is the module itself.
const tokenize = ret as unknown as (pattern: string) => Root;

export interface PatternProblem {
  readonly code: "pattern_invalid" | "pattern_catastrophic";
  readonly message: string;
}

const MAX_PATTERN = 2000;
/** A trial that takes longer shows growth that real inputs would turn into minutes. */
const SLOW_MS = 12;
/** For all trials of one pattern; some do not come back even from a text of four characters. */
const TRIALS_MS = 1000;

/** What is wrong with a pattern, or undefined. JSON Schema's dialect is ECMA-262 with the `u` flag. */
export function checkPattern(pattern: string): PatternProblem | undefined {
  if (pattern.length > MAX_PATTERN)
    return {
      code: "pattern_invalid",
      message: `The pattern has ${pattern.length} characters, more than ${MAX_PATTERN}.`,
    };
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, "u");
  } catch (error) {
    const reason = (error as Error).message.replace(/^Invalid regular expression: .*\/u?: /, "");
    return { code: "pattern_invalid", message: `The pattern is no regular expression: ${reason}.` };
  }
  let tried: Attack | undefined;
  try {
    const slow = within(TRIALS_MS, () =>
      attacks(pattern).find((attack) => {
        tried = attack;
        return explodes(expression, attack);
      }),
    );
    if (!slow) return undefined;
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
  }
  const text = tried ? `on texts such as ${JSON.stringify(tried.prefix + tried.body.repeat(3))}...` : "to be read";
  return { code: "pattern_catastrophic", message: `The pattern takes exponential time ${text}` };
}

interface Attack {
  readonly prefix: string;
  readonly body: string;
}

// A text whose matching doubles with every repetition is seen by its growth; a slow machine is not, as it is slow for all lengths.
function explodes(expression: RegExp, { prefix, body }: Attack): boolean {
  for (let count = 4; count <= 40; count++) {
    const text = `${prefix}${body.repeat(count)}\u0000!`;
    if (timed(expression, text) < SLOW_MS) continue;
    const again = Math.min(timed(expression, text), timed(expression, text));
    const shorter = timed(expression, `${prefix}${body.repeat(count - 4)}\u0000!`);
    if (again >= SLOW_MS && again > 3 * shorter) return true;
    if (again >= 20 * SLOW_MS) return true;
  }
  return false;
}

function timed(expression: RegExp, text: string): number {
  const start = performance.now();
  expression.test(text);
  return performance.now() - start;
}

const MAX_ATTACKS = 60;

function attacks(pattern: string): Attack[] {
  let root: Token[][];
  try {
    const parsed = tokenize(pattern);
    root = parsed.options ?? [parsed.stack ?? []];
  } catch {
    return ["a", "0", " ", "-"].map((body) => ({ prefix: "", body }));
  }
  const found: Attack[] = [];
  for (const option of root) collect(option, "", found);
  return found.slice(0, MAX_ATTACKS);
}

/** Every unbounded loop below, with a text that leads to it. */
function collect(tokens: readonly Token[], before: string, found: Attack[]): void {
  let prefix = before;
  for (const token of tokens) {
    if (found.length >= MAX_ATTACKS) return;
    if (token.type === ret.types.REPETITION) {
      if (token.max > 8) for (const body of samples(token.value)) found.push({ prefix, body });
      collect([token.value], prefix, found);
    } else if (token.type === ret.types.GROUP) {
      for (const option of token.options ?? [token.stack ?? []]) collect(option, prefix, found);
    }
    prefix += samples(token)[0] ?? "";
  }
}

const MAX_SAMPLES = 6;

/** A few texts that a token matches: each alternative, and the shortest of each loop. */
function samples(token: Token): string[] {
  switch (token.type) {
    case ret.types.CHAR:
      return [String.fromCodePoint(token.value)];
    case ret.types.SET:
      return [memberOf(token)];
    case ret.types.REPETITION: {
      const inner = samples(token.value);
      return inner.map((text) => text.repeat(Math.max(1, Math.min(token.min, 50)))).slice(0, MAX_SAMPLES);
    }
    case ret.types.GROUP: {
      const options = token.options ?? [token.stack ?? []];
      return options.flatMap((option) => sequence(option)).slice(0, MAX_SAMPLES);
    }
    default:
      return [""];
  }
}

// The whole sequence once, and once without its optional parts.
function sequence(tokens: readonly Token[]): string[] {
  const whole = tokens.map((token) => samples(token)[0] ?? "").join("");
  const needed = tokens
    .map((token) => (token.type === ret.types.REPETITION && token.min === 0 ? "" : (samples(token)[0] ?? "")))
    .join("");
  return whole === needed || needed === "" ? [whole] : [whole, needed];
}

const candidates = ["a", "0", "A", " ", "-", "_", ".", "/", "@", ":", "é", "\n", "!"];

function memberOf(set: Extract<Token, { type: typeof ret.types.SET }>): string {
  const matches = (code: number): boolean =>
    set.set.some((part) => {
      if (part.type === ret.types.RANGE) return code >= part.from && code <= part.to;
      if (part.type === ret.types.CHAR) return code === part.value;
      return false;
    }) !== set.not;
  for (const candidate of candidates) if (matches(candidate.codePointAt(0) ?? 0)) return candidate;
  for (let code = 33; code < 1000; code++) if (matches(code)) return String.fromCodePoint(code);
  return "a";
}
