// Validation by JSON Schema 2020-12, with every problem at once. Schemas are compiled at the first request that needs them,
// because compiling all of them would cost the daemon's start.
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { FastifyInstance } from "fastify";
import type { FieldProblem } from "#contract/errors.ts";
import { toPointer } from "#contract/json-pointer.ts";

const MAX_PROBLEMS = 100;
// The routes' schemas are ours: that they are schemas is tested, and would cost the first requests a tenth of a second each.
const strict = {
  ...{ strict: true, strictTypes: false, strictRequired: false, validateSchema: false },
  ...{ useDefaults: true, allowUnionTypes: true },
};

/** Bodies this large get their first problem only: a list of millions of problems would be an attack on memory. */
export const LARGE_BODY = 256 * 1024;
const largeBodies = new WeakSet<object>();

/** Told by the body parser, which alone knows the size. */
export function markLargeBody(body: unknown): void {
  if (typeof body === "object" && body !== null) largeBodies.add(body);
}

/** Bodies are taken as they are; path, query and headers are text and are coerced to the schema's types. */
export function useValidation(app: FastifyInstance): void {
  const compilers = {
    body: newAjv({ coerceTypes: false, allErrors: true }),
    largeBody: newAjv({ coerceTypes: false, allErrors: false }),
    // "Infinity" is coerced like any number: bounds must be looked at for it too.
    text: newAjv({ coerceTypes: "array", allErrors: true, strictNumbers: false }),
  };
  app.setValidatorCompiler(({ schema, httpPart }) => {
    const compiled: { [name in keyof typeof compilers]?: ValidateFunction } = {};
    return (value: unknown) => {
      const large = typeof value === "object" && value !== null && largeBodies.has(value);
      const kind = httpPart !== "body" ? "text" : large ? "largeBody" : "body";
      compiled[kind] ??= compilers[kind].compile(withShared(app, compilers[kind], schema));
      const check = compiled[kind];
      const odd = kind === "text" ? oddIntegers(schema, value) : [];
      if (check(value) && odd.length === 0) return { value };
      return { error: asError([...odd, ...(check.errors ?? [])]) };
    };
  });
  // Answers are written from documents that the routes make member by member: nothing needs to be stripped from them.
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
}

// Coercion takes whatever Number() takes: 1e1, 0x10 and " 5" are no integers to anybody who writes a query.
function oddIntegers(schema: unknown, value: unknown): ErrorObject[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  return Object.entries(value ?? {}).flatMap(([name, text]) => {
    if (properties[name]?.type !== "integer" || typeof text !== "string" || /^-?\d*$/.test(text)) return [];
    const instancePath = toPointer([name]);
    return [{ instancePath, schemaPath: "", keyword: "type", params: {}, message: "must be integer" }];
  });
}

/** The problems of a failed validation; each pointer names the missing or unknown key itself. */
export function fieldProblems(found: readonly ErrorObject[]): FieldProblem[] {
  const problems = new Map<string, FieldProblem>();
  for (const one of withoutChoices(found)) {
    const key = keyOf(one);
    const pointer = key === undefined ? one.instancePath : `${one.instancePath}${toPointer([key])}`;
    const id = `${pointer} ${one.keyword}`;
    const known = problems.get(id);
    const detail = describe(one);
    if (known && one.keyword === "type" && known.detail !== detail)
      problems.set(id, { ...known, detail: `${known.detail} or ${typeOf(one)}` });
    if (known || problems.size === MAX_PROBLEMS) continue;
    problems.set(id, { pointer, code: one.keyword, detail });
  }
  return [...problems.values()];
}

// What may be of several types, or null, is a choice to the validator: that the value is not null is no problem, nor are the types that it does
// not have where something else is said of the one that it has. That nothing of the choice fits says no more than either.
function withoutChoices(found: readonly ErrorObject[]): readonly ErrorObject[] {
  const choices = new Set(found.filter(({ keyword }) => keyword === "anyOf").map(pathOf));
  const isType = (one: ErrorObject): boolean => one.keyword === "type" && choices.has(one.instancePath);
  const typed = new Set(found.filter(isType).map(pathOf));
  const said = new Set(found.filter(({ keyword }) => keyword !== "type" && keyword !== "anyOf").map(pathOf));
  const below = new Set(found.filter(({ keyword }) => keyword !== "anyOf").flatMap(pathsAbove));
  return found.filter((one) => {
    const path = one.instancePath;
    if (one.keyword === "anyOf") return said.has(path) && !typed.has(path);
    return !isType(one) || (typeOf(one) !== "null" && !said.has(path) && !below.has(path));
  });
}

function pathsAbove({ instancePath }: ErrorObject): string[] {
  const parts = instancePath.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}

const pathOf = ({ instancePath }: ErrorObject): string => instancePath;
const typeOf = (error: ErrorObject): string => String((error.params as { type?: unknown }).type);

function newAjv(options: { coerceTypes: boolean | "array"; allErrors: boolean; strictNumbers?: boolean }): Ajv2020 {
  const ajv = new Ajv2020({ ...strict, ...options });
  addFormats.default(ajv);
  // Every moment that is let in is one that can be reckoned with: no leap second, and "T" between date and time (RFC 3339, section 5.6).
  const { validate: fits } = ajv.formats["date-time"] as { validate: (text: string) => boolean };
  ajv.addFormat("date-time", (text) => fits(text) && !text.includes(" ") && Number.isFinite(Date.parse(text)));
  return ajv;
}

// Schemas that routes share by $ref are registered with Fastify: give each compiler those that it has not seen.
function withShared(app: FastifyInstance, ajv: Ajv2020, schema: unknown): object {
  for (const [id, shared] of Object.entries(app.getSchemas()))
    if (!ajv.getSchema(id)) ajv.addSchema(shared as object, id);
  return schema as object;
}

function asError(found: ErrorObject[]): Error & { validation: ErrorObject[] } {
  return Object.assign(new Error("validation failed"), { validation: found });
}

function keyOf(error: ErrorObject): string | undefined {
  const params = error.params as Record<string, unknown>;
  const key = params["missingProperty"] ?? params["additionalProperty"] ?? params["unevaluatedProperty"];
  return key === undefined ? undefined : String(key);
}

function describe(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  if (error.keyword === "additionalProperties" || error.keyword === "unevaluatedProperties") return "unknown field";
  if (error.keyword === "required") return "missing";
  if (error.keyword === "enum")
    return `must be one of ${(params["allowedValues"] as unknown[]).map(String).join(", ")}`;
  if (error.keyword === "const") return `must be ${JSON.stringify(params["allowedValue"])}`;
  return error.message ?? "not valid";
}
