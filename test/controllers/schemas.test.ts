// Compiled schemas are kept, within bounds: compiling a large one costs more than anything else that a call does.
import { join } from "node:path";
import { expect, test } from "vitest";
import { readContractApart } from "#daemon/controllers/contract-thread.ts";
import { jobThread } from "#daemon/controllers/job-thread.ts";
import { compileSchema } from "#daemon/controllers/schemas.ts";
import { checkThread } from "#daemon/controllers/serving/check-thread.ts";
import { contractIn } from "#sdk/testing/contract.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { within } from "../patience.ts";
import { contractOf, put } from "./harness.ts";

const schema = (seed: number, characters: number) =>
  JSON.stringify({ type: "object", description: `${seed} ${"x".repeat(characters)}` });

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

/** Slower than any machine under load, faster than what they cost without a limit (minutes). */
const AT_MOST_MS = 10_000;
const problemsIn = (schema: Record<string, unknown>, value: unknown): readonly { code: string }[] | null => {
  const began = performance.now();
  const problems = compileSchema(JSON.stringify(schema))(value, 250);
  expect(performance.now() - began).toBeLessThan(AT_MOST_MS);
  return problems;
};

test("a check that would not end is given up", () => {
  const spaces = `${" ".repeat(1_000_000)}x`;
  expect(problemsIn({ type: "string", pattern: "\\s+$" }, spaces)).toBeNull();
  // Too long already; the check that names every problem runs the pattern all the same.
  expect(problemsIn({ maxLength: 9, pattern: "\\s+$" }, spaces.slice(-250_000))).toBeNull();
  expect(problemsIn({ pattern: "^((((a?){8}){8}){8}){8}$" }, "aaaa!")).toBeNull();
  const again = { properties: { a: { $ref: "#/$defs/n" } } };
  const forms = {
    $defs: {
      n: {
        anyOf: [
          { ...again, required: ["x"] },
          { ...again, required: ["y"] },
        ],
      },
    },
  };
  let nested: object = {};
  for (let depth = 0; depth < 40; depth++) nested = { a: nested };
  expect(problemsIn({ ...forms, $ref: "#/$defs/n" }, nested)).toBeNull();
  // Patterns that end are none the wiser.
  expect(problemsIn({ pattern: "^[a-z]+$" }, "a".repeat(1_000_000))).toEqual([]);
  expect(problemsIn({ pattern: "^(a|b)+$" }, "abc")).toMatchObject([{ code: "pattern" }]);
});

test("uniqueItems takes one pass, and finds what is equal as JSON Schema has it", () => {
  const unique = { uniqueItems: true };
  expect(
    problemsIn(
      unique,
      Array.from({ length: 500_000 }, (_, at) => at),
    ),
  ).toEqual([]);
  expect(problemsIn(unique, [1, "1", true, "true", null, "null", [], {}, [[]], '{"a":1}', { a: 1 }])).toEqual([]);
  expect(problemsIn({ uniqueItems: false }, [1, 1])).toEqual([]);
  for (const [one, other] of [
    [1, 1.0],
    [0, -0],
    [null, null],
    [
      { a: 1, b: [2] },
      { b: [2], a: 1 },
    ],
  ])
    expect(problemsIn(unique, ["first", one, other])).toMatchObject([
      { code: "uniqueItems", detail: "must NOT have duplicate items (items ## 1 and 2 are identical)" },
    ]);
});

test("a schema that is named as JSON Schema's own, or asks for a promise, checks like any other", () => {
  for (const word of [{ $id: "https://json-schema.org/draft/2020-12/schema" }, { $async: true }]) {
    expect(problemsIn({ ...word, type: "string" }, "text")).toEqual([]);
    expect(problemsIn({ ...word, type: "string" }, 5)).toMatchObject([{ code: "type" }]);
  }
});

test("what is unevaluated is told with patterns beside forms, and for names that every object inherits", () => {
  const sealed = { type: "object", patternProperties: { "^x": {} }, unevaluatedProperties: false };
  const forms = { ...sealed, anyOf: [{ required: ["a"], properties: { a: {} } }, true] };
  expect(problemsIn(forms, { xa: 1 })).toEqual([]);
  expect(problemsIn(forms, { a: 1, xa: 1 })).toEqual([]);
  for (const value of [{ constructor: 1 }, { toString: 1 }, JSON.parse('{"__proto__": 1}') as object]) {
    expect(problemsIn(sealed, value)).toMatchObject([{ code: "unevaluatedProperties" }]);
    expect(problemsIn(forms, { a: 1, ...value, xa: 1 })).toHaveLength(Object.keys({ ...value }).length);
  }
});

test("equal is what JSON Schema calls so, whatever a value's members are called", () => {
  const odd = { toString: 1, valueOf: "x", constructor: null };
  for (const schema of [{ enum: ["a", { a: 1 }] }, { const: { toString: 1 } }]) {
    expect(problemsIn(schema, odd)).toHaveLength(1);
    expect(problemsIn(schema, "{}")).toHaveLength(1);
  }
  expect(problemsIn({ const: { ...odd } }, odd)).toEqual([]);
  expect(problemsIn({ enum: [{ a: [1, { b: 0 }], c: 2 }] }, { c: 2, a: [1, { b: -0 }] })).toEqual([]);
});

test("where no value with members is allowed, one is refused without a look at them, but for its size", () => {
  for (const schema of [{ enum: ["a", null] }, { const: "a" }]) {
    let looks = 0;
    const value = new Proxy({}, { ownKeys: () => [looks++].slice(1) as never });
    expect(problemsIn(schema, value)).toHaveLength(1);
    expect(looks).toBe(1);
  }
});

/** Each from https://github.com/json-schema-org/JSON-Schema-Test-Suite, where Ajv answers otherwise. */
test.each([
  [
    "$dynamicRef leads where $ref would",
    { $dynamicRef: "#t", $defs: { t: { $dynamicAnchor: "t", type: "string" } } },
    "a",
    1,
  ],
  ["$dynamicRef leads to an $anchor", { $dynamicRef: "#t", $defs: { t: { $anchor: "t", type: "string" } } }, "a", 1],
  [
    "an `if` alone evaluates",
    { if: { patternProperties: { "^a": true } }, unevaluatedProperties: false },
    { a: 1 },
    { b: 1 },
  ],
  ["`contains` evaluates what it finds", { contains: { type: "string" }, unevaluatedItems: false }, ["a"], ["a", 1]],
  [
    "`contains` may find none",
    { contains: { const: 0 }, minContains: 0, unevaluatedItems: { const: 1 } },
    [0, 1],
    [0, 2],
  ],
  [
    "a form that fits evaluates all items",
    { anyOf: [{ items: { type: "string" } }, true], unevaluatedItems: { type: "boolean" } },
    ["a", "b"],
    ["a", true],
  ],
  [
    "a short list is looked at beyond `prefixItems`",
    { prefixItems: [{}, {}, { type: "string" }], uniqueItems: true },
    [1, 2],
    [1, 1],
  ],
  [
    "what a referred form left over",
    {
      $ref: "#/$defs/a",
      properties: { b: true },
      $defs: { a: { properties: { a: { type: "string" } } } },
      unevaluatedProperties: { maximum: 1 },
    },
    { a: "a", b: 9, c: 1 },
    { c: 2 },
  ],
])("%s", (_what, schema, good, bad) => {
  expect(problemsIn(schema, good)).toEqual([]);
  expect(problemsIn(schema, bad)).toHaveLength(1);
});

test("of thousands of members each is checked", () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `p${at}`);
  const properties = Object.fromEntries(["constructor", ...names].map((name) => [name, { type: "integer" }]));
  const check = compileSchema(JSON.stringify({ type: "object", properties, additionalProperties: false }));
  expect(check({}, AT_MOST_MS)).toEqual([]);
  expect(check(Object.fromEntries(names.map((name) => [name, 1])), AT_MOST_MS)).toEqual([]);
  const at = (value: unknown) => check(value, AT_MOST_MS)?.map(({ pointer }) => pointer);
  expect(at({ p0: "1", p1: 1, p4999: "1", p5000: 1 })).toEqual(["/p5000", "/p0", "/p4999"]);
});

test("a name leads to its schema, wherever that stands", () => {
  const named = { properties: { parts: { items: { $dynamicRef: "#tree" } } }, required: ["name"] };
  for (const word of ["$anchor", "$dynamicAnchor"])
    for (const rest of [{}, { unevaluatedProperties: { type: "string" } }]) {
      const tree = { [word]: "tree", ...named, ...rest };
      expect(problemsIn(tree, { name: "a", parts: [{ name: "b" }] })).toEqual([]);
      expect(problemsIn(tree, { name: "a", parts: [{}] })).toMatchObject([{ code: "required" }]);
    }
  const tuple = { prefixItems: [{ $anchor: "first", type: "string" }, { $ref: "#first" }] };
  const odd = { $ref: "#odd", $defs: { "100% of /~": { $anchor: "odd", prefixItems: [true, { type: "string" }] } } };
  for (const schema of [tuple, odd]) {
    expect(problemsIn(schema, ["a", "b"])).toEqual([]);
    expect(problemsIn(schema, ["a", 1])).toMatchObject([{ code: "type" }]);
  }
});

test.each([
  [{ enum: ["a"] }, 1],
  [{ const: "a" }, 1],
  [{ multipleOf: 2 }, 1],
  [{ uniqueItems: true }, [1, 1]],
])("a list of which no item fits %j is refused in one pass", (items, item) => {
  const began = performance.now();
  const problems = problemsIn({ items }, Array(40_000).fill(item));
  expect(problems).toHaveLength(100);
  expect(performance.now() - began).toBeLessThan(within(1_000));
});

test("what a form that does not fit describes is left over, and a list shorter than its tuple is looked at", () => {
  const tuple = { prefixItems: [{ type: "string" }], contains: { type: "integer" } };
  expect(problemsIn(tuple, [])).toMatchObject([{ code: "contains" }]);
  expect(problemsIn(tuple, ["a", 1])).toEqual([]);
  const part = { properties: { b: {} }, patternProperties: { "^x": {} }, minProperties: 5 };
  const sealed = { anyOf: [part, { properties: { a: {} } }], unevaluatedProperties: false };
  expect(problemsIn(sealed, { a: 1, b: 1 })).toMatchObject([{ code: "unevaluatedProperties" }]);
  // Handlers' own tests are told alike.
  const folder = temporaryFolder();
  put(join(folder, "contract.json"), JSON.stringify(contractOf("t", { input_schema: tuple, output_schema: sealed })));
  const { input, output } = contractIn(folder);
  expect([input(["a", 1]), output({ a: 1 })]).toEqual([["a", 1], { a: 1 }]);
  expect(() => input([])).toThrow("contain");
  expect(() => output({ a: 1, b: 1 })).toThrow("unevaluated");
});

test("levels of a schema that refers to itself cost what they are, with what is left over at each", () => {
  const inner = { properties: { part: { $ref: "#" } }, required: ["part"] };
  const schema = { anyOf: [inner, { properties: { leaf: true } }], unevaluatedProperties: false };
  const nested = (leaf: object) => Array.from({ length: 30 }).reduce<object>((part) => ({ part }), leaf);
  expect(problemsIn(schema, nested({ leaf: 1 }))).toEqual([]);
  expect(problemsIn(schema, nested({ other: 1 }))).not.toEqual([]);
});

test("a multiple is one by the decimals that it is written with", () => {
  for (const price of [0.07, 19.99, -0.07, 0, 123456789012.34, 1e308])
    expect(problemsIn({ multipleOf: 0.01 }, price), String(price)).toEqual([]);
  for (const price of [0.001, 1e-7, 19.995, 5e-324])
    expect(problemsIn({ multipleOf: 0.01 }, price)).toMatchObject([{ code: "multipleOf" }]);
  expect(problemsIn({ multipleOf: 3 }, 9)).toEqual([]);
  expect(problemsIn({ multipleOf: 2.5 }, 7)).toHaveLength(1);
});

test("who sends many values that are slow to check holds up nobody else's", async () => {
  const check = checkThread("by turns");
  const [many, one] = [{}, {}];
  const order: string[] = [];
  const sent = ["a", "b", "c"].map((name) => check({ json: "1", schema: "true" }, many).then(() => order.push(name)));
  const other = check({ json: "1", schema: "true" }, one).then(() => order.push("other"));
  await Promise.all([...sent, other]);
  expect(order).toEqual(["a", "b", "other", "c"]);
});

test("who deploys many contracts holds up nobody else's", async () => {
  const order: string[] = [];
  const read = async (by: string) => {
    await readContractApart("{}", "contract.json", by);
    order.push(by);
  };
  await Promise.all(["many", "many", "many", "other"].map(read));
  expect(order).toEqual(["many", "many", "other", "many"]);
});

test("of one who deploys without end so many contracts wait, and the rest is refused at once", async () => {
  const sent = Array.from({ length: 300 }, () => readContractApart("{}", "contract.json", "endless"));
  const other = readContractApart("{}", "contract.json", "another");
  const refused = (await Promise.allSettled(sent)).filter(({ status }) => status === "rejected");
  expect(refused.length).toBeGreaterThan(30);
  expect(refused[0]).toMatchObject({ reason: { code: "overloaded", retryAfterS: 1 } });
  expect(await other).toMatchObject({ contract: undefined });
});

test("a check that still waits at its limit is taken out of the line", async () => {
  const check = checkThread("limited");
  const slow = JSON.stringify({ pattern: "\\s+$" });
  const own = {};
  const first = check({ json: JSON.stringify(`${" ".repeat(1_000_000)}x`), schema: slow }, own);
  const limit = { ms: 1, late: () => new Error("late") };
  const late = Array.from({ length: 100 }, () => check({ json: "1".repeat(1_000), schema: "true" }, own, limit));
  for (const one of await Promise.allSettled(late)) expect(one).toMatchObject({ reason: { message: "late" } });
  const after = check({ json: "2", schema: "true" }, own, { ...limit, ms: 60_000 });
  expect(await first).toMatchObject({ problems: [{ code: "too_slow" }] });
  expect(await after).toEqual({ broken: false, problems: [] });
});

test("where the machine refuses a thread, that is what the one who asks is told", async () => {
  const refused = Object.assign(new Error("Worker initialization failure: EMFILE"), { code: "ERR_WORKER_INIT_FAILED" });
  const check = jobThread<string, string>("checks", () => {
    throw refused;
  });
  await expect(check("one", {})).rejects.toMatchObject({
    code: "overloaded",
    message: expect.stringMatching("EMFILE"),
  });
});

test("a check that cannot be handed to its thread fails alone", async () => {
  const check = checkThread("handed over");
  const failed = check({ json: "1", schema: (() => {}) as never }, {});
  const waiting = check({ json: "1", schema: "true" }, {});
  await expect(failed).rejects.toThrow("could not be cloned");
  expect(await waiting).toMatchObject({ broken: false, problems: [] });
});
