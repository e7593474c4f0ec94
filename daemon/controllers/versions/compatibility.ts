// Is a new version's contract one that the old version's callers can live with? Inputs may become wider, outputs narrower; anything else
// needs a new major version (semver.org, rule 8; below 1.0.0 a new minor one, rule 4).
import semver from "semver";
import type { ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import { canonicalJson } from "../bundle/digest.ts";

type Schema = boolean | Record<string, unknown>;

export interface Break {
  /** JSON pointer into the new contract. */
  readonly pointer: string;
  readonly detail: string;
}

/** Throws `incompatible_version` where `next` breaks `previous`'s callers without a version number that says so. */
export function requireCompatible(previous: ControllerContract, next: ControllerContract): void {
  if (!promisesCompatibility(previous.version, next.version)) return;
  const breaks = findBreaks(previous, next);
  if (breaks.length === 0) return;
  const first = breaks[0] as Break;
  throw new MagicError(
    "incompatible_version",
    `${next.name}@${next.version} breaks callers of ${previous.version} at ${first.pointer}: ${first.detail}; make it ${nextBreaking(previous.version)}`,
    { problems: breaks.map(({ pointer, detail }) => ({ pointer, code: "breaking_change", detail })) },
  );
}

export function findBreaks(previous: ControllerContract, next: ControllerContract): Break[] {
  return [
    ...narrowings(previous.input_schema, next.input_schema, "/input_schema", "input").slice(0, 50),
    ...narrowings(next.output_schema, previous.output_schema, "/output_schema", "output").slice(0, 50),
  ];
}

function promisesCompatibility(from: string, to: string): boolean {
  if (semver.major(from) !== semver.major(to) || !semver.gt(to, from)) return false;
  return semver.major(from) > 0 || semver.minor(from) === semver.minor(to);
}

function nextBreaking(version: string): string {
  return semver.major(version) > 0 ? `${semver.major(version) + 1}.0.0` : `0.${semver.minor(version) + 1}.0`;
}

type Side = "input" | "output";

/** Where `to` refuses something that `from` accepts. For outputs the two are swapped: what the new one may produce and the old one did not. */
function narrowings(from: Schema, to: Schema, pointer: string, side: Side, roots = { from, to }, depth = 0): Break[] {
  const a = resolve(from, roots.from);
  const b = resolve(to, roots.to);
  if (b === true || a === false || canonicalJson(a) === canonicalJson(b)) return [];
  const say = (detail: string, at = pointer): Break => ({ pointer: at, detail });
  if (b === false) return [say(side === "input" ? "nothing is accepted any more" : "there was no output here")];
  const old = a === true ? {} : a;
  if (depth > 50) return [say("nests too deeply to compare")];
  const found: Break[] = [];
  for (const word of ["anyOf", "oneOf", "allOf", "not", "if", "patternProperties", "propertyNames", "dependentSchemas"])
    if (b[word] !== undefined && canonicalJson(old[word]) !== canonicalJson(b[word]))
      found.push(say(`${word} changed`));
  found.push(...typeBreaks(old, b, side).map((detail) => say(detail)));
  found.push(...boundBreaks(old, b, side).map((detail) => say(detail)));
  found.push(...objectBreaks(old, b, pointer, side, roots, depth));
  if (b["items"] !== undefined)
    found.push(
      ...narrowings((old["items"] ?? true) as Schema, b["items"] as Schema, `${pointer}/items`, side, roots, depth + 1),
    );
  return found;
}

function typeBreaks(from: Record<string, unknown>, to: Record<string, unknown>, side: Side): string[] {
  const found: string[] = [];
  const before = types(from);
  const after = types(to);
  const lost = before.filter((type) => !after.includes(type) && !(type === "integer" && after.includes("number")));
  if (lost.length > 0 && !("enum" in from) && !("const" in from))
    found.push(`${lost.join(", ")} ${side === "input" ? "is no longer accepted" : "is new in the output"}`);
  const allowed = to["const"] !== undefined ? [to["const"]] : to["enum"];
  if (!Array.isArray(allowed)) return found;
  const offered = from["const"] !== undefined ? [from["const"]] : from["enum"];
  const known = new Set(allowed.map(canonicalJson));
  if (!Array.isArray(offered))
    found.push(side === "input" ? "only some values are accepted now" : "any value may come now");
  else
    for (const value of offered)
      if (!known.has(canonicalJson(value)))
        found.push(`${JSON.stringify(value)} ${side === "input" ? "is no longer accepted" : "is new in the output"}`);
  return found;
}

const ALL_TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

function types(schema: Record<string, unknown>): string[] {
  const { type } = schema as { type?: string | string[] };
  return type === undefined ? ALL_TYPES : Array.isArray(type) ? type : [type];
}

const LOWER = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const UPPER = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
const EXACT = ["pattern", "format", "multipleOf", "uniqueItems", "contains", "dependentRequired"];

function boundBreaks(from: Record<string, unknown>, to: Record<string, unknown>, side: Side): string[] {
  const verb = side === "input" ? "is stricter" : "was stricter";
  const tighter = (word: string, worse: (before: number, after: number) => boolean): boolean => {
    const after = to[word];
    const before = from[word];
    return typeof after === "number" && (typeof before !== "number" || worse(before, after));
  };
  return [
    ...LOWER.filter((word) => to[word] !== 0 && tighter(word, (before, after) => after > before)),
    ...UPPER.filter((word) => tighter(word, (before, after) => after < before)),
    ...EXACT.filter(
      (word) => to[word] !== undefined && to[word] !== false && canonicalJson(from[word]) !== canonicalJson(to[word]),
    ),
  ].map((word) => `${word} ${verb}`);
}

function objectBreaks(
  from: Record<string, unknown>,
  to: Record<string, unknown>,
  pointer: string,
  side: Side,
  roots: { from: Schema; to: Schema },
  depth: number,
): Break[] {
  const found: Break[] = [];
  const before = (from["properties"] ?? {}) as Record<string, Schema>;
  const after = (to["properties"] ?? {}) as Record<string, Schema>;
  const required = new Set((from["required"] ?? []) as string[]);
  for (const key of (to["required"] ?? []) as string[])
    if (!required.has(key))
      found.push({
        pointer: `${pointer}/required`,
        detail: side === "input" ? `${key} is required now` : `${key} is no longer always there`,
      });
  const rest = (to["additionalProperties"] ?? true) as Schema;
  for (const [key, schema] of Object.entries(before)) {
    const at = `${pointer}/properties/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const next = after[key];
    if (next !== undefined) found.push(...narrowings(schema, next, at, side, roots, depth + 1));
    // A new optional member of an output is what its readers are told to ignore.
    else if (side === "input" && rest === false) found.push({ pointer: at, detail: `${key} is no longer accepted` });
  }
  const open = (from["additionalProperties"] ?? true) !== false;
  if (side === "input" && open && rest === false && types(from).includes("object") && types(to).includes("object"))
    found.push({ pointer: `${pointer}/additionalProperties`, detail: "unknown members are no longer accepted" });
  return found;
}

/** Follows a local `$ref`. */
function resolve(schema: Schema, root: Schema): Schema {
  let at = schema;
  for (let hops = 0; hops < 20 && typeof at === "object" && typeof at["$ref"] === "string"; hops++) {
    const parts = at["$ref"].replace(/^#\/?/, "").split("/").filter(Boolean);
    let next: unknown = root;
    for (const part of parts)
      next = (next as Record<string, unknown> | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    if (typeof next !== "object" && typeof next !== "boolean") return at;
    at = next as Schema;
  }
  return at;
}
