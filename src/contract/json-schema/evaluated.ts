// Which members and items of a value a schema has described, itself or by what applies to the same value beside it: what is left is
// unevaluated (2020-12 core, section 11).
import { list } from "../json-object.ts";
import { inPlace, resolve } from "./references.ts";
import { remembered } from "./remembered.ts";
import { children, type Schema } from "./walk.ts";

export type Part = Schema | boolean;

/** The schemas of one root. */
export interface Evaluation {
  /** The schema, and every other that may apply to the same value. */
  reach(schema: Schema): Generator<Schema>;
  /** Of those the ones that apply to this value. */
  applied(schema: Schema, value: object): Generator<Schema>;
  /** Whether one of those describes the member or item; `own` does so by other words than `unevaluatedProperties` and `unevaluatedItems`. */
  describes(by: Schema, own: Schema, key: string | number, item: unknown): boolean;
}

/** The schemas below whose fitting decides of what applies, or of what is evaluated. */
export function conditionsOf(schema: Schema): unknown[] {
  return [...list(schema["anyOf"]), ...list(schema["oneOf"]), schema["if"], schema["contains"]];
}

/** `fits` is asked of those alone. */
export function openEvaluation(root: Schema, fits: (condition: Part, value: unknown) => boolean): Evaluation {
  const target = remembered((ref) => resolve(ref, root) as Part);
  const expression = remembered((pattern) => new RegExp(pattern, "u"));
  const referred = (schema: Schema): Part[] =>
    [schema["$ref"], schema["$dynamicRef"]].filter((ref) => typeof ref === "string").map(target);

  function* reach(part: unknown, seen: Set<unknown>): Generator<Schema> {
    if (typeof part !== "object" || part === null || seen.has(part)) return;
    seen.add(part);
    yield part as Schema;
    for (const one of referred(part as Schema)) yield* reach(one, seen);
    for (const [, one] of children(part as Schema, inPlace)) yield* reach(one, seen);
  }

  function* applied(part: Part, value: object): Generator<Schema> {
    if (typeof part === "boolean") return;
    yield part;
    for (const one of [...referred(part), ...list<Part>(part["allOf"])]) yield* applied(one, value);
    for (const form of [...list<Part>(part["anyOf"]), ...list<Part>(part["oneOf"])])
      if (fits(form, value)) yield* applied(form, value);
    const condition = part["if"] as Part | undefined;
    if (condition !== undefined && fits(condition, value)) {
      yield* applied(condition, value);
      yield* applied((part["then"] ?? true) as Part, value);
    } else if (condition !== undefined) yield* applied((part["else"] ?? true) as Part, value);
    for (const [name, one] of Object.entries(part["dependentSchemas"] ?? {}))
      if (Object.hasOwn(value, name)) yield* applied(one as Part, value);
  }

  return {
    reach: (schema) => reach(schema, new Set()),
    applied,
    describes(by, own, key, item) {
      if (typeof key === "number")
        return (
          by["items"] !== undefined ||
          (by !== own && by["unevaluatedItems"] !== undefined) ||
          key < list(by["prefixItems"]).length ||
          (by["contains"] !== undefined && fits(by["contains"] as Part, item))
        );
      return (
        by["additionalProperties"] !== undefined ||
        (by !== own && by["unevaluatedProperties"] !== undefined) ||
        Object.hasOwn(by["properties"] ?? {}, key) ||
        Object.keys(by["patternProperties"] ?? {}).some((pattern) => expression(pattern).test(key))
      );
    },
  };
}
