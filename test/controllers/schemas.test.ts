// Compiled schemas are kept, within bounds: compiling a large one costs more than anything else that a call does.
import { expect, test } from "vitest";
import { compileSchema } from "#daemon/controllers/schemas.ts";

const schema = (seed: number, characters: number) => ({
  type: "object",
  description: `${seed} ${"x".repeat(characters)}`,
});

test("a schema of any usual size is compiled once; the oldest go when all together would be too much", () => {
  const small = compileSchema(schema(0, 10));
  const large = compileSchema(schema(1, 100_000));
  expect(compileSchema(schema(0, 10))).toBe(small);
  expect(compileSchema(schema(1, 100_000))).toBe(large);
  for (let seed = 2; seed < 50; seed++) compileSchema(schema(seed, 100_000));
  expect(compileSchema(schema(1, 100_000))).not.toBe(large);
  const last = compileSchema(schema(49, 100_000));
  expect(compileSchema(schema(49, 100_000))).toBe(last);
  // One beyond all bounds pushes nothing out.
  compileSchema(schema(50, 5_000_000));
  expect(compileSchema(schema(49, 100_000))).toBe(last);
});
