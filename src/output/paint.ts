// Colour and what may reach a terminal. Text of others (log messages, upstream errors, names) may hold escape sequences: they
// never pass, colours among them (one of them hides all that follows); our own do, where colours are wanted.
import { randomUUID } from "node:crypto";
import { styleText } from "node:util";
import { withoutControls } from "#shared/json-text.ts";

type Style = Parameters<typeof styleText>[0];

/** Colours a text, or leaves it as it is where colours are off. What it gives is for `printable`, which knows our own colours. */
export interface Paint {
  readonly enabled: boolean;
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  magenta(text: string): string;
  cyan(text: string): string;
}

export function createPaint(enabled: boolean): Paint {
  const style = (name: Style) => (text: string) =>
    enabled ? styleText(name, printable(text, true), { validateStream: false }).replaceAll("\x1b", OURS) : text;
  return {
    enabled,
    bold: style("bold"),
    dim: style("dim"),
    red: style("red"),
    green: style("green"),
    yellow: style("yellow"),
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

/** Stands for the escape character of our own sequences until they are written: nobody else can know it. */
const OURS = `\x1b${randomUUID()}`;

// Direction marks that turn the order of what follows go like a carriage return; those of single letters (U+200E) stay.
const control = new RegExp(
  `${OURS}(\\[[0-9;]*m)|\\x1b\\[[0-9;]{0,12}m|[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]`,
  "g",
);

/** The text as a terminal may get it: without control bytes but newline and tab; with colours on, our own colours stay. */
export function printable(text: string, colours: boolean): string {
  return text.replace(control, (found, ours?: string) => {
    if (ours !== undefined) return colours ? `\x1b${ours}` : "";
    return found.length > 1 || found === "\r" || found > "\u2000" ? "" : "\ufffd";
  });
}

/** The same without colours, as one line. */
export function oneLine(text: string): string {
  return printable(text, false).replaceAll("\n", " ");
}

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
  return withoutControls(jsonOf(document, indent) ?? "null");
}
