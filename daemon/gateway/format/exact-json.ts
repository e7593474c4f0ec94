// JSON that models and tools have written: an integer that no double is (an id of 19 digits) keeps its digits to wherever it is written again.
import { isObject } from "#contract/json-object.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import { isBeyond, jsonMeter, MOST_JSON, SMALL_JSON } from "#shared/json-size.ts";
import { nestsDeeper } from "#shared/nesting.ts";

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
// Not in the language's declarations yet.
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** Not the digits behind a point. */
const LONG = /(?<![\d.])\d{16}/;

export function parseExact(text: string): unknown {
  return LONG.test(text) ? parse(text, exact) : JSON.parse(text);
}

function exact(_key: string, value: unknown, { source = "" }: { readonly source?: string }): unknown {
  const lost = typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source);
  return lost ? new ExactNumber(source) : value;
}

/** Whether some number of the text is none that a double is: services that keep numbers in doubles would round it. */
export function isRounded(text: string): boolean {
  let found = false;
  const look: Reviver = (key, value, context) => {
    found ||= exact(key, value, context) instanceof ExactNumber;
    return value;
  };
  if (LONG.test(text)) parse(text, look);
  return found;
}

/** A value of `parseExact` where it is an object; else null. */
export function objectOf(value: unknown): Record<string, unknown> | null {
  return isObject(value) && !(value instanceof ExactNumber) ? value : null;
}

export type TextReader = (text: string) => unknown;

/** Reads the texts of one request: what each says as JSON; itself where it is none, or together they are more than a body may be. */
export function textReader(): TextReader {
  let length = 0;
  let sizeOf: ReturnType<typeof jsonMeter> | null = null;
  return (text) => {
    length += text.length;
    if (length > SMALL_JSON) {
      sizeOf ??= jsonMeter(MOST_JSON);
      if (isBeyond(sizeOf(text), MOST_JSON)) return text;
    }
    try {
      const value = parseExact(text);
      return nestsDeeper(value, MOST_JSON.depth) ? text : value;
    } catch {
      return text;
    }
  };
}
