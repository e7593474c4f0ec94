// A schema against the meta-schemas of 2020-12.
import type { ErrorObject } from "ajv/dist/2020.js";
import { brief } from "../check.ts";
import { pointerParts } from "../json-pointer.ts";
import { nearest } from "../suggest.ts";
import { metaValidator } from "./compilers.ts";
import type { Add, Schema } from "./walk.ts";

const types = ["null", "boolean", "object", "array", "number", "integer", "string"];

/** Says of each place that is not valid what is wrong first. */
export function checkMetaschema(schema: Schema, base: string, add: Add): void {
  const ajv = metaValidator();
  const { $schema: _dialect, ...rest } = schema;
  if (ajv.validateSchema(rest)) return;
  const seen = new Set<string>();
  for (const error of ajv.errors ?? []) {
    if (seen.has(error.instancePath)) continue;
    seen.add(error.instancePath);
    const key = pointerParts(error.instancePath).at(-1) ?? "schema";
    add(
      base + error.instancePath,
      undefined,
      "schema_invalid",
      `\`${key}\` in a JSON Schema ${said(error)}.`,
      metaFix(key, error),
      error.data,
    );
  }
}

function said(error: ErrorObject): string {
  if (error.keyword === "enum" || error.keyword === "anyOf")
    return `cannot be ${JSON.stringify(brief(error.data)) ?? "this"}`;
  return error.message ?? "is not valid";
}

function metaFix(key: string, error: ErrorObject): string {
  if (key !== "type" && !types.includes(String(error.data)) && !/\/type(\/\d+)?$/.test(error.instancePath))
    return "Correct it as JSON Schema 2020-12 asks.";
  const near = typeof error.data === "string" ? nearest(error.data, types) : undefined;
  return near ? `Did you mean \`${near}\`?` : `Use one of: ${types.join(", ")}.`;
}
