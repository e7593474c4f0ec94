// schema_normalization: Default. Values are cast to the type that the schema names, where the cast loses nothing.
import { isRecord } from "../manifest/component.ts";

export function normalise(value: unknown, schema: unknown): unknown {
  if (!isRecord(schema) || value === null || value === undefined) return value;
  const types = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]];
  if (isRecord(value) && isRecord(schema["properties"])) {
    for (const [key, inner] of Object.entries(schema["properties"]))
      if (Object.hasOwn(value, key)) value[key] = normalise(value[key], inner);
    return value;
  }
  if (Array.isArray(value) && isRecord(schema["items"])) return value.map((each) => normalise(each, schema["items"]));
  if (types.includes("array") && !Array.isArray(value)) return types.includes(typeof value) ? value : [value];
  if (typeof value === "string") return fromText(value, types);
  if (typeof value === "number" || typeof value === "boolean") {
    if (
      types.includes("string") &&
      !types.includes(typeof value) &&
      !(typeof value === "number" && types.includes("integer"))
    )
      return String(value);
    return types.includes("boolean") && typeof value === "number" && !types.some(isNumeric) ? value !== 0 : value;
  }
  return types.includes("string") && !types.includes("object") && !types.includes("array") && typeof value === "object"
    ? JSON.stringify(value)
    : value;
}

function fromText(value: string, types: readonly unknown[]): unknown {
  if (types.includes("string")) return value;
  if (types.includes("boolean") && /^(true|false|yes|no|1|0|t|f|y|n|on|off)$/i.test(value))
    return /^(true|yes|1|t|y|on)$/i.test(value);
  if (types.includes("integer") && /^[+-]?\d+$/.test(value.trim()) && Number.isSafeInteger(Number(value)))
    return Number(value);
  if (types.includes("number") && value.trim() !== "" && Number.isFinite(Number(value))) return Number(value);
  return value;
}

const isNumeric = (type: unknown): boolean => type === "number" || type === "integer" || type === "string";
