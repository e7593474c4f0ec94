// From a body's bytes to a JSON object, refusing what is none, and what would hurt: bad UTF-8, deep nesting, millions of containers.
import { isUtf8 } from "node:buffer";
import { MagicError } from "#contract/errors.ts";
import { scanBody } from "./scan.ts";

/** No real request nests deeper; recursion over one that did would end in a stack overflow. */
const MAX_DEPTH = 128;
/** Objects and arrays in one body: 64 MB of `[]` would become gigabytes of heap. */
const MAX_CONTAINERS = 500_000;
/** Bytes up to which a body is parsed before it is looked at: whatever it holds, it cannot become much. */
const SMALL = 256 * 1024;

/** Throws `invalid_request` (400) with `param` null for what is no JSON object at all. */
export function readBody(raw: Buffer): Record<string, unknown> {
  if (raw.length === 0) throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  if (!isUtf8(raw)) throw new MagicError("invalid_request", "The body is not valid UTF-8.");
  if (raw.length > SMALL) refuseHarmful(raw);
  let parsed: unknown;
  try {
    parsed = JSON.parse(raw.toString("utf8"));
  } catch {
    throw new MagicError("invalid_request", "The body is not valid JSON.");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new MagicError("invalid_request", "The body must be a JSON object.");
  }
  if (raw.length <= SMALL && nestsDeeper(parsed, MAX_DEPTH)) throw tooDeep();
  return parsed as Record<string, unknown>;
}

function refuseHarmful(raw: Buffer): void {
  const scan = scanBody(raw, MAX_DEPTH);
  if (scan.depth > MAX_DEPTH) throw tooDeep();
  if (scan.containers > MAX_CONTAINERS) {
    throw new MagicError("invalid_request", `The body has more than ${MAX_CONTAINERS} objects and arrays.`);
  }
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

function tooDeep(): MagicError {
  return new MagicError("invalid_request", `The body nests deeper than ${MAX_DEPTH} levels.`);
}
