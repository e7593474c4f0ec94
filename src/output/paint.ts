// Colour and what may reach a terminal. Text of others (log messages, upstream errors, names) may hold escape sequences: they
// never pass; our own colours do, where colours are wanted.
import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Colours a text, or leaves it as it is where colours are off. */
export interface Paint {
  readonly enabled: boolean;
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  blue(text: string): string;
  magenta(text: string): string;
  cyan(text: string): string;
}

export function createPaint(enabled: boolean): Paint {
  const style = (name: Style) => (text: string) => (enabled ? styleText(name, text, { validateStream: false }) : text);
  return {
    enabled,
    bold: style("bold"),
    dim: style("dim"),
    red: style("red"),
    green: style("green"),
    yellow: style("yellow"),
    blue: style("blue"),
    magenta: style("magenta"),
    cyan: style("cyan"),
  };
}

/** Colours are for people at a terminal: NO_COLOR, CI and TERM=dumb turn them off, FORCE_COLOR turns them on. */
export function wantsColour(env: NodeJS.ProcessEnv, terminal: boolean): boolean {
  if (env["NO_COLOR"]) return false;
  if (env["FORCE_COLOR"] !== undefined) return env["FORCE_COLOR"] !== "0";
  return terminal && !env["CI"] && env["TERM"] !== "dumb";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
const control = /\x1b\[[0-9;]{0,12}m|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** The text without control bytes but newline and tab; with colours on, colour sequences stay. */
export function printable(text: string, colours: boolean): string {
  return text.replace(control, (found) => (found.length > 1 ? (colours ? found : "") : found === "\r" ? "" : "\ufffd"));
}

const beyondJson = /[\x7f-\x9f\u2028\u2029]/g;

function jsonOf(document: unknown, indent: number): string | undefined {
  try {
    return JSON.stringify(document, (_key, value) => (typeof value === "bigint" ? value.toString() : value), indent);
  } catch (error) {
    // What nests by the thousand is written in its shortest form: that alone needs no stack.
    if (error instanceof RangeError) return JSON.stringify(document);
    throw error;
  }
}

/** JSON without a single control byte, DEL and C1 included. `indent` 0 is one line. */
export function printableJson(document: unknown, indent: number): string {
  const text = jsonOf(document, indent);
  return (text ?? "null").replace(beyondJson, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
