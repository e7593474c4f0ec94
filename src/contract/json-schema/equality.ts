// `enum`, `const` and `uniqueItems` by what JSON Schema calls equal (2020-12 core, section 4.2.2), instead of Ajv's own: those ask a value's
// members called `toString`, `valueOf` and `constructor` what it is, and compare every item of a list with every other.
import { _, type CodeKeywordDefinition, type KeywordCxt } from "ajv/dist/2020.js";
import { canonicalJson } from "../canonical-json.ts";

type Code = CodeKeywordDefinition["code"];

/** The same for equal values alone: objects whatever the order of their members; the text of no other value begins with a bracket. */
function keyOf(value: unknown): unknown {
  if (hasParts(value)) return canonicalJson(value);
  return typeof value === "string" ? `"${value}` : value;
}

function hasParts(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function requireOneOf(values: readonly unknown[], context: KeywordCxt): void {
  const allowed = new Set(values.map(keyOf));
  // What cannot be one of them is not written out: it may be megabytes.
  const parts = values.some(hasParts);
  const isAllowed = (value: unknown): boolean => (parts || !hasParts(value)) && allowed.has(keyOf(value));
  const check = context.gen.scopeValue("func", { ref: isAllowed });
  context.pass(_`${check}(${context.data})`);
}

export const enumeration: Code = (context) => requireOneOf(context.schema as unknown[], context);

export const constant: Code = (context) => requireOneOf([context.schema], context);

/** Where two items are equal; null: nowhere. */
function twinsIn(items: readonly unknown[]): { readonly first: number; readonly second: number } | null {
  const seen = new Map<unknown, number>();
  for (const [second, item] of items.entries()) {
    const key = keyOf(item);
    const first = seen.get(key);
    if (first !== undefined) return { first, second };
    seen.set(key, second);
  }
  return null;
}

export const uniqueItems: Code = (context) => {
  const { gen, data, schema } = context;
  if (!schema) return;
  const find = gen.scopeValue("func", { ref: twinsIn });
  const twins = gen.const("twins", _`${find}(${data})`);
  context.setParams({ i: _`${twins}.second`, j: _`${twins}.first` });
  context.pass(_`${twins} === null`);
};
