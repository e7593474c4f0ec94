// schema_normalization: Default. Values are cast to the one type that the schema names, where the cast loses nothing.
import { parseJson } from "../http/decode.ts";
import { isRecord } from "../manifest/component.ts";

export function normalise(value: unknown, schema: unknown): unknown {
  if (!isRecord(schema) || value === null || value === undefined) return value;
  const cast = castTo(value, schema);
  if (isRecord(cast) && isRecord(schema["properties"])) {
    for (const [key, inner] of Object.entries(schema["properties"]))
      if (Object.hasOwn(cast, key)) cast[key] = normalise(cast[key], inner);
    return cast;
  }
  return Array.isArray(cast) && isRecord(schema["items"]) ? cast.map((each) => normalise(each, schema["items"])) : cast;
}

function castTo(value: unknown, schema: Readonly<Record<string, unknown>>): unknown {
  const types = (Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]]).filter((type) => type !== "null");
  // Which of several is meant, nobody knows.
  if (types.length !== 1) return value;
  switch (types[0]) {
    case "string":
      return asText(value);
    case "boolean":
      return asBoolean(value);
    case "integer":
    case "number":
      return asNumber(value, types[0]);
    case "array":
      return !Array.isArray(value) && typeof value !== "object" && holdsSimple(schema["items"]) ? [value] : value;
    default:
      return value;
  }
}

function asText(value: unknown): unknown {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  return typeof value === "object" ? JSON.stringify(value) : value;
}

function asBoolean(value: unknown): unknown {
  if (typeof value === "number") return value !== 0;
  if (typeof value !== "string" || !/^(true|false|yes|no|1|0|t|f|y|n|on|off)$/i.test(value)) return value;
  return /^(true|yes|1|t|y|on)$/i.test(value);
}

function asNumber(value: unknown, type: "integer" | "number"): unknown {
  if (typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return value;
  const form =
    type === "integer"
      ? /^\s*\+?(-?)0*(0|[1-9]\d*)\s*$/
      : /^\s*\+?(-?)0*((?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*$/;
  const [, sign, digits] = form.exec(value) ?? [];
  // More digits than a number holds stay text.
  const number = digits === undefined ? value : parseJson(`${sign}${digits}`, "");
  return typeof number === "number" ? number : value;
}

// The reference takes one type that is written without a list for none.
function holdsSimple(items: unknown): boolean {
  if (!isRecord(items) || items["type"] === undefined) return true;
  return Array.isArray(items["type"]) && items["type"].every((type) => type !== "object" && type !== "array");
}
