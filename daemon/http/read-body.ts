// From a body's bytes to JSON, refusing what would hurt: bad UTF-8, deep nesting, millions of containers, keys or values. For every surface.
import { isUtf8 } from "node:buffer";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { jsonMeter } from "#shared/json-size.ts";
import { nestsDeeper } from "#shared/nesting.ts";

/** Levels; no real completion request comes near. */
const COMPLETION_DEPTH = 128;
/** Objects and arrays in one body: 64 MB of `[]` would become gigabytes of heap. */
const MAX_CONTAINERS = 500_000;
/** A key that no other object has costs a microsecond or two: a million would hold up everybody for seconds. */
const MAX_KEYS = 250_000;
/** Of any kind: 64 MB of numbers would hold up everybody for a second. */
const MAX_VALUES = 4_000_000;
/** Bytes up to which a body is parsed before it is looked at: whatever it holds, it cannot become much. */
const SMALL = 256 * 1024;

/** Throws `invalid_request` (400) with `param` null for what is no JSON object at all. */
export function readBody(raw: Buffer): Record<string, unknown> {
  if (raw.length === 0) throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  const parsed = parseBody(raw, COMPLETION_DEPTH, JSON.parse);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new MagicError("invalid_request", "The body must be a JSON object.");
  }
  return parsed as Record<string, unknown>;
}

/** What `parse` makes of it. Throws `invalid_request` for what is no JSON, or beyond the bounds, and what `parse` says of JSON that it refuses. */
export function parseBody(raw: Buffer, levels: number, parse: (text: string) => unknown): unknown {
  // Decoded as it is, two bodies that differ could become one and the same text.
  if (!isUtf8(raw)) throw new MagicError("invalid_request", "The body is not valid UTF-8.");
  if (raw.length > SMALL) refuseHarmful(raw, levels);
  let parsed: unknown;
  try {
    parsed = parse(raw.toString("utf8"));
  } catch (cause) {
    if (isMagicError(cause)) throw cause;
    throw new MagicError("invalid_request", "The body is not valid JSON.", { cause });
  }
  if (raw.length <= SMALL && nestsDeeper(parsed, levels)) throw tooDeep(levels);
  return parsed;
}

function refuseHarmful(raw: Buffer, levels: number): void {
  const most = { depth: levels, containers: MAX_CONTAINERS, keys: MAX_KEYS, values: MAX_VALUES };
  const { depth, containers, keys, values } = jsonMeter(most)(raw.toString("latin1"));
  if (depth > levels) throw tooDeep(levels);
  if (containers > MAX_CONTAINERS) throw tooMany(MAX_CONTAINERS, "objects and arrays");
  if (keys > MAX_KEYS) throw tooMany(MAX_KEYS, "different keys");
  if (values > MAX_VALUES) throw tooMany(MAX_VALUES, "values");
}

function tooDeep(levels: number): MagicError {
  return new MagicError("invalid_request", `The body nests deeper than ${levels} levels.`);
}

function tooMany(most: number, what: string): MagicError {
  return new MagicError("invalid_request", `The body has more than ${most} ${what}.`);
}
