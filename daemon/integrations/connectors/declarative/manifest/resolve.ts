// A manifest as written -> one without references: `$ref` inlined with the fields beside it winning, `$parameters` handed down, types that
// the place implies filled in. The rules are those of the manifest language's reference implementation.
import { isRecord, manifestError } from "./component.ts";
import { customTypes, defaultTypes } from "./default-types.ts";

const MAX_DEPTH = 120;
/** Each reference is copied in, and each parameter: a manifest must not unfold to more than this many values. */
const MAX_NODES = 2_000_000;

/** Throws validation_failed on missing or circular references. */
export function resolveManifest(document: Record<string, unknown>): Record<string, unknown> {
  const budget = { nodes: 0 };
  const resolved = dereference(document, document, [], budget) as Record<string, unknown>;
  return propagate("", resolved, {}, { nodes: 0 });
}

function dereference(
  value: unknown,
  document: Record<string, unknown>,
  path: readonly string[],
  budget: Budget,
): unknown {
  if (++budget.nodes > MAX_NODES) throw manifestError("the references unfold to too many values");
  if (path.length > MAX_DEPTH) throw manifestError("the references nest too deeply");
  if (Array.isArray(value)) return value.map((each) => dereference(each, document, path, budget));
  if (typeof value === "string")
    return /^#\/[\w$/.\- ]+$/.test(value) && !value.includes("{{") ? follow(value, document, path, budget) : value;
  if (!isRecord(value)) return value;
  const out: Record<string, unknown> = {};
  const reference = value["$ref"];
  if (typeof reference === "string" && reference.startsWith("#/")) {
    const target = follow(reference, document, path, budget);
    if (isRecord(target)) for (const key of Object.keys(target)) put(out, key, target[key]);
    else if (Object.keys(value).length === 1) return target;
  } else if (reference !== undefined && !isRecord(reference)) put(out, "$ref", reference);
  for (const key of Object.keys(value)) {
    if (key === "$ref" && typeof reference === "string") continue;
    const own = dereference(value[key], document, path, budget);
    // Parameters beside a reference join those of what it refers to.
    put(out, key, key === "$parameters" && isRecord(own) && isRecord(out[key]) ? { ...out[key], ...own } : own);
  }
  return out;
}

// A key such as __proto__ stays data.
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  else target[key] = value;
}

function follow(
  reference: string,
  document: Record<string, unknown>,
  path: readonly string[],
  budget: Budget,
): unknown {
  if (path.includes(reference)) throw manifestError(`circular reference: ${[...path, reference].join(" -> ")}`);
  const target = lookup(reference, document, 0);
  if (target === undefined) throw manifestError(`${reference} does not exist`);
  return dereference(target, document, [...path, reference], budget);
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
interface Budget {
  nodes: number;
}

function propagate(
  place: string,
  component: Record<string, unknown>,
  inherited: Parameters,
  budget: Budget,
): Record<string, unknown> {
  const own = { ...component };
  own["type"] ??= "class_name" in own ? customTypes[place] : defaultTypes[place];
  if (own["type"] === undefined) delete own["type"];
  if (typeof own["type"] !== "string" || isJsonSchema(own))
    return place === "" || !("type" in own) ? plain(own, inherited, budget) : own;
  const declared = isRecord(own["$parameters"]) ? own["$parameters"] : {};
  delete own["$parameters"];
  const parameters: Record<string, unknown> = { ...inherited, ...declared };
  for (const key of Object.keys(parameters)) own[key] = truthy(own[key]) ? own[key] : parameters[key];
  budget.nodes += Object.keys(own).length;
  if (budget.nodes > MAX_NODES) throw manifestError("the parameters unfold to too many values");
  for (const field of Object.keys(own)) {
    const { [field]: _own, ...rest } = parameters;
    own[field] = descend(`${own["type"]}.${field}`, own[field], rest, budget);
  }
  if (Object.keys(parameters).length) own["$parameters"] = parameters;
  return own;
}

// A field that holds plain data may still hold components further down (a map of named authenticators).
function plain(value: Record<string, unknown>, inherited: Parameters, budget: Budget): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value))
    put(
      out,
      key,
      isRecord(value[key]) && typeof value[key]["type"] === "string" && /^[A-Z]/.test(value[key]["type"])
        ? propagate("", value[key], inherited, budget)
        : value[key],
    );
  return out;
}

function descend(place: string, value: unknown, parameters: Parameters, budget: Budget): unknown {
  if (Array.isArray(value))
    return value.map((each) => (isRecord(each) ? propagate(place, each, parameters, budget) : each));
  return isRecord(value) ? propagate(place, value, parameters, budget) : value;
}

const truthy = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && value !== false && value !== 0;

const jsonTypes = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
function isJsonSchema(component: Record<string, unknown>): boolean {
  return typeof component["type"] === "string" && jsonTypes.has(component["type"]);
}
