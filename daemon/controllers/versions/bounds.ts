// Which bounds of one schema are tighter than another's: lengths, numbers, patterns, formats.
import { canonicalJson } from "#contract/canonical-json.ts";
import { isMultiple } from "#contract/json-schema/multiple-of.ts";
import { type SchemaObject, type Side, types } from "./schema.ts";

const LOWER = ["minLength", "minItems", "minProperties"];
const UPPER = ["maxLength", "maxItems", "maxProperties"];
const EXACT = [
  ...["pattern", "format", "uniqueItems", "dependentRequired"],
  ...["formatMinimum", "formatMaximum", "formatExclusiveMinimum", "formatExclusiveMaximum"],
];

export function boundBreaks(a: SchemaObject, b: SchemaObject, side: Side): string[] {
  const number = (schema: SchemaObject, word: string): number | null => {
    const value = schema[word];
    return typeof value === "number" ? value : null;
  };
  const numeric = types(a).some((type) => type === "number" || type === "integer");
  const from = {
    above: Math.max(number(a, "minimum") ?? -Infinity, number(a, "exclusiveMinimum") ?? -Infinity),
    below: Math.min(number(a, "maximum") ?? Infinity, number(a, "exclusiveMaximum") ?? Infinity),
  };
  const [minimum, over] = [number(b, "minimum"), number(b, "exclusiveMinimum")];
  const [maximum, under] = [number(b, "maximum"), number(b, "exclusiveMaximum")];
  const touches = (word: string, bound: number): boolean => number(a, word) === bound;
  const tight = [
    numeric && minimum !== null && from.above < minimum && "minimum",
    numeric &&
      over !== null &&
      (from.above < over || (from.above === over && !touches("exclusiveMinimum", over))) &&
      "exclusiveMinimum",
    numeric && maximum !== null && from.below > maximum && "maximum",
    numeric &&
      under !== null &&
      (from.below > under || (from.below === under && !touches("exclusiveMaximum", under))) &&
      "exclusiveMaximum",
    numeric &&
      b["multipleOf"] !== undefined &&
      !isMultiple(number(a, "multipleOf") ?? NaN, Number(b["multipleOf"])) &&
      "multipleOf",
    ...LOWER.filter((word) => (number(b, word) ?? 0) > (number(a, word) ?? 0)),
    ...UPPER.filter((word) => (number(b, word) ?? Infinity) < (number(a, word) ?? Infinity)),
    ...EXACT.filter(
      (word) => b[word] !== undefined && b[word] !== false && canonicalJson(a[word]) !== canonicalJson(b[word]),
    ),
  ].filter((word) => word !== false);
  return tight.map((word) => `${word} ${side === "input" ? "is stricter" : "was stricter"}`);
}
