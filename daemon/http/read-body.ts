// From a body's bytes to JSON, refusing what would hurt: bad UTF-8, deep nesting, millions of containers, keys or values. For every surface.
import { isAscii, isUtf8 } from "node:buffer";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { jsonMeter, MOST_JSON, SMALL_JSON } from "#shared/json-size.ts";
import { nestsDeeper } from "#shared/nesting.ts";

/** Throws `invalid_request` (400) with `param` null for what is no JSON object at all. */
export function readBody(text: string): Record<string, unknown> {
  if (text === "") throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  const parsed = parseBody(text, MOST_JSON.depth, JSON.parse);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new MagicError("invalid_request", "The body must be a JSON object.");
  }
  return parsed as Record<string, unknown>;
}

/** Throws `invalid_request` for bytes that are no UTF-8: decoded all the same, two bodies that differ could become one text. */
export function decodeBody(pieces: readonly Buffer[]): string {
  // ASCII needs no look at what a piece begins or ends with, and half the time.
  let text = "";
  for (const piece of pieces) {
    if (!isAscii(piece)) return decodeUtf8(Buffer.concat(pieces));
    text += piece.toString("latin1");
  }
  return text;
}

function decodeUtf8(raw: Buffer): string {
  if (!isUtf8(raw)) throw new MagicError("invalid_request", "The body is not valid UTF-8.");
  return raw.toString("utf8");
}

/** What `parse` makes of it. Throws `invalid_request` for what is no JSON, or beyond the bounds, and what `parse` says of JSON that it refuses. */
export function parseBody(text: string, levels: number, parse: (text: string) => unknown): unknown {
  const small = text.length <= SMALL_JSON;
  if (!small) refuseHarmful(text, levels);
  let parsed: unknown;
  try {
    parsed = parse(text);
  } catch (cause) {
    if (isMagicError(cause)) throw cause;
    throw new MagicError("invalid_request", "The body is not valid JSON.", { cause });
  }
  if (small && nestsDeeper(parsed, levels)) throw tooDeep(levels);
  return parsed;
}

function refuseHarmful(text: string, levels: number): void {
  const most = { ...MOST_JSON, depth: levels };
  const { depth, containers, keys, values } = jsonMeter(most)(text);
  if (depth > levels) throw tooDeep(levels);
  if (containers > most.containers) throw tooMany(most.containers, "objects and arrays");
  if (keys > most.keys) throw tooMany(most.keys, "different keys");
  if (values > most.values) throw tooMany(most.values, "values");
}

function tooDeep(levels: number): MagicError {
  return new MagicError("invalid_request", `The body nests deeper than ${levels} levels.`);
}

function tooMany(most: number, what: string): MagicError {
  return new MagicError("invalid_request", `The body has more than ${most} ${what}.`);
}
