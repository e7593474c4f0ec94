// A record of a stream's own schema: with its key, its cursor field in the stream's form, and whatever its fields are made from.
import { strftime } from "#daemon/integrations/connectors/declarative/jinja/date-text.ts";
import { DateTime } from "#daemon/integrations/connectors/declarative/jinja/datetime.ts";
import { isRecord, list } from "#daemon/integrations/connectors/declarative/manifest/component.ts";

export type Json = Record<string, unknown>;

const DAY = 86_400_000;
const examples = new WeakMap<Json, Json>();

/** `id` is the record's own; `at` its place on the page: records of a page are of the last five days. */
export function recordOf(stream: Json, id: number, at: number): Json {
  let example = examples.get(stream);
  if (!example) {
    const loader = list(stream["schema_loader"]).filter(isRecord)[0];
    const made = exampleOf(loader?.["schema"], 0);
    example = isRecord(made) ? made : {};
    examples.set(stream, example);
  }
  const record = { ...example };
  for (const key of list(stream["primary_key"]).flat().map(String))
    if (key) place(record, key.split("."), typeof record[key] === "number" ? id : `${id}`);
  if (!Object.hasOwn(record, "id")) record["id"] = `${id}`;
  const day = new Date(Math.floor(Date.now() / DAY) * DAY - (1 + (at % 5)) * DAY);
  const sync = stream["incremental_sync"];
  if (isRecord(sync)) date(record, stream, sync, day);
  // Times that a template reads in a form of its own are in that form.
  for (const { template } of added(stream)) {
    if (!/strptime|str_to_datetime|format_datetime/.test(template)) continue;
    const forms = [...template.matchAll(/['"](%[^'"]+)['"]/g)].map((form) => form[1] ?? "");
    const form = template.includes("format_datetime") ? forms[1] : forms[0];
    if (form) for (const source of recordReferences(template)) place(record, source, dateText(day, form));
  }
  return record;
}

function date(record: Json, stream: Json, sync: Json, day: Date): void {
  const format = String(list(sync["cursor_datetime_formats"])[0] ?? sync["datetime_format"] ?? "");
  const value = sync["type"] === "DatetimeBasedCursor" ? dateText(day, format) : day.getTime() / 1000;
  const field = String(sync["cursor_field"] ?? "").replace(/\{\{[^}]*\}\}/g, "updated_at");
  place(record, Object.hasOwn(record, field) ? [field] : field.split("."), value);
  // A cursor field that the connector makes: what it is made from must be there.
  for (const { path, template } of added(stream))
    if (path === field) for (const source of recordReferences(template)) place(record, source, value);
}

/** The fields that a stream's transformations make. */
function added(stream: Json): { readonly path: string; readonly template: string }[] {
  return list(stream["transformations"])
    .filter(isRecord)
    .flatMap((each) => list(each["fields"]).filter(isRecord))
    .map((field) => ({ path: list(field["path"]).join("."), template: String(field["value"] ?? "") }));
}

function recordReferences(template: string): string[][] {
  return references(template, "record").filter((path) => path.length > 0);
}

/** `root.a.b`, `root['a'].get('b', {})`: the paths below `root` that a template reads. */
export function references(template: string, root: string): string[][] {
  const chain = new RegExp(
    `\\b${root}((?:\\.get\\(\\s*["'][^"']+["'][^)]*\\)|\\[\\s*["'][^"']+["']\\s*\\]|\\.(?!get\\(|items\\(|keys\\(|split\\(|replace\\()[A-Za-z_$@][\\w$@]*)+)`,
    "g",
  );
  const step = /\.get\(\s*["']([^"']+)["']|\[\s*["']([^"']+)["']\s*\]|\.([A-Za-z_$@][\w$@]*)/g;
  const found = [...template.matchAll(chain)].map(([, parts = ""]) =>
    [...parts.matchAll(step)].map((part) => part[1] ?? part[2] ?? part[3] ?? ""),
  );
  return [...new Map(found.map((path) => [path.join("\0"), path])).values()];
}

/** Puts a value at a path; what lies on the way is copied, so that records may share their parts. */
export function place(target: Json, path: readonly string[], value: unknown): void {
  const [key = "", ...rest] = path;
  if (rest.length === 0) {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  const inner: Json = Object.hasOwn(target, key) && isRecord(target[key]) ? { ...target[key] } : {};
  place(inner, rest, value);
  Object.defineProperty(target, key, { value: inner, enumerable: true, configurable: true, writable: true });
}

function dateText(day: Date, format: string): unknown {
  const text = strftime(new DateTime(BigInt(day.getTime()) * 1000n, 0), format);
  return /^%(s|ms|epoch_microseconds)$/.test(format) ? Number(text) : /%/.test(format) ? text : day.toISOString();
}

function exampleOf(schema: unknown, depth: number): unknown {
  if (!isRecord(schema) || depth > 5) return "text";
  const choice = [schema["oneOf"], schema["anyOf"]]
    .find(Array.isArray)
    ?.find((each) => isRecord(each) && each["type"] !== "null");
  if (choice) return exampleOf(choice, depth + 1);
  const type = list(schema["type"])
    .map(String)
    .find((each) => each !== "null");
  if (type === "object" || (!type && isRecord(schema["properties"])))
    return Object.fromEntries(
      Object.entries(isRecord(schema["properties"]) ? schema["properties"] : {}).map(([name, each]) => [
        name,
        exampleOf(each, depth + 1),
      ]),
    );
  if (type === "array") return [exampleOf(schema["items"], depth + 1)];
  if (type === "integer" || type === "number") return 7;
  if (type === "boolean") return true;
  if (schema["format"] === "date-time") return "2024-06-01T00:00:00Z";
  if (schema["format"] === "date") return "2024-06-01";
  return Array.isArray(schema["enum"]) ? schema["enum"].find((each) => each !== null) : "text";
}
