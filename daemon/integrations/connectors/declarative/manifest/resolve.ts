// A manifest as written -> one without references: `$ref` inlined with the fields beside it winning, `$parameters` handed down, types that
// the place implies filled in. The rules are those of the manifest language's reference implementation.
import { setField } from "#contract/json-object.ts";
import { isRecord, manifestError } from "./component.ts";
import { customTypes, defaultTypes } from "./default-types.ts";

const MAX_DEPTH = 120;
/** Of values within values, references and all. */
const MAX_LEVELS = 1000;
/** Each reference stands for a copy, and each parameter: a manifest must not unfold to more than this many values. */
const MAX_NODES = 2_000_000;

/** Throws validation_failed on missing or circular references. */
export function resolveManifest(document: Record<string, unknown>): Record<string, unknown> {
  const references: References = { document, known: new Map(), extents: new Map() };
  const resolved = dereference(document, references, [], 0) as Record<string, unknown>;
  if (extentOf(resolved, references).size > MAX_NODES) throw manifestError("the references unfold to too many values");
  return propagate("", resolved, {}, { nodes: 0, parentsFirst: false });
}

/** The same of a stream that was made of a template: parameters that came with its values reach its parts. */
export function handDown(stream: Record<string, unknown>, parentsFirst: boolean): Record<string, unknown> {
  return propagate("", stream, {}, { nodes: 0, parentsFirst });
}

interface References {
  readonly document: Record<string, unknown>;
  /** What references stand for: one value wherever they stand, for manifests refer to the same parts thousands of times. */
  readonly known: Map<string, unknown>;
  readonly extents: Map<object, Extent>;
}

/** With what is shared counted wherever it stands. */
interface Extent {
  size: number;
  levels: number;
}

function extentOf(value: unknown, references: References): Extent {
  const extent: Extent = { size: 1, levels: 1 };
  if (typeof value !== "object" || value === null) return extent;
  const known = references.extents.get(value);
  if (known) return known;
  for (const each of Object.values(value)) {
    const { size, levels } = extentOf(each, references);
    extent.size += size;
    extent.levels = Math.max(extent.levels, levels + 1);
  }
  references.extents.set(value, extent);
  return extent;
}

function dereference(value: unknown, references: References, path: readonly string[], level: number): unknown {
  if (path.length > MAX_DEPTH || level > MAX_LEVELS) throw manifestError("the references nest too deeply");
  if (Array.isArray(value)) return value.map((each) => dereference(each, references, path, level + 1));
  if (typeof value === "string")
    return /^#\/[\w$/.\- ]+$/.test(value) && !value.includes("{{") ? follow(value, references, path, level) : value;
  if (!isRecord(value)) return value;
  const out: Record<string, unknown> = {};
  const reference = value["$ref"];
  if (typeof reference === "string" && reference.startsWith("#/")) {
    const target = follow(reference, references, path, level);
    if (isRecord(target)) for (const key of Object.keys(target)) put(out, key, target[key]);
    else if (Object.keys(value).length === 1) return target;
  } else if (reference !== undefined && !isRecord(reference)) put(out, "$ref", reference);
  for (const key of Object.keys(value)) {
    if (key === "$ref" && typeof reference === "string") continue;
    put(out, key, dereference(value[key], references, path, level + 1));
  }
  return out;
}

// A key such as __proto__ stays data.
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") setField(target, key, value);
  else target[key] = value;
}

function follow(reference: string, references: References, path: readonly string[], level: number): unknown {
  const { document, known } = references;
  if (known.has(reference)) return within(known.get(reference), references, level);
  if (path.includes(reference)) throw manifestError(`circular reference: ${[...path, reference].join(" -> ")}`);
  const target = lookup(reference, document, 0);
  if (target === undefined) throw manifestError(`${reference} does not exist`);
  const found = dereference(target, references, [...path, reference], level);
  known.set(reference, found);
  return within(found, references, level);
}

function within(value: unknown, references: References, level: number): unknown {
  if (level + extentOf(value, references).levels > MAX_LEVELS) throw manifestError("the references nest too deeply");
  return value;
}

// Keys may hold slashes themselves: at each level the shortest run of segments that is a key is tried first.
function lookup(reference: string, document: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) throw manifestError(`circular reference: ${reference}`);
  const segments = reference.slice(2).split("/");
  const walk = (value: unknown, at: number): unknown => {
    if (at === segments.length) return value;
    if (Array.isArray(value)) return walk(value[Number(segments[at])], at + 1);
    if (!isRecord(value)) return undefined;
    for (let end = at + 1; end <= segments.length; end++) {
      const key = segments.slice(at, end).join("/");
      if (Object.hasOwn(value, key)) {
        const found = walk(value[key], end);
        if (found !== undefined) return found;
      }
    }
    return isRecord(value["$ref"])
      ? undefined
      : typeof value["$ref"] === "string"
        ? walk(lookup(value["$ref"], document, depth + 1), at)
        : undefined;
  };
  return walk(document, 0);
}

type Parameters = Readonly<Record<string, unknown>>;
interface Descent {
  nodes: number;
  /** Of parameters with one name the outermost counts, not the innermost. */
  readonly parentsFirst: boolean;
}

function propagate(
  place: string,
  component: Record<string, unknown>,
  inherited: Parameters,
  descent: Descent,
): Record<string, unknown> {
  const own = { ...component };
  own["type"] ??= "class_name" in own ? customTypes[place] : defaultTypes[place];
  if (own["type"] === undefined) delete own["type"];
  if (typeof own["type"] !== "string" || isJsonSchema(own))
    return place === "" || !("type" in own) ? plain(own, inherited, descent) : own;
  const declared = isRecord(own["$parameters"]) ? own["$parameters"] : {};
  delete own["$parameters"];
  const parameters: Record<string, unknown> = descent.parentsFirst
    ? { ...declared, ...inherited }
    : { ...inherited, ...declared };
  for (const key of Object.keys(parameters)) own[key] = truthy(own[key]) ? own[key] : parameters[key];
  descent.nodes += Object.keys(own).length;
  if (descent.nodes > MAX_NODES) throw manifestError("the parameters unfold to too many values");
  for (const field of Object.keys(own)) {
    if (typeof own[field] !== "object") continue;
    own[field] = descend(`${own["type"]}.${field}`, own[field], without(parameters, field), descent);
  }
  if (Object.keys(parameters).length) own["$parameters"] = parameters;
  return own;
}

function without(parameters: Parameters, field: string): Parameters {
  if (!Object.hasOwn(parameters, field)) return parameters;
  const { [field]: _own, ...rest } = parameters;
  return rest;
}

// A field that holds plain data may still hold components further down (a map of named authenticators).
function plain(value: Record<string, unknown>, inherited: Parameters, descent: Descent): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value))
    put(
      out,
      key,
      isRecord(value[key]) && typeof value[key]["type"] === "string" && /^[A-Z]/.test(value[key]["type"])
        ? propagate("", value[key], inherited, descent)
        : value[key],
    );
  return out;
}

function descend(place: string, value: unknown, parameters: Parameters, descent: Descent): unknown {
  if (Array.isArray(value))
    return value.map((each) => (isRecord(each) ? propagate(place, each, parameters, descent) : each));
  return isRecord(value) ? propagate(place, value, parameters, descent) : value;
}

const truthy = (value: unknown): boolean =>
  typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);

const jsonTypes = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
function isJsonSchema(component: Record<string, unknown>): boolean {
  return typeof component["type"] === "string" && jsonTypes.has(component["type"]);
}
