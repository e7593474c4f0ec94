// The text of a manifest -> a resolved one. Whatever is wrong with it is an error that says where.
import { type Document, parseDocument, type Tags, visit } from "yaml";
import { MAX_MANIFEST_BYTES } from "#contract/connector-files.ts";
import { setField } from "#contract/json-object.ts";
import { type Component, children, isRecord, manifestError } from "./component.ts";
import { resolveManifest } from "./resolve.ts";
import { writtenStreams } from "./streams.ts";

/** About a second of work. */
const MAX_ALIAS_STEPS = 10_000_000;

export interface Manifest {
  /** Resolved: no references, every type and parameter in its place. */
  readonly resolved: Readonly<Record<string, unknown>>;
  readonly version: string;
  readonly title: string | undefined;
  /** JSON schema of the connector's configuration. */
  readonly configSchema: Readonly<Record<string, unknown>>;
}

/** What the text, YAML or JSON, says as it is written. Throws validation_failed. */
export function parseManifest(source: string): Record<string, unknown> {
  if (source.length > MAX_MANIFEST_BYTES) throw manifestError(`larger than ${MAX_MANIFEST_BYTES} bytes`);
  const document = parseDocument(source, {
    merge: true,
    // Of a name that stands twice the last one counts, as in the reference: public manifests have such names.
    uniqueKeys: false,
    maxAliasCount: 10_000,
    schema: "yaml-1.1",
    version: "1.1",
    // A double would round ids of more than 2^53.
    intAsBigInt: true,
    customTags: (tags: Tags) => tags.flatMap(asReference),
  } as never);
  const [error] = document.errors;
  if (error) throw manifestError(error.message.split("\n")[0] ?? "not YAML");
  checkNodes(document);
  let parsed: unknown;
  try {
    parsed = plain(document.toJS({ maxAliasCount: 10_000 }), 0);
  } catch (cause) {
    throw manifestError((cause as Error).message);
  }
  if (!isRecord(parsed)) throw manifestError("the document must be an object");
  return parsed;
}

/** YAML or JSON. Throws validation_failed. */
export function loadManifest(source: string): Manifest {
  const parsed = parseManifest(source);
  const missing = ["version", "check"].filter((field) => parsed[field] === undefined);
  if (parsed["streams"] === undefined && parsed["dynamic_streams"] === undefined) missing.push("streams");
  if (missing.length) throw manifestError(`missing: ${missing.join(", ")}`);
  const resolved = resolveManifest(parsed);
  checkLists(resolved);
  const spec = isRecord(resolved["spec"]) ? resolved["spec"] : {};
  const schema = isRecord(spec["connection_specification"])
    ? spec["connection_specification"]
    : { type: "object", properties: {} };
  return {
    resolved,
    version: String(parsed["version"]),
    title: typeof schema["title"] === "string" ? schema["title"] : undefined,
    configSchema: schema,
  };
}

// What the reference's reader (PyYAML) takes for a number: `e1`, `08`, `1e5` and a point alone are texts to it. `1e-7` is one here too:
// JSON writes it so.
const NUMBERS: Readonly<Record<string, string>> = {
  "tag:yaml.org,2002:float": String.raw`[-+]?\d[\d_]*(?::[0-5]?\d)*\.[\d_]*(?:[eE][-+]\d+)?|\.\d[\d_]*(?:[eE][-+]\d+)?|[-+]?\d+[eE][-+]\d+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)`,
  "tag:yaml.org,2002:int": String.raw`[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][\d_]*(?::[0-5]?\d)*|0x[\da-fA-F_]+)`,
};

// To the reference's reader `yes` and `on` are booleans, `y` and `n` are not: coordinates are fields with these names. Dates stay as they
// are written: the manifest language knows text only.
function asReference(tag: Tags[number]): Tags[number][] {
  if (typeof tag === "string") return [tag];
  if (tag.tag === "tag:yaml.org,2002:timestamp") return [];
  const number = NUMBERS[tag.tag];
  if (number) return [{ ...tag, test: new RegExp(`(?=^(?:${number})$)${tag.test?.source ?? ""}`) } as Tags[number]];
  if (tag.tag !== "tag:yaml.org,2002:bool") return [tag];
  const words = tag.test?.test("true")
    ? /^(?:[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$/
    : /^(?:[Nn]o|NO|[Ff]alse|FALSE|[Oo]ff|OFF)$/;
  return [{ ...tag, test: words } as Tags[number]];
}

// For each alias the library looks through the document for what it means.
function checkNodes(document: Document): void {
  let nodes = 0;
  let aliases = 0;
  visit(document, {
    Node() {
      nodes++;
    },
    Alias() {
      aliases++;
    },
  });
  if (aliases * nodes > MAX_ALIAS_STEPS) throw manifestError("too many aliases for its length");
}

function checkLists(resolved: Component): void {
  for (const field of ["streams", "dynamic_streams"]) {
    const value = resolved[field];
    if (value !== undefined && !(Array.isArray(value) && value.every(isRecord)))
      throw manifestError(`${field} must be a list of components`);
  }
  if (writtenStreams(resolved).length + children(resolved, "dynamic_streams").length === 0)
    throw manifestError("it has no streams");
}

// What a schema compares numbers with: the nearest double will do, a text would not.
const BOUNDS: ReadonlySet<string> = new Set(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);

// Integers that no double is are text, as everywhere.
function plain(value: unknown, depth: number, key = ""): unknown {
  if (depth > 200) throw new Error("the document nests too deeply");
  if (typeof value === "bigint")
    return Number.isSafeInteger(Number(value)) || BOUNDS.has(key) ? Number(value) : String(value);
  if (Array.isArray(value)) return value.map((each) => plain(each, depth + 1));
  if (!isRecord(value)) return value;
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value)) setField(out, key, plain(value[key], depth + 1, key));
  return out;
}
