// The fields that a request asks for by name: written in the manifest or asked of the vendor, in as many requests for a page as it takes;
// what several requests say of one record is put together again.
import { type Context, emptySlice, text } from "../context.ts";
import { isQueryProperties } from "../http/request-parts.ts";
import {
  type Component,
  child,
  children,
  isRecord,
  list,
  manifestError,
  optionalChild,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { dpathOne } from "./dpath.ts";
import { mergeFields } from "./fields.ts";
import type { DataRecord, LoadSchema } from "./records.ts";
import { transformsOf } from "./transform.ts";

export interface QueryProperties {
  /** The names for each request that a page takes. */
  chunks(): Promise<readonly (readonly string[])[]>;
  /** Records of one page, put together where they have the same key; those without one stay as they are. */
  join(records: readonly DataRecord[]): DataRecord[];
}

/**
 * @param read gives all records of a retriever: the vendor is asked for the names.
 * @param schema of the stream, whose fields may be the only ones to ask for.
 */
export function queryPropertiesOf(
  context: Context,
  requester: Component,
  read: (retriever: Component) => AsyncIterable<readonly DataRecord[]>,
  schema: LoadSchema,
): QueryProperties | undefined {
  const parameters = requester["request_parameters"];
  const component =
    Object.values(isRecord(parameters) ? parameters : {}).find(isQueryProperties) ??
    optionalChild(requester, "query_properties") ??
    optionalChild(requester, "fetch_properties_from_endpoint");
  if (!component) return undefined;
  const source = typeOf(component) === "PropertiesFromEndpoint" ? component : component["property_list"];
  const always = list(component["always_include_properties"]).map(String);
  const chunking = optionalChild(component, "property_chunking");
  const selected = namesInSchema(context, optionalChild(component, "property_selector"), schema);
  let names: Promise<readonly string[]> | undefined;
  return {
    async chunks() {
      names ??= (
        isRecord(source) ? fromEndpoint(context, source, read) : Promise.resolve(list(source).map(String))
      ).then(selected);
      return chunksOf(await names, always, chunking);
    },
    join: chunking ? joinBy(chunking) : (records) => [...records],
  };
}

/** Those of the names that the stream's schema has, as the selector calls its fields; all where there is no schema. */
function namesInSchema(
  context: Context,
  component: Component | undefined,
  schema: LoadSchema,
): (names: readonly string[]) => Promise<readonly string[]> {
  if (!component) return async (names) => names;
  if (typeOf(component) !== "JsonSchemaPropertySelector") refuseCustom(component);
  const transforms = transformsOf(context, children(component, "transformations"));
  return async (names) => {
    const properties = (await schema())?.["properties"];
    if (!isRecord(properties)) return names;
    const fields = structuredClone(properties);
    for (const transform of transforms) transform(fields, emptySlice);
    return names.filter((name) => Object.hasOwn(fields, name));
  };
}

async function fromEndpoint(
  context: Context,
  component: Component,
  read: (retriever: Component) => AsyncIterable<readonly DataRecord[]>,
): Promise<readonly string[]> {
  const path = list(component["property_field_path"]).map((part) => text(context, component, part));
  const names: string[] = [];
  for await (const page of read(child(component, "retriever")))
    for (const record of page) {
      const name = dpathOne(record, path);
      if (typeof name === "string" || typeof name === "number") names.push(String(name));
    }
  return names;
}

/** Between two names stands an encoded comma. */
const DELIMITER = 3;

function chunksOf(names: readonly string[], always: readonly string[], chunking: Component | undefined): string[][] {
  const limit = Number(chunking?.["property_limit"] ?? 0);
  if (!limit) return [chunking ? [...names, ...always] : [...always, ...names]];
  if (!(limit > 0)) throw manifestError("PropertyChunking.property_limit must be more than nothing");
  const byCharacters = chunking?.["property_limit_type"] === "characters";
  const chunks: string[][] = [[...always]];
  let size = 0;
  for (const name of names) {
    const more = byCharacters ? name.length + DELIMITER : 1;
    if (size + more > limit && size > 0) {
      chunks.push([...always]);
      size = 0;
    }
    chunks.at(-1)?.push(name);
    size += more;
  }
  return chunks;
}

function joinBy(chunking: Component): QueryProperties["join"] {
  const keys = list(optionalChild(chunking, "record_merge_strategy")?.["key"] ?? "id").map(String);
  return (records) => {
    const joined: DataRecord[] = [];
    const known = new Map<string, DataRecord>();
    for (const record of records) {
      const values = keys.map((key) => (Object.hasOwn(record, key) ? record[key] : undefined));
      // 0 is a key like another one.
      const key = values.some((value) => (value ?? "") === "") ? undefined : JSON.stringify(values);
      const first = key === undefined ? undefined : known.get(key);
      if (first) mergeFields(first, record);
      else {
        const own = { ...record };
        joined.push(own);
        if (key !== undefined) known.set(key, own);
      }
    }
    return joined;
  };
}
