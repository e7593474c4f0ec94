// Types made from schemas: they compile, and say what the schema says.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { typesOf } from "#contract/types.ts";
import { temporaryFolder } from "#test/temporary.ts";

// Real processes on a machine that may be busy: nothing here depends on how long it takes.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const types = (input_schema: object | boolean) => typesOf({ input_schema: input_schema as never, output_schema: true });
const input = (schema: object | boolean) =>
  /export type Input = ([\s\S]*?);\n\nexport type Output/.exec(types(schema))?.[1];

test("scalars, unions, constants, lists, tuples, maps and objects", () => {
  expect(input({ type: "string" })).toBe("string");
  expect(input({ type: ["integer", "null"] })).toBe("number | null");
  expect(input({ enum: ["a", 1, null] })).toBe('"a" | 1 | null');
  expect(input({ const: { a: [1] } })).toBe('{ "a": [1] }');
  expect(input({ type: "array", items: { type: "string" } })).toBe("Array<string>");
  expect(input({ type: "array", prefixItems: [{ type: "string" }], items: false })).toBe("[(string)?]");
  expect(input({ type: "object", additionalProperties: { type: "number" } })).toBe("{ [name: string]: number }");
  expect(input({ type: "object", properties: { a: {}, "b-c": { type: "boolean" } }, required: ["a"] })).toBe(
    '{\n  a: unknown;\n  "b-c"?: boolean;\n}',
  );
  expect(input({ anyOf: [{ type: "string" }, { type: "array", items: { $ref: "#" } }] })).toBe("string | Array<Input>");
  expect(input({ type: "object", patternProperties: { "^x": { type: "number" } }, additionalProperties: false })).toBe(
    "Record<string, unknown>",
  );
  expect(input({ type: "object", additionalProperties: false })).toBe("Record<string, never>");
  expect(input({ type: "string", nullable: true })).toBe("string | null");
  expect(input(true)).toBe("unknown");
  expect(input(false)).toBe("never");
});

test("whatever names and texts a schema holds, the file compiles", () => {
  const folder = temporaryFolder();
  const hostile = {
    type: "object",
    properties: {
      "a*/ b": { type: "string", description: "ends */ here\n// and there" },
      "`${x}`": { enum: ["*/", '"', "\n", "\u2028"] },
      class: { $ref: "#/$defs/a-b" },
      self: { $ref: "#" },
      tree: { $ref: "#/$defs/tree" },
      __proto: { type: "array", items: { type: ["string", "array"], items: { $ref: "#/$defs/a b" } } },
    },
    $defs: {
      "a-b": { type: "object", properties: { next: { $ref: "#/$defs/a-b" } } },
      "a b": { type: "integer" },
      tree: { type: "object", additionalProperties: { $ref: "#/$defs/tree" } },
      "": { type: "null" },
      "1": true,
    },
  };
  writeFileSync(
    join(folder, "t.ts"),
    `${types(hostile)}\nexport const x: Input = { class: { next: {} }, self: {}, tree: { a: { b: {} } }, __proto: ["a", [1]] };\n`,
  );
  const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
  execFileSync(process.execPath, [tsc, "--strict", "--noEmit", "--ignoreConfig", join(folder, "t.ts")], {
    stdio: "pipe",
  });
});
