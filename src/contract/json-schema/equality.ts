// `enum`, `const` and `uniqueItems` by what JSON Schema calls equal (2020-12 core, section 4.2.2), instead of Ajv's own: those ask a value's
// members called `toString`, `valueOf` and `constructor` what it is, and compare every item of a list with every other.
import type { FuncKeywordDefinition } from "ajv/dist/2020.js";
import { canonicalJson } from "../canonical-json.ts";

const hasParts = (value: unknown): boolean => typeof value === "object" && value !== null;

/** The same for equal values alone: objects whatever the order of their members; the text of no other value begins with a bracket. */
function keyOf(value: unknown): unknown {
  if (hasParts(value)) return canonicalJson(value);
  return typeof value === "string" ? `"${value}` : value;
}

type Validate = NonNullable<ReturnType<NonNullable<FuncKeywordDefinition["compile"]>>>;

function oneOf(keyword: string, values: readonly unknown[], message: string, params: object): Validate {
  const allowed = new Set(values.map(keyOf));
  // What cannot be one of them is not written out: it may be megabytes.
  const plain = !values.some(hasParts);
  const validate: Validate = (value: unknown): boolean => {
    if (!(plain && hasParts(value)) && allowed.has(keyOf(value))) return true;
    validate.errors = [{ keyword, message, params }];
    return false;
  };
  return validate;
}

export const enumeration: FuncKeywordDefinition = {
  keyword: "enum",
  schemaType: "array",
  errors: true,
  compile: (values: readonly unknown[]) =>
    oneOf("enum", values, "must be equal to one of the allowed values", { allowedValues: values }),
};

export const constant: FuncKeywordDefinition = {
  keyword: "const",
  errors: true,
  compile: (value: unknown) => oneOf("const", [value], "must be equal to constant", { allowedValue: value }),
};

const unique: Validate = (items: readonly unknown[]): boolean => {
  const seen = new Map<unknown, number>();
  for (const [at, item] of items.entries()) {
    const key = keyOf(item);
    const before = seen.get(key);
    if (before !== undefined) {
      const message = `must NOT have duplicate items (items ## ${before} and ${at} are identical)`;
      unique.errors = [{ keyword: "uniqueItems", message, params: { i: before, j: at } }];
      return false;
    }
    seen.set(key, at);
  }
  return true;
};

export const uniqueItems: FuncKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  errors: true,
  compile: (wanted: boolean) => (wanted ? unique : () => true),
};
