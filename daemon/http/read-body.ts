// From a body's bytes to JSON, refusing what would hurt: bad UTF-8, deep nesting, millions of containers, keys or values. For every surface.
import { isAscii, isUtf8 } from "node:buffer";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { jsonMeter, MOST_JSON, SMALL_JSON } from "#shared/json-size.ts";
import { nestsDeeper } from "#shared/nesting.ts";
import { skeletonOf } from "#shared/skeleton/skeleton.ts";

/** Throws `invalid_request` (400) with `param` null for what is no JSON object at all. */
export function readBody(raw: Buffer): Record<string, unknown> {
  if (raw.length === 0) throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  const parsed = parseBody(raw, MOST_JSON.depth, JSON.parse);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new MagicError("invalid_request", "The body must be a JSON object.");
  }
  return parsed as Record<string, unknown>;
}

/** What `parse` makes of it. Throws `invalid_request` for what is no JSON, or beyond the bounds, and what `parse` says of JSON that it refuses. */
export function parseBody(raw: Buffer, levels: number, parse: (text: string) => unknown): unknown {
  const ascii = isAscii(raw);
  // Decoded as it is, two bodies that differ could become one and the same text.
  if (!ascii && !isUtf8(raw)) throw new MagicError("invalid_request", "The body is not valid UTF-8.");
  const skeleton = skeletonOf(raw, ascii);
  if (raw.length > SMALL_JSON) refuseHarmful(skeleton.text, levels);
  let parsed: unknown;
  try {
    parsed = parse(skeleton.text);
  } catch (cause) {
    if (isMagicError(cause)) throw cause;
    throw new MagicError("invalid_request", "The body is not valid JSON.", { cause });
  }
  if (raw.length <= SMALL_JSON && nestsDeeper(parsed, levels)) throw tooDeep(levels);
  return skeleton.restore(parsed);
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
