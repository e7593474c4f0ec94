// The JSON schema of a stream's records: written in the manifest, or asked of the vendor.
import { setField } from "#contract/json-object.ts";
import { type Context, condition, emptySlice, text } from "../context.ts";
import { emptyParts } from "../http/options.ts";
import {
  type Component,
  child,
  children,
  isRecord,
  list,
  optionalChild,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { dpathOne } from "./dpath.ts";
import type { DataRecord, LoadSchema } from "./records.ts";
import { lookupOf } from "./retrieve.ts";
import { transformsOf } from "./transform.ts";

export function schemaOf(context: Context, stream: Component): LoadSchema {
  const loaders = children(stream, "schema_loader").map((loader) => loaderOf(context, loader));
  return async () => {
    const schemas = await Promise.all(loaders.map((load) => load()));
    const known = schemas.filter((schema) => schema !== undefined);
    if (known.length < 2) return known[0];
    // Of what several say the first one's counts, as in the reference.
    const ordered = known.reverse();
    const properties = Object.assign({}, ...ordered.map((schema) => schema["properties"] ?? {}));
    return Object.assign({}, ...ordered, { properties });
  };
}

function loaderOf(context: Context, loader: Component): LoadSchema {
  const type = typeOf(loader);
  if (type === "InlineSchemaLoader") return async () => (isRecord(loader["schema"]) ? loader["schema"] : undefined);
  // A file beside the manifest: a manifest that stands alone has none.
  if (type === "JsonFileSchemaLoader") return async () => undefined;
  return type === "DynamicSchemaLoader" ? dynamic(context, loader) : refuseCustom(loader);
}

function dynamic(context: Context, loader: Component): LoadSchema {
  const retrieve = lookupOf(context, child(loader, "retriever"));
  const identifier = child(loader, "schema_type_identifier");
  const path = (value: unknown): string[] => list(value).map((part) => text(context, identifier, part));
  return async () => {
    const properties: Record<string, unknown> = {};
    for await (const page of retrieve.pages(emptySlice, emptyParts(), undefined, () => true)) {
      for (const record of page) {
        const source = path(identifier["schema_pointer"]).length
          ? dpathOne(record, path(identifier["schema_pointer"]))
          : record;
        for (const field of list(source).filter(isRecord)) {
          const name = dpathOne(field, path(identifier["key_pointer"]));
          const kind = identifier["type_pointer"] ? dpathOne(field, path(identifier["type_pointer"])) : "string";
          if (typeof name === "string") setField(properties, name, typeSchema(context, identifier, kind, field));
        }
      }
    }
    return {
      $schema: "https://json-schema.org/draft-07/schema#",
      type: "object",
      additionalProperties: true,
      properties: changed(context, loader, properties),
    };
  };
}

// What the manifest leaves out of the vendor's fields, and what it calls them.
function changed(context: Context, loader: Component, properties: DataRecord): DataRecord {
  const filter = optionalChild(loader, "schema_filter");
  const kept = Object.entries(properties).filter(
    ([name, schema]) =>
      !filter || condition(context, filter, filter["condition"] ?? "true", { record: { [name]: schema } }),
  );
  const out: DataRecord = Object.fromEntries(kept);
  for (const transform of transformsOf(context, children(loader, "schema_transformations"))) transform(out, emptySlice);
  return out;
}

function typeSchema(context: Context, identifier: Component, kind: unknown, field: DataRecord): DataRecord {
  for (const mapping of children(identifier, "types_mapping")) {
    const test = mapping["condition"];
    if (mapping["current_type"] !== kind || (test && !condition(context, mapping, test, { raw_schema: field })))
      continue;
    return jsonType(mapping["target_type"]);
  }
  return jsonType(kind);
}

const formats: Readonly<Record<string, DataRecord>> = {
  date: { type: ["null", "string"], format: "date" },
  "date-time": { type: ["null", "string"], format: "date-time" },
  timestamp_with_timezone: { type: ["null", "string"], format: "date-time" },
  timestamp_without_timezone: {
    ...{ type: ["null", "string"], format: "date-time" },
    airbyte_type: "timestamp_without_timezone",
  },
  time_with_timezone: { type: ["null", "string"], format: "time", airbyte_type: "time_with_timezone" },
  time_without_timezone: { type: ["null", "string"], format: "time", airbyte_type: "time_without_timezone" },
};

function jsonType(type: unknown): DataRecord {
  if (Array.isArray(type)) return { oneOf: type.map(jsonType) };
  if (isRecord(type))
    return {
      type: ["null", String(type["field_type"])],
      ...(type["items"] ? { items: jsonType(type["items"]) } : {}),
    };
  const name = String(type);
  return (
    (Object.hasOwn(formats, name) ? formats[name] : undefined) ?? {
      type: ["null", ["string", "number", "integer", "boolean", "object", "array"].includes(name) ? name : "string"],
    }
  );
}
