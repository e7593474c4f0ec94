// The configuration as a manifest wants it: defaults, types, changes of older forms, and what it must satisfy.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { MagicError } from "#contract/errors.ts";
import { condition, native, text, type Variables } from "./context.ts";
import { createInterpolator } from "./jinja/interpolate.ts";
import { compileRegex } from "./jinja/regex.ts";
import {
  type Component,
  child,
  children,
  isRecord,
  list,
  manifestError,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "./manifest/component.ts";
import type { Manifest } from "./manifest/load.ts";
import { dpath, removeAt, setAt } from "./read/dpath.ts";
import { fieldValue } from "./read/transform.ts";

/** Throws validation_failed where the configuration does not fit the manifest. */
export function configFor(manifest: Manifest, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const config = fitting(manifest.configSchema, given);
  const { changes, validations } = rulesOf(manifest);
  for (const each of changes) change(config, each);
  for (const each of validations) validate(config, each);
  return config;
}

const CHANGES: ReadonlySet<string> = new Set(["ConfigAddFields", "ConfigRemoveFields", "ConfigRemapField"]);

/** What a configuration goes through before a stream is read. Throws validation_failed for what cannot run here: no stream can then. */
export function rulesOf(manifest: Manifest): Readonly<Record<"changes" | "validations", readonly Component[]>> {
  const rules = optionalChild(optionalChild(manifest.resolved, "spec") ?? {}, "config_normalization_rules") ?? {};
  const migrations = children(rules, "config_migrations").flatMap((each) => children(each, "transformations"));
  const changes = [...migrations, ...children(rules, "transformations")];
  const validations = children(rules, "validations");
  for (const each of changes) if (!CHANGES.has(typeOf(each))) refuseCustom(each);
  for (const each of validations) {
    const strategy = child(each, "validation_strategy");
    if (typeOf(strategy) !== "ValidateAdheresToSchema") refuseCustom(strategy);
  }
  return { changes, validations };
}

// Defaults of the specification apply where the configuration says nothing; "7" does for 7, one value for a list of one.
function fitting(
  schema: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const config = structuredClone(given) as Record<string, unknown>;
  for (const [name, property] of Object.entries(isRecord(schema["properties"]) ? schema["properties"] : {}))
    if (isRecord(property) && property["default"] !== undefined && !Object.hasOwn(config, name))
      setAt(config, [name], property["default"]);
  const missing = list(schema["required"])
    .map(String)
    .filter((name) => !Object.hasOwn(config, name));
  if (missing.length)
    throw new MagicError("validation_failed", `the configuration lacks ${missing.join(", ")}`, {
      problems: missing.map((name) => ({ pointer: `/${name}`, code: "required", detail: "is required" })),
    });
  const check = validatorOf(schema);
  if (!check || check(config)) return restored(given, config);
  const problems = (check.errors ?? [])
    .slice(0, 50)
    .map((error) => ({ pointer: error.instancePath, code: error.keyword, detail: error.message ?? "" }));
  const said = problems.map((problem) => `${problem.pointer || "/"} ${problem.detail}`).join("; ");
  throw new MagicError("validation_failed", `the configuration does not fit the connector: ${said}`, { problems });
}

// A number of more digits than a double has is told as text: made a number, it would be another one.
function restored(given: Readonly<Record<string, unknown>>, config: Record<string, unknown>): Record<string, unknown> {
  for (const [key, value] of Object.entries(given)) {
    const made = config[key];
    if (isRecord(value) && isRecord(made)) restored(value, made);
    else if (typeof made === "number" && typeof value === "string" && /^-?\d{16,}$/.test(value))
      if (!Number.isSafeInteger(made)) setAt(config, [key], value);
  }
  return config;
}

const validators = new WeakMap<object, ValidateFunction | undefined>();

// A manifest's connectors share one; undefined where the vendor's schema is none that can be compiled: the required names must do then.
function validatorOf(schema: Readonly<Record<string, unknown>>): ValidateFunction | undefined {
  if (!validators.has(schema)) validators.set(schema, compiled(schema, { coerceTypes: "array" }));
  return validators.get(schema);
}

// `$async` is Ajv's own: the check would answer with a promise.
function compiled(
  { $schema: _dialect, $async: _async, ...schema }: Readonly<Record<string, unknown>>,
  { patterns = false, ...more }: { coerceTypes?: "array"; patterns?: boolean } = {},
): ValidateFunction | undefined {
  // Checking the schema itself would compile the schema of schemas, which takes longer than all the rest.
  const form = { strict: false, allErrors: true, validateFormats: false, validateSchema: false, code: { regExp } };
  try {
    return new Ajv2020({ ...form, ...more }).compile(forgiving(schema, patterns) as object);
  } catch {
    return undefined;
  }
}

// For the names of patternProperties.
const linear = (source: string) => ({ test: (name: string): boolean => compileRegex(source).matcher(name).find() });
const regExp = Object.assign(linear, { code: "linear" });

// Patterns of a specification are hints for a form, written for another engine; those of a validation count, as far as they run in linear
// time. And the choices of a list are often written beside it, where no list could fit them.
function forgiving(value: unknown, patterns: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => forgiving(each, patterns));
  if (!isRecord(value)) return value;
  const isList = list(value["type"]).includes("array");
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, each]) => !(key === "pattern" && typeof each === "string" && !(patterns && isLinear(each))))
      .filter(([key]) => !(key === "enum" && isList))
      .map(([key, each]) => [key, forgiving(each, patterns)]),
  );
}

function isLinear(pattern: string): boolean {
  try {
    compileRegex(pattern);
    return true;
  } catch {
    return false;
  }
}

const jinja = createInterpolator();

function change(config: Record<string, unknown>, component: Component): void {
  const templates = { config, jinja };
  const evaluated = (template: unknown): unknown => native(templates, component, template);
  const holds = (more: Variables = {}): boolean => !test || condition(templates, component, test, more);
  const pathOf = (path: unknown): string[] => list(path).map((part) => text(templates, component, part));
  const test = optionalText(component, "condition");
  if (typeOf(component) === "ConfigAddFields") {
    if (!holds()) return;
    for (const field of children(component, "fields"))
      setAt(config, pathOf(field["path"]), fieldValue(templates, component, field));
  } else if (typeOf(component) === "ConfigRemoveFields") {
    const keep = (property: unknown): boolean => !holds({ property });
    for (const pointer of list(component["field_pointers"])) removeAt(config, pathOf(pointer), keep);
  } else {
    const path = pathOf(component["field_path"]);
    const last = path.pop();
    const map = evaluated(component["map"]);
    for (const place of dpath(config, path)) {
      if (last === undefined || !isRecord(place) || !isRecord(map) || !Object.hasOwn(place, last)) continue;
      const key = String(place[last]);
      if (Object.hasOwn(map, key)) setAt(place, [last], evaluated(map[key]));
    }
  }
}

function validate(config: Record<string, unknown>, component: Component): void {
  const base = child(component, "validation_strategy")["base_schema"];
  const templates = { config, jinja };
  const schema = parsed(native(templates, component, base));
  const check = isRecord(schema) ? compiled(schema, { patterns: true }) : undefined;
  if (!check) throw manifestError("ValidateAdheresToSchema.base_schema is no JSON schema");
  const path = list(component["field_path"]).map((part) => text(templates, component, part));
  const values =
    typeOf(component) === "PredicateValidator"
      ? [native(templates, component, component["value"])]
      : dpath(config, path);
  for (const each of values) {
    if (check(parsed(each))) continue;
    const [error] = check.errors ?? [];
    const pointer = `/${path.join("/")}${error?.instancePath ?? ""}`;
    const detail = error?.message ?? "does not fit";
    throw new MagicError("validation_failed", `the configuration does not fit the connector: ${pointer} ${detail}`, {
      problems: [{ pointer, code: error?.keyword ?? "invalid", detail }],
    });
  }
}

// A schema and what it is for may both be given as JSON text.
function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
