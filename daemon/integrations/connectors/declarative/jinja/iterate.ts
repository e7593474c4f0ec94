// What Python iterates over.
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { isDict, Tuple, typeName, Undefined } from "./python.ts";

export function sequence(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  return value instanceof Tuple ? value.items : undefined;
}

/** What a loop over the value yields: characters of a text, keys of a dict. */
export function iterate(value: unknown): readonly unknown[] {
  const items = sequence(value);
  if (items) return items;
  if (typeof value === "string") return [...value];
  if (isDict(value)) return [...value.keys()];
  if (value instanceof Undefined) return [];
  throw new PythonTypeError(`'${typeName(value)}' object is not iterable`);
}

/** What dict() takes: a dict, or pairs. */
export function pairsOf(value: unknown): [unknown, unknown][] {
  if (isDict(value)) return [...value];
  return iterate(value).map((pair) => {
    const items = iterate(pair);
    if (items.length !== 2)
      throw new EvaluationError(`dictionary update sequence element has length ${items.length}; 2 is required`);
    return [items[0], items[1]];
  });
}
