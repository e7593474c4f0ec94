// The JSON Schemas inside a contract: valid under 2020-12, self-contained, resolvable, and safe to run on hostile input.

import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { brief } from "./check.ts";
import { addFormats } from "./formats.ts";
import { readAtOnce } from "./generated-code.ts";
import { pointerParts, toPointer } from "./json-pointer.ts";
import { checkPattern } from "./pattern.ts";
import type { Problem } from "./problem.ts";
import { lists, maps, single } from "./schema-keywords.ts";
import { MAX_PROBLEMS, type Source } from "./source.ts";
import { nearest } from "./suggest.ts";
import { OutOfTime, within } from "./time-limit.ts";

type Schema = Record<string, unknown>;
type Add = (at: string, key: string | undefined, code: string, message: string, fix: string, value?: unknown) => void;

/** Distinct words; more of them are somebody's attempt. */
const MAX_REMEMBERED = 1_000;
const DIALECT = "https://json-schema.org/draft/2020-12/schema";
const types = ["null", "boolean", "object", "array", "number", "integer", "string"];
const others = [
  "contentSchema",
  "type",
  "enum",
  "const",
  "required",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minContains",
  "maxContains",
  "minProperties",
  "maxProperties",
  "dependentRequired",
  "title",
  "description",
  "default",
  "examples",
  "example",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentEncoding",
  "contentMediaType",
  "nullable",
  "discriminator",
  "xml",
  "externalDocs",
  "$ref",
  "$dynamicRef",
  "$anchor",
  "$dynamicAnchor",
  "$id",
  "$schema",
  "$comment",
  "$vocabulary",
];
const known = new Set([...single, ...maps, ...lists, ...others]);
const keywordMeant = remembered((key) => nearest(key, known));
const formatMeant = remembered((name) => {
  const names = Object.keys(compiler().formats);
  const letters = (text: string) => [...text.toLowerCase().replace(/[-_ ]/g, "")].sort().join("");
  return names.includes(name) ? undefined : names.find((known) => letters(known) === letters(name));
});

/** The same few words stand everywhere in a contract. */
function remembered(find: (word: string) => string | undefined): typeof find {
  const found = new Map<string, string | undefined>();
  return (word) => {
    if (!found.has(word)) {
      if (found.size >= MAX_REMEMBERED) found.clear();
      found.set(word, find(word));
    }
    return found.get(word);
  };
}

/** Keywords that apply a subschema to the same value: a $ref cycle through these alone never ends. */
const inPlace = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"]);

/** Each pattern is tried, references and names are looked for among all, and what Ajv writes for some schemas grows with the square of their size. */
const CHECK_MS = 5_000;
/** On a machine that gave it less than half a processor meanwhile, so many times as long: an honest half megabyte may need two seconds of one. */
const CROWDED = 4;

/** The problems of the schema that stands at `base` (`/input_schema`); one that takes longer than `ms` cannot be used. */
export function checkEmbedded(source: Source, base: string, schema: unknown, ms = CHECK_MS, times = 1): Problem[] {
  const problems: Problem[] = [];
  const add: Add = (at, key, code, message, fix, value) => {
    if (problems.length >= MAX_PROBLEMS) return;
    const pointer = key === undefined ? at : at + toPointer([key]);
    problems.push({
      file: source.file,
      ...source.locate(at, key),
      pointer,
      code,
      message,
      fix,
      ...(value === undefined ? {} : { value: brief(value) }),
    });
  };
  if (typeof schema === "boolean") return problems;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return problems; // the contract's own schema says so
  const unusable = (why: string): void =>
    add(
      base,
      undefined,
      "schema_invalid",
      `The schema cannot be used: ${why}.`,
      "Correct it as JSON Schema 2020-12 asks.",
    );
  const before = process.threadCpuUsage();
  try {
    within(ms * times, () => {
      metaschema(schema as Schema, base, add);
      walk(schema, base, (node, at) => inspect(node, at, schema as Schema, base, add));
      cycles(schema as Schema, base, add);
      if (problems.length === 0) compile(schema as Schema, unusable);
    });
  } catch (error) {
    // They may have been stopped in the middle of anything.
    metaAjv = schemaAjv = undefined;
    const late = error instanceof OutOfTime;
    if (!late && !(error instanceof RangeError)) throw error;
    const { user, system } = process.threadCpuUsage(before);
    if (late && times === 1 && user + system < ms * 500) return checkEmbedded(source, base, schema, ms, CROWDED);
    unusable(late ? "it takes too long to be checked" : "it is too large, or nests too deeply");
  }
  return problems;
}

// Compiling the meta-schemas takes longer than all the rest: once is enough.
let metaAjv: Ajv2020 | undefined;
let schemaAjv: Ajv2020 | undefined;

function metaschema(schema: Schema, base: string, add: Add): void {
  metaAjv ??= new Ajv2020({ strict: false, allErrors: true, verbose: true, logger: false });
  const ajv = metaAjv;
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

/** Visits every subschema, the schema itself first. */
function walk(schema: unknown, at: string, visit: (schema: Schema, at: string) => void): void {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
  const node = schema as Schema;
  visit(node, at);
  for (const [path, sub] of children(node)) walk(sub, at + path, visit);
}

function* children(node: Schema, only?: ReadonlySet<string>): Generator<[path: string, schema: unknown]> {
  for (const [key, value] of Object.entries(node)) {
    if (only && !only.has(key)) continue;
    if (single.has(key) || key === "contentSchema") yield [toPointer([key]), value];
    else if (typeof value !== "object" || value === null) continue;
    else if (maps.has(key) || lists.has(key))
      for (const [name, sub] of Object.entries(value)) yield [toPointer([key, name]), sub];
  }
}

function inspect(node: Schema, at: string, root: Schema, base: string, add: Add): void {
  for (const key of Object.keys(node)) {
    if (known.has(key)) continue;
    const near = keywordMeant(key);
    if (near) add(at, key, "unknown_keyword", `JSON Schema has no keyword \`${key}\`.`, `Did you mean \`${near}\`?`);
  }
  // Ajv's own word: such a check answers with a promise, which counts as a value that fits, and whose refusal nobody hears.
  if ("$async" in node)
    add(at, "$async", "unknown_keyword", "JSON Schema has no keyword `$async`.", "Remove it.", node["$async"]);
  if (typeof node["format"] === "string") format(node["format"], at, add);
  const dialect = node["$schema"];
  if (typeof dialect === "string" && dialect.replace(/#$/, "") !== DIALECT)
    add(
      at,
      "$schema",
      "schema_dialect",
      `The dialect ${JSON.stringify(brief(dialect))} is not supported.`,
      `Remove $schema, or use ${DIALECT}.`,
      dialect,
    );
  if (typeof node["$id"] === "string" && at !== base)
    add(
      at,
      "$id",
      "schema_id",
      "An $id inside a contract's schema is not supported.",
      "Remove it, and refer with `#/...`.",
      node["$id"],
    );
  for (const key of ["$ref", "$dynamicRef"])
    if (typeof node[key] === "string") reference(node[key], key, at, root, add);
  if (typeof node["pattern"] === "string") pattern(node["pattern"], at, "pattern", add);
  const named = node["patternProperties"];
  if (typeof named === "object" && named !== null)
    for (const key of Object.keys(named)) pattern(key, `${at}/patternProperties`, key, add);
}

// Other names (`ulid`) are annotations, as JSON Schema says; one whose letters were swapped would check nothing, silently.
function format(name: string, at: string, add: Add): void {
  const meant = formatMeant(name);
  if (meant)
    add(at, "format", "unknown_format", `There is no format \`${brief(name)}\`.`, `Did you mean \`${meant}\`?`, name);
}

function pattern(text: string, at: string, key: string, add: Add): void {
  const problem = checkPattern(text);
  if (!problem) return;
  const fix =
    problem.code === "pattern_invalid"
      ? "Correct the regular expression (ECMA-262, flag u)."
      : "Write it without a loop inside a loop, or without two ways to match the same text.";
  add(at, key, problem.code, problem.message, fix, text);
}

function reference(ref: string, key: string, at: string, root: Schema, add: Add): void {
  if (!ref.startsWith("#"))
    add(
      at,
      key,
      "remote_ref",
      `The reference ${JSON.stringify(brief(ref))} leads out of the contract; nothing is fetched.`,
      "Copy the schema under $defs and refer to it with `#/$defs/...`.",
      ref,
    );
  else if (resolve(ref, root) === undefined) {
    const names = Object.keys((root["$defs"] ?? root["definitions"] ?? {}) as Schema);
    const near = nearest(ref.split("/").at(-1) ?? "", names);
    add(
      at,
      key,
      "unknown_ref",
      `There is nothing at ${JSON.stringify(brief(ref))}.`,
      near ? `Did you mean \`#/$defs/${near}\`?` : "Define it under $defs.",
      ref,
    );
  }
}

/** What a local reference leads to. */
function resolve(ref: string, root: Schema): unknown {
  let fragment: string;
  try {
    fragment = decodeURIComponent(ref.slice(1));
  } catch {
    return undefined;
  }
  if (fragment === "" || fragment.startsWith("/")) {
    let node: unknown = root;
    for (const part of pointerParts(fragment)) {
      if (typeof node !== "object" || node === null || !Object.hasOwn(node, part)) return undefined;
      node = (node as Schema)[part];
    }
    return typeof node === "boolean" || (typeof node === "object" && node !== null) ? node : undefined;
  }
  let found: unknown;
  walk(root, "", (node) => {
    if (node["$anchor"] === fragment || node["$dynamicAnchor"] === fragment) found ??= node;
  });
  return found;
}

// A recursive schema is fine as long as every turn goes into a property or an item; one that refers to itself in place has no end.
function cycles(root: Schema, base: string, add: Add): void {
  const done = new Set<unknown>();
  const open = new Set<unknown>();
  const visit = (node: unknown, at: string): void => {
    if (typeof node !== "object" || node === null || done.has(node)) return;
    open.add(node);
    for (const key of ["$ref", "$dynamicRef"]) {
      const ref = (node as Schema)[key];
      if (typeof ref !== "string" || !ref.startsWith("#")) continue;
      const target = resolve(ref, root);
      if (open.has(target))
        add(
          at,
          key,
          "cyclic_ref",
          `The reference ${JSON.stringify(ref)} leads back to itself without end.`,
          "Let one turn go through a property or an item.",
          ref,
        );
      else visit(target, `${base}${ref.startsWith("#/") ? ref.slice(1) : ""}`);
    }
    for (const [path, sub] of children(node as Schema, inPlace)) if (!open.has(sub)) visit(sub, at + path);
    open.delete(node);
    done.add(node);
  };
  walk(root, base, visit);
}

// Whatever is left: what Ajv itself refuses to compile.
function compile(schema: Schema, unusable: (why: string) => void): void {
  const ajv = compiler();
  const { $schema: _dialect, $id: _id, ...rest } = schema;
  try {
    ajv.compile(rest);
    ajv.removeSchema(rest);
  } catch (error) {
    schemaAjv = undefined;
    if (error instanceof RangeError) throw error;
    unusable((error as Error).message);
  }
}

function compiler(): Ajv2020 {
  schemaAjv ??= addFormats(
    new Ajv2020({
      strict: false,
      logger: false,
      validateSchema: false,
      code: { optimize: false, process: readAtOnce },
    }),
  );
  return schemaAjv;
}
