// A read document against a schema: every problem at once, with its place, what was found, and what to write instead.
// Schemas say it in words through two annotations: `x-form` (what a value must look like) and `examples`.
import type { ErrorObject, ValidateFunction } from "ajv/dist/2020.js";
import { pointerParts, toPointer } from "./json-pointer.ts";
import type { Problem } from "./problem.ts";
import { MAX_PROBLEMS, type Source } from "./source.ts";
import { nearest } from "./suggest.ts";

interface Annotated {
  readonly "x-form"?: string;
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Annotated>>;
  readonly enum?: readonly unknown[];
}

/** Looked at: each alternative of a choice has its own, and no more than MAX_PROBLEMS are shown. */
const MOST_ERRORS = 10 * MAX_PROBLEMS;

/** The places where the document does not fit the schema. */
export function checkAgainst(source: Source, validate: ValidateFunction): Problem[] {
  if (validate(source.value)) return [];
  const errors = (validate.errors ?? []).slice(0, MOST_ERRORS);
  const hidden = hiddenByChoices(errors);
  return errors
    .filter((error, at) => !hidden.has(error) && error.keyword !== "if" && !isTold(error, errors[at - 1]))
    .slice(0, MAX_PROBLEMS)
    .map((error) => toProblem(source, error));
}

// Of a value that must be one and the same, and is of another type, both are wrong.
function isTold({ keyword, instancePath }: ErrorObject, before: ErrorObject | undefined): boolean {
  return keyword === "const" && before?.keyword === "type" && before.instancePath === instancePath;
}

// A failed choice says more than each alternative's complaints, but where only one of them is of the value's type: that one was meant.
function hiddenByChoices(errors: readonly ErrorObject[]): ReadonlySet<ErrorObject> {
  const hidden = new Set<ErrorObject>();
  for (const [end, choice] of errors.entries()) {
    if (choice.keyword !== "anyOf" && choice.keyword !== "oneOf") continue;
    const { schemaPath, instancePath } = choice;
    const isWithin = (error: ErrorObject | undefined) =>
      error?.schemaPath.startsWith(`${schemaPath}/`) && `${error.instancePath}/`.startsWith(`${instancePath}/`);
    // They stand right before it.
    let start = end;
    while (isWithin(errors[start - 1])) start--;
    const within = errors.slice(start, end);
    const alternativeOf = (error: ErrorObject) => error.schemaPath.slice(schemaPath.length + 1).split("/", 1)[0];
    const otherTypes = new Set(
      within.filter((error) => error.keyword === "type" && error.instancePath === instancePath).map(alternativeOf),
    );
    const meant = new Set(within.map(alternativeOf)).difference(otherTypes);
    if (meant.size === 1) hidden.add(choice);
    for (const error of within) if (meant.size !== 1 || !meant.has(alternativeOf(error))) hidden.add(error);
  }
  return hidden;
}

type Body = Pick<Problem, "code" | "message" | "fix">;

function toProblem(source: Source, error: ErrorObject): Problem {
  const schema = (error.parentSchema ?? {}) as Annotated;
  const name = nameOf(error.instancePath);
  const key = keyOf(error);
  const pointer = key === undefined ? error.instancePath : error.instancePath + toPointer([key]);
  const unknown = error.keyword === "additionalProperties" || error.keyword === "propertyNames";
  const position = source.locate(error.instancePath, unknown ? key : undefined);
  const body = describe(source, error, schema, name, key);
  const value =
    key === undefined ? brief(error.data) : unknown ? brief((error.data as Record<string, unknown>)?.[key]) : undefined;
  return { file: source.file, ...position, pointer, ...body, ...(value === undefined ? {} : { value }) };
}

// `port`, `[2]` of a list, or the document itself: as a person would call it.
function nameOf(pointer: string): string {
  const last = pointerParts(pointer).at(-1);
  if (last === undefined) return "The document";
  return /^\d+$/.test(last)
    ? `${nameOf(pointer.slice(0, pointer.lastIndexOf("/")))}, entry ${Number(last) + 1},`
    : `\`${last}\``;
}

function keyOf(error: ErrorObject): string | undefined {
  const params = error.params as Record<string, unknown>;
  const key = params["additionalProperty"] ?? params["missingProperty"] ?? params["propertyName"];
  return typeof key === "string" ? key : undefined;
}

function describe(source: Source, error: ErrorObject, schema: Annotated, name: string, key = ""): Body {
  const found = shown(source, error);
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case "additionalProperties": {
      const known = Object.keys(schema.properties ?? {});
      const near = nearest(key, known);
      const fix = near ? `Did you mean \`${near}\`?` : `Remove it; known here: ${list(known)}.`;
      return { code: "unknown_key", message: `Unknown key \`${key}\`.`, fix };
    }
    case "required": {
      const example = schema.properties?.[key]?.examples?.[0];
      const fix = example === undefined ? `Add \`${key}\`.` : `Add \`${key}: ${flow(example)}\`.`;
      return { code: "missing_key", message: `\`${key}\` is missing.`, fix };
    }
    case "propertyNames":
      return {
        code: "bad_name",
        message: `The name \`${key}\` is not allowed here.`,
        fix: `Use ${schema["x-form"] ?? "another name"}.`,
      };
    case "type": {
      const wanted = String(params["type"]);
      const text = String(source.written(error.instancePath) ?? error.data);
      const scalar = typeof error.data === "number" || typeof error.data === "boolean";
      const fits = schema.pattern === undefined || new RegExp(schema.pattern, "u").test(text);
      const fix = wanted === "string" && scalar && fits ? `Put it in quotes: ${JSON.stringify(text)}.` : fixOf(schema);
      return { code: "wrong_type", message: `${name} must be ${article(wanted)}, not ${found}.`, fix };
    }
    case "enum":
    case "const": {
      const allowed = (schema.enum ?? [params["allowedValue"]]).map(String);
      const near = typeof error.data === "string" ? nearest(error.data, allowed) : undefined;
      const fix = near ? `Did you mean \`${near}\`?` : `Use one of: ${list(allowed)}.`;
      return { code: "not_allowed", message: `${name} cannot be ${found}.`, fix };
    }
    case "pattern":
      return {
        code: "bad_form",
        message: `${name} is ${found}, which does not have the right form.`,
        fix: fixOf(schema),
      };
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      return {
        code: "out_of_range",
        message: `${name} is ${found}, which is out of range.`,
        fix: `Write a number ${comparisons[String(params["comparison"])] ?? "not"} ${params["limit"]}.`,
      };
    case "uniqueItems":
      return { code: "duplicate_item", message: `${name} lists the same value twice.`, fix: "Remove one of the two." };
    case "anyOf":
    case "oneOf":
      return {
        code: "invalid",
        message: `${name} is ${found}, which has none of the forms that it may have.`,
        fix: fixOf(schema),
      };
    case "minItems":
      return { code: "empty_list", message: `${name} lists nothing.`, fix: fixOf(schema) };
    default:
      return {
        code: "invalid",
        message: `${name} is ${found}; it ${error.message ?? "is not valid"}.`,
        fix: fixOf(schema),
      };
  }
}

const comparisons: Readonly<Record<string, string>> = { "<=": "up to", ">=": "from", "<": "below", ">": "above" };

function fixOf(schema: Annotated): string {
  const example = schema.examples?.[0];
  const such = example === undefined ? "" : `, such as \`${flow(example)}\``;
  if (schema["x-form"]) return `Use ${schema["x-form"]}${such}.`;
  return example === undefined ? `Correct it.` : `Write, for example, \`${flow(example)}\`.`;
}

function shown(source: Source, error: ErrorObject): string {
  const { data } = error;
  if (Array.isArray(data)) return "a list";
  if (data === null) return "empty";
  if (typeof data === "object") return "a mapping";
  const text = typeof data === "string" ? JSON.stringify(data) : (source.written(error.instancePath) ?? String(data));
  const cut = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return typeof data === "string" ? cut : `the ${typeof data} ${cut}`;
}

/** The value where it is short enough to repeat. */
export function brief(value: unknown): unknown {
  if (value === undefined) return undefined;
  if (typeof value === "string") return value.length > 200 ? `${value.slice(0, 197)}...` : value;
  return JSON.stringify(value).length > 200 ? undefined : value;
}

function article(type: string): string {
  const words: Record<string, string> = {
    object: "a mapping",
    array: "a list",
    integer: "a whole number",
    string: "text",
    boolean: "true or false",
    number: "a number",
  };
  return type
    .split(",")
    .map((one) => words[one] ?? one)
    .join(" or ");
}

function flow(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function list(names: readonly string[]): string {
  return names.length > 12 ? `${names.slice(0, 12).join(", ")}, ...` : names.join(", ");
}
