// Whether one value could fit two forms of a `oneOf`.
import { canonicalJson } from "#contract/canonical-json.ts";
import { list } from "#contract/json-object.ts";
import { resolve } from "./resolve.ts";
import { type Schema, type SchemaObject, types, valuesOf } from "./schema.ts";

/** Whether two forms could accept the same value, as far as types and constant members tell. */
export function overlaps(forms: readonly Schema[], root: Schema): boolean {
  const all = forms.map((form) => resolve(form, root));
  return all.some((one, at) => all.slice(at + 1).some((other) => !disjoint(one, other)));
}

function disjoint(one: Schema, other: Schema): boolean {
  if (typeof one === "boolean" || typeof other === "boolean") return one === false || other === false;
  const [values, others] = [valuesOf(one), valuesOf(other)];
  if (values && others) {
    const known = new Set(others.map(canonicalJson));
    return !values.some((value) => known.has(canonicalJson(value)));
  }
  const kinds = (schema: SchemaObject): string[] => types(schema).map((type) => (type === "integer" ? "number" : type));
  const shared = kinds(one).filter((type) => kinds(other).includes(type));
  if (shared.length === 0) return true;
  if (shared.some((type) => type !== "object")) return false;
  const properties = (schema: SchemaObject): Record<string, Schema> =>
    (schema["properties"] ?? {}) as Record<string, Schema>;
  return list(one["required"]).some((key) => {
    const mine = properties(one)[String(key)];
    const its = properties(other)[String(key)];
    if (!list(other["required"]).includes(key) || typeof mine !== "object" || typeof its !== "object") return false;
    return valuesOf(mine) !== null && valuesOf(its) !== null && disjoint(mine, its);
  });
}
