// `unevaluatedProperties` and `unevaluatedItems` instead of Ajv's own, whose notes know no items that `contains` found, no `if` without a
// `then`, and no member called `constructor`. What is left is looked for anew, with a check of each form that decides of it, made once.
import type { Ajv2020, ErrorObject, FuncKeywordDefinition, ValidateFunction } from "ajv/dist/2020.js";
import { toPointer } from "../json-pointer.ts";
import { conditionsOf, openEvaluation, type Part } from "./evaluated.ts";
import { toFragment } from "./references.ts";
import type { Schema } from "./walk.ts";

const WORDS = ["unevaluatedProperties", "unevaluatedItems"] as const;
type Word = (typeof WORDS)[number];
type Check = NonNullable<ReturnType<NonNullable<FuncKeywordDefinition["compile"]>>>;

/** The check of a schema that may hold the words; `ajv` serves no other. */
export function compileWithUnevaluated(ajv: Ajv2020, root: Schema): ValidateFunction {
  const checks = new Map<unknown, ValidateFunction>();
  /** Where one of the words stands. */
  const parents = new Set<Schema>();
  /** By form, for lists and objects, which nobody changes: each level of a schema that refers to itself would double the work. */
  const known = new WeakMap<object, WeakMap<object, boolean>>();
  const evaluation = openEvaluation(root, fits);

  function fits(part: Part, value: unknown): boolean {
    if (typeof part === "boolean" || typeof value !== "object" || value === null) return errorsOf(part, value) === null;
    const before = known.get(part) ?? new WeakMap<object, boolean>();
    known.set(part, before);
    const held = before.get(value) ?? errorsOf(part, value) === null;
    before.set(value, held);
    return held;
  }

  function errorsOf(part: Part, value: unknown): readonly ErrorObject[] | null {
    if (typeof part === "boolean") return part ? null : [];
    const check = checks.get(part) as ValidateFunction;
    return check(value) ? null : (check.errors ?? []);
  }

  function definition(word: Word): FuncKeywordDefinition {
    const items = word === "unevaluatedItems";
    return {
      keyword: word,
      type: items ? "array" : "object",
      schemaType: ["object", "boolean"],
      errors: "full",
      compile(rest: Part, own) {
        parents.add(own as Schema);
        const validate: Check = (value: object, context): boolean => {
          const beside = [...evaluation.applied(own as Schema, value)];
          const entries = items ? (value as unknown[]).entries() : Object.entries(value);
          validate.errors = [...(entries as Iterable<[string | number, unknown]>)]
            .filter(([key, item]) => !beside.some((by) => evaluation.describes(by, own as Schema, key, item)))
            .flatMap(([key, item]) => problems(word, errorsOf(rest, item), key, context?.instancePath ?? ""));
          return validate.errors.length === 0;
        };
        return validate;
      },
    };
  }

  for (const word of WORDS) ajv.removeKeyword(word).addKeyword(definition(word));
  const whole = ajv.addSchema(root, ROOT).getSchema(ROOT) as ValidateFunction;
  const places = new Map<unknown, string>();
  if (parents.size > 0) note(root, "", places);
  // A check that is made may hold the words as well: a set that grows while it is gone through hands out what was added.
  for (const parent of parents)
    for (const part of [...WORDS.map((word) => parent[word]), ...[...evaluation.reach(parent)].flatMap(conditionsOf)])
      if (typeof part === "object" && !checks.has(part))
        checks.set(part, ajv.compile({ $ref: ROOT + toFragment(places.get(part) as string) }));
  return whole;
}

/** A schema's name in its Ajv. */
const ROOT = "magic:contract";

/** Where each part of the schema is, as a JSON pointer. */
function note(part: unknown, at: string, places: Map<unknown, string>): void {
  if (typeof part !== "object" || part === null) return;
  places.set(part, at);
  for (const [key, one] of Object.entries(part)) note(one, at + toPointer([key]), places);
}

/** `errors`: why what is left does not fit either; null where it does, empty where nothing would. */
function problems(
  word: Word,
  errors: readonly ErrorObject[] | null,
  key: string | number,
  at: string,
): Partial<ErrorObject>[] {
  if (errors === null) return [];
  if (errors.length > 0)
    return errors.map((error) => ({ ...error, instancePath: at + toPointer([key]) + error.instancePath }));
  const [message, params] =
    typeof key === "string"
      ? ["must NOT have unevaluated properties", { unevaluatedProperty: key }]
      : ["must NOT have unevaluated items", { unevaluatedItem: key }];
  return [{ keyword: word, instancePath: at, message, params }];
}
