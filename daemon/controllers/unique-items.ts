// `uniqueItems` in one pass: Ajv compares every item with every other, and a list of a million would hold the daemon for an hour.
import type { FuncKeywordDefinition } from "ajv/dist/2020.js";
import { canonicalJson } from "#shared/canonical-json.ts";

const validate: NonNullable<FuncKeywordDefinition["validate"]> = (
  wanted: boolean,
  items: readonly unknown[],
): boolean => {
  if (!wanted) return true;
  const seen = new Map<unknown, number>();
  for (const [at, item] of items.entries()) {
    // Equal as JSON Schema has it: objects whatever the order of their members; the text of no other value begins with a bracket.
    const key =
      typeof item === "object" && item !== null ? canonicalJson(item) : typeof item === "string" ? `"${item}` : item;
    const before = seen.get(key);
    if (before !== undefined) {
      const message = `must NOT have duplicate items (items ## ${before} and ${at} are identical)`;
      validate.errors = [{ keyword: "uniqueItems", message, params: { i: before, j: at } }];
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
  validate,
};
