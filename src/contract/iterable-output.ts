// What a handler answers that iterates, and of which JSON has nothing: a generator, a stream, a Map. It would reach the caller as {}.
const { asyncIterator, iterator } = Symbol;

/** Follows "the output is not JSON: ". */
export const ITERABLE_OUTPUT = "what iterates is answered as an array (`await Array.fromAsync(...)`) or a plain object";

/** @param json what JSON has of it. */
export function isIterableOutput(output: unknown, json: string | undefined): boolean {
  if (json !== "{}") return false;
  const object = output as object;
  return asyncIterator in object || iterator in object;
}
