// From a body's bytes to JSON, refusing what would hurt: bad UTF-8, deep nesting, millions of containers or keys. For every surface.
import { isUtf8 } from "node:buffer";
import { MagicError } from "#contract/errors.ts";
import { measureBody } from "#daemon/gateway/format/scan.ts";

export interface Bounds {
  /** Levels. JSON of any depth can be parsed; what walks the value afterwards may be recursive. */
  readonly depth: number;
  /** Members of all objects. A key that no other object has costs a microsecond or two: a million would hold up everybody for seconds. */
  readonly members: number;
}

/** No real completion request comes near. */
const completion: Bounds = { depth: 128, members: 250_000 };
/** Objects and arrays in one body: 64 MB of `[]` would become gigabytes of heap. */
const MAX_CONTAINERS = 500_000;
/** Bytes up to which a body is parsed before it is looked at: whatever it holds, it cannot become much. */
const SMALL = 256 * 1024;

/** Throws `invalid_request` (400) with `param` null for what is no JSON object at all. */
export function readBody(raw: Buffer): Record<string, unknown> {
  if (raw.length === 0) throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  const parsed = parseBody(raw, completion, JSON.parse);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new MagicError("invalid_request", "The body must be a JSON object.");
  }
  return parsed as Record<string, unknown>;
}

/** What `parse` makes of it. Throws `invalid_request` for what is no JSON, or beyond the bounds. */
export function parseBody(raw: Buffer, bounds: Bounds, parse: (text: string) => unknown): unknown {
  // Decoded as it is, two bodies that differ could become one and the same text.
  if (!isUtf8(raw)) throw new MagicError("invalid_request", "The body is not valid UTF-8.");
  if (raw.length > SMALL) refuseHarmful(raw, bounds);
  let parsed: unknown;
  try {
    parsed = parse(raw.toString("utf8"));
  } catch (cause) {
    throw new MagicError("invalid_request", "The body is not valid JSON.", { cause });
  }
  if (raw.length <= SMALL && isContainer(parsed) && nestsDeeper(parsed, bounds.depth)) throw tooDeep(bounds);
  return parsed;
}

function refuseHarmful(raw: Buffer, bounds: Bounds): void {
  const { depth, containers, members } = measureBody(raw, { ...bounds, containers: MAX_CONTAINERS });
  if (depth > bounds.depth) throw tooDeep(bounds);
  if (containers > MAX_CONTAINERS)
    throw new MagicError("invalid_request", `The body has more than ${MAX_CONTAINERS} objects and arrays.`);
  if (members > bounds.members)
    throw new MagicError("invalid_request", `The body has more than ${bounds.members} members in its objects.`);
}

function nestsDeeper(value: object, levels: number): boolean {
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isContainer(value[i]) && nestsDeeper(value[i], levels - 1)) return true;
    return false;
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (isContainer(member) && nestsDeeper(member, levels - 1)) return true;
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function tooDeep({ depth }: Bounds): MagicError {
  return new MagicError("invalid_request", `The body nests deeper than ${depth} levels.`);
}
