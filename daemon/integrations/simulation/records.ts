// Records that a simulated system holds: made from a stream's JSON schema, valid by it, the same for the same seed, stream and place.
import { isObject, setField } from "#contract/json-object.ts";
import { DAY_MS } from "#shared/clock.ts";
import { type Random, seededRandom } from "./random.ts";

type Json = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 6;
/** Times of simulated records lie in the year before. */
const END = Date.UTC(2026, 0, 1);

/** Where in its schema's form the key and the time of the `at`th of `count` records stand; times grow with the place. */
export interface RecordShape {
  readonly schema: unknown;
  readonly primaryKey: readonly (readonly string[])[];
  /** The field that says when a record was changed, and its text for a time (ms since the epoch). */
  readonly cursor?: { readonly path: readonly string[]; write(time: number): unknown } | undefined;
}

export function simulateRecord(
  shape: RecordShape,
  seed: number,
  stream: string,
  at: number,
  count: number,
): Record<string, unknown> {
  const random = seededRandom(seed, stream, at);
  const made = sampleOf(shape.schema, random, "", 0);
  const record: Record<string, unknown> = isObject(made) ? { ...made } : {};
  for (const path of shape.primaryKey) put(record, path, keyOf(schemaAt(shape.schema, path), stream, at, seed));
  if (shape.cursor) put(record, shape.cursor.path, shape.cursor.write(timeOf(at, count)));
  return record;
}

/** When the `at`th of `count` records was changed (ms since the epoch): the later its place, the later. */
export function timeOf(at: number, count: number): number {
  return END - (count - at) * (DAY_MS / 4);
}

// Told apart by their place: no two records have one key.
function keyOf(schema: unknown, stream: string, at: number, seed: number): unknown {
  const types = typesOf(schema);
  if (types.includes("integer") || types.includes("number")) return 1000 + at;
  if (isObject(schema) && schema["format"] === "uuid") return uuid(seededRandom(seed, stream, "key", at));
  return `${stream.replace(/[^A-Za-z]+/g, "").slice(0, 4) || "rec"}_${String(1000 + at)}`;
}

function sampleOf(schema: unknown, random: Random, name: string, depth: number): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return isObject(schema) && mayBeNull(schema) ? null : {};
  if (Object.hasOwn(schema, "const")) return schema["const"];
  const choices = Array.isArray(schema["enum"]) ? schema["enum"].filter((each) => each !== null) : [];
  if (choices.length > 0) return choices[random.between(0, choices.length - 1)];
  for (const several of [schema["oneOf"], schema["anyOf"]]) {
    const options = Array.isArray(several)
      ? several.filter((each) => !typesOf(each).every((type) => type === "null"))
      : [];
    if (options.length > 0) return sampleOf(options[0], random, name, depth + 1);
  }
  const [type] = typesOf(schema).filter((each) => each !== "null");
  switch (type ?? (isObject(schema["properties"]) ? "object" : "string")) {
    case "object":
      return objectOf(schema, random, depth);
    case "array": {
      const count = Math.max(Number(schema["minItems"] ?? 0), random.between(1, 2));
      return schema["items"] === undefined
        ? []
        : Array.from({ length: count }, () => sampleOf(schema["items"], random, name, depth + 1));
    }
    case "integer":
      return random.between(...bounds(schema, name, 1, 5000));
    case "number":
      return random.between(...bounds(schema, name, 1, 500_000)) / (schema["minimum"] === undefined ? 100 : 1);
    case "boolean":
      return random.next() < 0.5;
    case "null":
      return null;
    default:
      return textOf(schema, random, name);
  }
}

function objectOf(schema: Json, random: Random, depth: number): Json {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const out: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(properties)) put(out, [key], sampleOf(inner, random, key, depth + 1));
  return out;
}

function bounds(schema: Json, name: string, low: number, high: number): [number, number] {
  if (/(^|_)(timestamp|time|at|date|epoch)$/.test(name) && schema["maximum"] === undefined)
    return [END / 1000 - 365 * 86_400, END / 1000];
  const least = Number(
    schema["minimum"] ?? (schema["exclusiveMinimum"] === undefined ? low : Number(schema["exclusiveMinimum"]) + 1),
  );
  const most = Number(schema["maximum"] ?? Math.max(high, least));
  return [Math.ceil(least), Math.max(Math.ceil(least), Math.floor(most))];
}

const words = [
  "amber",
  "birch",
  "cedar",
  "delta",
  "ember",
  "fjord",
  "grove",
  "harbor",
  "iris",
  "juniper",
  "kestrel",
  "linden",
];
const people = [
  "Ada Nkemelu",
  "Bo Lindqvist",
  "Chiara Rossi",
  "Dmitri Orlov",
  "Emre Yilmaz",
  "Fatima Haddad",
  "Grace Okafor",
];

// Addresses and hosts are those that are set aside for examples (RFC 2606, RFC 5737).
function textOf(schema: Json, random: Random, name: string): string {
  const word = (): string => words[random.between(0, words.length - 1)] ?? "";
  const time = new Date(END - random.between(1, 365 * 86_400) * 1000).toISOString();
  const made = ((): string => {
    switch (schema["format"]) {
      case "date-time":
        return `${time.slice(0, 19)}Z`;
      case "date":
        return time.slice(0, 10);
      case "time":
        return `${time.slice(11, 19)}Z`;
      case "email":
        return `${word()}${random.between(1, 99)}@example.com`;
      case "uuid":
        return uuid(random);
      case "uri":
      case "url":
        return `https://example.com/${word()}/${random.between(1, 9999)}`;
      case "ipv4":
        return `192.0.2.${random.between(1, 254)}`;
      case "hostname":
        return `${word()}.example.com`;
    }
    if (/e-?mail/i.test(name)) return `${word()}${random.between(1, 99)}@example.com`;
    if (/(^|_)(url|uri|link|href|website)$/i.test(name))
      return `https://example.com/${word()}/${random.between(1, 9999)}`;
    if (/(_at|_time|_on|date)$|^(created|updated|modified)$/i.test(name)) return `${time.slice(0, 19)}Z`;
    if (/currency/i.test(name)) return ["EUR", "USD", "GBP"][random.between(0, 2)] ?? "EUR";
    if (/country/i.test(name)) return ["DE", "FR", "KE", "US", "JP"][random.between(0, 4)] ?? "DE";
    if (/phone/i.test(name)) return `+1202555${String(random.between(100, 199)).padStart(4, "0")}`;
    if (/(^|_)id$/i.test(name)) return `${word().slice(0, 3)}_${random.between(1000, 99_999)}`;
    if (/(^|_)(first_?name|last_?name|full_?name|author|owner|user_?name)$/i.test(name))
      return people[random.between(0, people.length - 1)] ?? "";
    return `${word()} ${word()}`;
  })();
  const padded = made.padEnd(Number(schema["minLength"] ?? 0), "x");
  return schema["maxLength"] === undefined ? padded : padded.slice(0, Number(schema["maxLength"]));
}

function uuid(random: Random): string {
  const hex = random.hex() + random.hex();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function typesOf(schema: unknown): string[] {
  return isObject(schema) && schema["type"] !== undefined ? [schema["type"]].flat().map(String) : [];
}

const mayBeNull = (schema: Json): boolean => typesOf(schema).includes("null");

function schemaAt(schema: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => {
    const properties = isObject(at) ? at["properties"] : undefined;
    return isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
  }, schema);
}

function put(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = "", ...rest] = path;
  const held = Object.hasOwn(target, first) ? target[first] : undefined;
  const next = rest.length === 0 ? value : isObject(held) ? { ...held } : {};
  if (rest.length > 0) put(next as Record<string, unknown>, rest, value);
  setField(target, first, next);
}
