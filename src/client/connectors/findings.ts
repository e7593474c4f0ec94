// What one page of an unknown API says about itself: where its records are, their key, how its pages go on. Guesses, to be tried.
import { isObject, setField } from "#contract/json-object.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Page {
  /** The request's URL. */
  readonly url: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export type Pagination =
  | { readonly type: "none" }
  /** The address of the next page: in the body at `path`, or in the Link header. */
  | { readonly type: "next_url"; readonly path: readonly string[] }
  | { readonly type: "link" }
  | { readonly type: "cursor"; readonly path: readonly string[]; readonly parameter: string }
  /** A cursor in a header of the answer. */
  | { readonly type: "header"; readonly name: string; readonly parameter: string }
  /** From the last record's field on, as long as the answer says that there are more. */
  | { readonly type: "last"; readonly field: string; readonly more: readonly string[]; readonly parameter: string }
  | { readonly type: "page"; readonly parameter: string; readonly size: number; readonly start: number }
  | { readonly type: "offset"; readonly parameter: string; readonly size: number };

/** Names that lists of records have when they are empty. */
const listNames = /^(data|items|results?|records|values?|entries|rows|list|content|hits|elements|nodes|edges)$/i;

/** The lists of objects in an answer, the longest first, shallow before deep; [] is the answer itself. */
export function recordPaths(body: unknown): string[][] {
  const found: { readonly path: string[]; readonly length: number }[] = [];
  const visit = (value: unknown, path: string[]): void => {
    if (Array.isArray(value)) {
      const isList = value.length > 0 ? value.every(isObject) : path.length === 0 || listNames.test(path.at(-1) ?? "");
      if (isList) found.push({ path, length: value.length });
    } else if (isObject(value) && path.length < 4)
      for (const [key, each] of Object.entries(value)) visit(each, [...path, key]);
  };
  visit(body, []);
  if (found.length === 0 && isObject(body)) return [[]];
  return found.sort((a, b) => b.length - a.length || a.path.length - b.path.length).map(({ path }) => path);
}

function at(body: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    body,
  );
}

export function recordsAt(body: unknown, path: readonly string[]): Json[] {
  const found = at(body, path);
  return (Array.isArray(found) ? found : [found]).filter(isObject);
}

/** Fields that tell the records apart, the likeliest first. */
export function keyCandidates(records: readonly Json[]): string[] {
  const [first = {}] = records;
  const fields = Object.keys(first).filter((field) => {
    const values = records.map((record) => record[field]);
    return (
      values.every((value) => typeof value === "string" || typeof value === "number") &&
      new Set(values).size === records.length
    );
  });
  const rank = (field: string): number => {
    const places = [/^id$/i, /^_id$/i, /^(uuid|guid|gid)$/i, /^(key|code|slug|number|name)$/i, /id$/i];
    const found = places.findIndex((place) => place.test(field));
    return found < 0 ? places.length : found;
  };
  return fields.filter((field) => rank(field) < 5 || fields.length === 1).sort((a, b) => rank(a) - rank(b));
}

const cursorNames = /^(next_?cursor|next_?page_?token|next_?token|cursor|after|end_?cursor|continuation_?token|next)$/i;
const parameterOf: Readonly<Record<string, string>> = {
  next_cursor: "cursor",
  nextcursor: "cursor",
  nextpagetoken: "pageToken",
  next_page_token: "page_token",
  next_token: "next_token",
  nexttoken: "nextToken",
  endcursor: "after",
  end_cursor: "after",
};

const offsetNames = /^(offset|\$?skip|start_?at|start_?index|start)$/i;
const pageNames = /^(page|current_?page|page_?(number|index|no)|number)$/i;
const headerNames = /^(?:x-)?next-?(cursor|token|page)$|^x-(cursor)$/;

/** How pages may go on, the likeliest first; "none" is not among them. `key`: the field that tells records apart. */
export function paginations(page: Page, records: number, key?: string): Pagination[] {
  const scalars = scalarsOf(page.body);
  const more = scalars.find(({ path, value }) => value === true && /has_?(more|next)/i.test(path.at(-1) ?? ""))?.path;
  const named = [...inHeaders(page), ...inBody(scalars), ...byCounters(page, scalars, records)];
  // Nothing named but a total that is larger, or a round number of records: the two common ways are worth a try.
  const larger = scalars.some(({ path, value }) => isTotal(path) && Number(value) > records);
  const common = named.length === 0 && (more || larger || (records >= 10 && records % 5 === 0));
  const found = [...named, ...behindLast(key, more), ...(common ? commonOnes(records) : [])];
  return found.filter((each, at) => found.findIndex((other) => isSame(each, other)) === at);
}

function* inHeaders({ headers }: Page): Generator<Pagination> {
  if (/rel="?next"?/i.test(headers["link"] ?? "")) yield { type: "link" };
  for (const [name, value] of Object.entries(headers)) {
    const [, next, own] = headerNames.exec(name) ?? [];
    const parameter = (next ?? own ?? "").replace("token", "page_token");
    if (parameter && value) yield { type: "header", name, parameter };
  }
}

function* inBody(scalars: readonly Scalar[]): Generator<Pagination> {
  for (const { path, value } of scalars) {
    if (typeof value !== "string" || value === "") continue;
    const isUrl = /^(https?:\/\/|\/)\S+$/.test(value);
    if (isUrl && /next/i.test(path.join("."))) yield { type: "next_url", path };
    else if (!isUrl && cursorNames.test(path.at(-1) ?? ""))
      yield { type: "cursor", path, parameter: cursorParameter(path) };
  }
}

function* byCounters({ url }: Page, scalars: readonly Scalar[], records: number): Generator<Pagination> {
  const query = new URL(url).searchParams;
  const counters = [
    ...[...query].map(([name, value]) => ({ name, value: Number(value) })),
    ...scalars.map(({ path, value }) => ({
      name: path.at(-1) ?? "",
      value: value === null ? Number.NaN : Number(value),
    })),
  ].filter(({ value }) => Number.isInteger(value));
  const size = sizeOf(scalars, query) ?? records;
  for (const { name } of counters) if (offsetNames.test(name)) yield { type: "offset", parameter: name, size };
  for (const { name, value } of counters) {
    if (!pageNames.test(name) || value > 1) continue;
    for (const parameter of query.has(name) ? [name] : ["page", name])
      yield { type: "page", parameter, size, start: value };
  }
}

// A field of the last record, where the answer says whether there are more.
function* behindLast(field: string | undefined, more: readonly string[] | undefined): Generator<Pagination> {
  if (field === undefined || !more) return;
  for (const parameter of ["starting_after", "after", "since_id"]) yield { type: "last", field, more, parameter };
}

function commonOnes(size: number): Pagination[] {
  return [
    { type: "page", parameter: "page", size, start: 1 },
    { type: "page", parameter: "page", size, start: 0 },
    { type: "offset", parameter: "offset", size },
  ];
}

const isSame = (a: Pagination, b: Pagination): boolean => JSON.stringify(a) === JSON.stringify(b);

const isTotal = (path: readonly string[]): boolean =>
  /^(total|total_?count|total_?items|totalResults|count)$/i.test(path.at(-1) ?? "");

function cursorParameter(path: readonly string[]): string {
  const name = path.at(-1) ?? "";
  return parameterOf[name.toLowerCase()] ?? (/^next$/i.test(name) ? "cursor" : name);
}

function sizeOf(scalars: readonly Scalar[], query: URLSearchParams): number | undefined {
  for (const name of ["per_page", "limit", "page_size", "pageSize", "size", "maxResults", "max_results"]) {
    const given = query.get(name) ?? scalars.find(({ path }) => path.at(-1) === name)?.value;
    if (Number.isInteger(Number(given)) && Number(given) > 0) return Number(given);
  }
  return undefined;
}

interface Scalar {
  readonly path: readonly string[];
  readonly value: unknown;
}

// What stands beside the records, not in them.
function scalarsOf(body: unknown, path: readonly string[] = []): Scalar[] {
  if (Array.isArray(body) || path.length > 4) return [];
  if (!isObject(body)) return [{ path, value: body }];
  return Object.entries(body).flatMap(([key, value]) => scalarsOf(value, [...path, key]));
}

/** A JSON schema that every record fits. */
export function schemaOf(records: readonly Json[]): Json {
  const properties: Record<string, { type: string[]; format?: string }> = {};
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      const types = new Set(properties[name]?.type ?? []);
      const before = properties[name]?.format;
      const known = types.size > 0 && !(types.size === 1 && types.has("null"));
      types.add(typeOf(value));
      if (types.has("number")) types.delete("integer");
      const format = value === null ? before : known && before === undefined ? undefined : formatOf(value);
      const property = { type: [...types], ...(format === undefined ? {} : { format }) };
      setField(properties, name, property);
    }
  }
  for (const property of Object.values(properties))
    property.type = [...property.type.filter((type) => type !== "null").sort(), "null"];
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    additionalProperties: true,
    properties,
  };
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function formatOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (/^\d{4}-\d\d-\d\d$/.test(value)) return "date";
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)$/.test(value) ? "date-time" : undefined;
}
