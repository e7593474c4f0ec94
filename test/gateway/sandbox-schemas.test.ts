// The sandbox obeys schemas: whatever a tool's parameters or a response_format demand, Ajv finds nothing wrong with what it gives.
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answerFor } from "#daemon/gateway/providers/sandbox/answer.ts";
import { sandboxProvider } from "#daemon/gateway/providers/sandbox/provider.ts";
import { seededRandom } from "#daemon/gateway/providers/sandbox/random.ts";
import { sampleForSchema } from "#daemon/gateway/providers/sandbox/sample.ts";
import { within } from "../patience.ts";

const object = (properties: object, required = Object.keys(properties), more: object = {}) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
  ...more,
});

// As text: an object with a `then` passes for a promise.
const conditional = (kind: object) =>
  JSON.parse(`{
    "type": "object", "properties": {"kind": ${JSON.stringify(kind)}}, "required": ["kind"],
    "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["x"]}, "else": {"required": ["y"]}
  }`);

const schemas: Record<string, object> = {
  empty: {},
  "no properties": object({}),
  scalars: object({
    a: { type: "string" },
    b: { type: "integer" },
    c: { type: "number" },
    d: { type: "boolean" },
    e: { type: "null" },
  }),
  "enum and const": object({ a: { enum: ["x", 1, null] }, b: { const: { z: [1] } } }),
  "integer range": { type: "integer", minimum: 5, maximum: 5 },
  "integer between": { type: "integer", exclusiveMinimum: 3, exclusiveMaximum: 5 },
  "number between": { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.001 },
  "negative numbers": { type: "number", maximum: -10 },
  "fractions in a range": { type: "number", minimum: 0.25, maximum: 0.75 },
  "integers from a fraction": { type: "integer", minimum: 0.5, maximum: 1.5 },
  "multiple of": { type: "number", multipleOf: 0.05, minimum: 1 },
  "multiple of integers": { type: "integer", multipleOf: 7, minimum: 1, maximum: 20 },
  "string lengths": { type: "string", minLength: 20, maxLength: 22 },
  "short string": { type: "string", maxLength: 2 },
  "an array of a length": { type: "array", items: { type: "integer" }, minItems: 3, maxItems: 3 },
  "unique items": { type: "array", items: { enum: ["a", "b", "c"] }, minItems: 3, uniqueItems: true },
  "unique objects": {
    type: "array",
    items: object({ tag: { type: "string" }, at: { type: "string", format: "date-time" } }),
    minItems: 3,
    uniqueItems: true,
  },
  "a time that is not to be": { type: "string", format: "time", not: { const: "09:30:00Z" } },
  "unique strings": { type: "array", items: { type: "string" }, minItems: 4, uniqueItems: true },
  "an empty array": { type: "array", maxItems: 0, items: { type: "string" } },
  tuple: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], minItems: 2, items: false },
  "values that are not to be": object({
    a: { type: "string", not: { enum: ["a", "a 1"] } },
    b: { enum: ["x", "y"], not: { const: "x" } },
  }),
  "what nothing satisfies": {
    type: "object",
    properties: { a: { not: {} }, b: { type: "array", items: { not: {} } }, c: { type: "array", items: false } },
    additionalProperties: { not: {} },
  },
  nullable: object({ a: { type: ["string", "null"] }, b: { anyOf: [{ type: "integer" }, { type: "null" }] } }),
  oneOf: {
    oneOf: [
      object({ kind: { const: "a" }, x: { type: "integer" } }),
      object({ kind: { const: "b" }, y: { type: "string" } }),
    ],
  },
  allOf: {
    type: "object",
    allOf: [
      { properties: { a: { type: "string" } }, required: ["a"] },
      { properties: { b: { type: "integer" } }, required: ["b"] },
    ],
  },
  $defs: {
    $defs: { point: object({ x: { type: "number" }, y: { type: "number" } }) },
    ...object({ from: { $ref: "#/$defs/point" }, to: { $ref: "#/$defs/point" } }),
  },
  definitions: {
    definitions: { "a/b": { type: "integer", minimum: 9 } },
    ...object({ a: { $ref: "#/definitions/a~1b" } }),
  },
  "a tree": {
    $defs: {
      node: object({ value: { type: "integer" }, children: { type: "array", items: { $ref: "#/$defs/node" } } }),
    },
    $ref: "#/$defs/node",
  },
  "a linked list": {
    $defs: {
      node: object({ value: { type: "integer" }, next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } }),
    },
    ...object({ head: { $ref: "#/$defs/node" } }),
  },
  "deep nesting": object({
    a: object({ b: object({ c: object({ d: object({ e: object({ f: { type: "string" } }) }) }) }) }),
  }),
  "additional properties": { type: "object", additionalProperties: { type: "integer" }, minProperties: 2 },
  "at least so many properties, far within": object({
    a: object({
      b: object({ c: object({ d: { type: "string" }, e: { type: "integer" } }, [], { minProperties: 2 }) }),
    }),
  }),
  "required but not described": { type: "object", required: ["a"] },
  "at most so many properties": {
    type: "object",
    properties: { a: {}, b: {}, c: {} },
    required: ["c"],
    maxProperties: 2,
  },
  "properties by pattern": {
    ...{ type: "object", required: ["x-a"], minProperties: 2, additionalProperties: false },
    patternProperties: { "^x-[a-z]{3,9}$|^x-a$": { type: "integer" } },
  },
  "a condition that never holds": { if: false, else: { const: 4 } },
  "names by pattern": { type: "object", minProperties: 2, propertyNames: { pattern: "^[a-z]{4}$" } },
  "what others depend on": { type: "object", properties: { a: {} }, required: ["a"], dependentRequired: { a: ["b"] } },
  "a property that may not be": { type: "object", properties: { a: false, b: { type: "string" } } },
  "if, then and else": conditional({ enum: ["a", "b"] }),
  "not what the condition asks for": conditional({ const: "b" }),
  "the narrower of two": {
    allOf: [
      object({ a: { type: "integer", minimum: 3 }, b: { enum: ["x", "y"] }, c: { type: "string", maxLength: 4 } }),
      { properties: { a: { minimum: 1, maximum: 4 }, b: { enum: ["y", "z"] }, c: { maxLength: 9 } } },
    ],
  },
  contains: { type: "array", items: { type: "integer" }, contains: { minimum: 90 }, minContains: 2 },
  "unique short strings": { type: "array", items: { type: "string", maxLength: 2 }, minItems: 3, uniqueItems: true },
  "a pattern beside a format": { type: "string", format: "email", pattern: "^[a-z]{3}@corp\\.com$" },
  "an integer in steps of a half": { type: "integer", multipleOf: 0.5, minimum: 2.5 },
  "an integer in steps of a hundredth": { type: "integer", multipleOf: 0.01, minimum: 2.5 },
  "a default of another type": { type: "integer", default: "x" },
  "optional members": object({ a: { type: "string" }, b: { type: "string" } }, ["a"]),
  "a strange name": {
    type: "object",
    properties: JSON.parse('{"__proto__": {"type": "integer"}}'),
    required: ["__proto__"],
  },
};
for (const format of [
  ...["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"],
  ...["uri-template", "relative-json-pointer", "byte", "__proto__"],
]) {
  schemas[`format ${format}`] = { type: "string", format };
  schemas[`several of format ${format}`] = {
    type: "array",
    items: { type: "string", format },
    minItems: 3,
    uniqueItems: true,
  };
}
for (const pattern of [
  "^[A-Z]{2,3}-\\d{4}$",
  "^(red|green|blue)$",
  "^\\+?[1-9]\\d{1,14}$",
  "^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$",
  "^#(?:[0-9a-fA-F]{3}){1,2}$",
  "\\bfoo\\b",
  "^a.c?d*e+$",
  "^[\\w.-]{5,10}$",
  "^\\d{3}-\\d{2}-\\d{4}$",
  "^(([01]\\d|2[0-3]):[0-5]\\d)$",
  "^\\p{L}+$",
  "^\\p{Lu}[\\p{L}\\p{M}' -]{2,20}\\P{L}$",
  "^[^\\p{L}]{3}$",
  "^\\p{Script=Greek}\\p{Sc}\\p{N}$",
]) {
  schemas[`pattern ${pattern}`] = { type: "string", pattern };
}

const ajv = new Ajv2020({ strict: false, addUsedSchema: false });
addFormats.default(ajv);

function check(schema: object, seed: string): void {
  // Ajv remembers a schema by its object: the seeds of one share what was compiled.
  const validate = ajv.compile(schema);
  const sample = sampleForSchema(schema, seededRandom(seed));
  // Through JSON, as it goes over the wire.
  const sent = JSON.parse(JSON.stringify(sample ?? null)) as unknown;
  if (!validate(sent))
    throw new Error(`${JSON.stringify(sent)} for ${JSON.stringify(schema)}: ${ajv.errorsText(validate.errors)}`);
}

describe("samples satisfy", () => {
  test.each(Object.entries(schemas))("%s", (_name, schema) => {
    for (let seed = 0; seed < 10; seed++) check(schema, String(seed));
  });

  const leaf = fc.oneof(
    fc.record({ type: fc.constant("string"), minLength: fc.nat(20) }, { requiredKeys: ["type"] }),
    fc
      .tuple(fc.integer({ min: -1000, max: 1000 }), fc.nat(100))
      .map(([minimum, span]) => ({ type: "integer", minimum, maximum: minimum + span })),
    fc
      .tuple(fc.double({ min: -10, max: 10, noNaN: true }), fc.double({ min: 0.001, max: 5, noNaN: true }))
      .map(([minimum, span]) => ({ type: "number", minimum, maximum: minimum + span })),
    fc.constantFrom({ type: "boolean" }, { type: "null" }, { enum: ["a", 2, null] }, { type: ["integer", "null"] }),
  );
  const schema = fc.letrec<{ any: object }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.record({ type: fc.constant("array"), items: tie("any"), minItems: fc.nat(3) }),
      fc
        .dictionary(fc.constantFrom("a", "b", "c d", "e/f"), tie("any"), { maxKeys: 4 })
        .map((properties) => object(properties)),
      fc.array(tie("any"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    ),
  })).any;

  test("random schemas", () => {
    fc.assert(
      fc.property(schema, fc.string(), (one, seed) => check(one, seed)),
      { numRuns: 150, seed: 11 },
    );
  });
});

test("a reference that nobody can read is none", () => {
  expect(sampleForSchema({ $defs: {}, $ref: "#/$defs/%zz", type: "null" }, seededRandom("s"))).toBe(null);
});

test("the same seed gives the same value", () => {
  const one = schemas["scalars"] as object;
  expect(sampleForSchema(one, seededRandom("s"))).toEqual(sampleForSchema(one, seededRandom("s")));
});

const many = <T>(count: number, of: (n: number) => T) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, of(n)]));
const hostile: Record<string, object> = {
  "properties without end": { type: "object", minProperties: 1e8 },
  "objects of themselves": { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] },
  "arrays of themselves": { type: "array", items: { $ref: "#" }, minItems: 1 },
  "a long text by a pattern": { type: "string", pattern: "^(a|b)+$", minLength: 4e8 },
  "a pattern of half a million steps": { type: "string", pattern: "(a?){1000}".repeat(50) },
  "patterns that nothing matches": {
    type: "object",
    properties: many(5_000, () => ({ type: "string", pattern: "$a" })),
  },
  "a large constant in many places": {
    ...{ type: "array", minItems: 100 },
    items: { type: "array", minItems: 100, items: { const: ["y".repeat(1e5)] } },
  },
  "many parts": { allOf: Array.from({ length: 2_000 }, (_, n) => ({ type: "object", properties: many(1, () => n) })) },
  "a wide reference in many places": {
    ...{ $defs: { wide: { type: "object", properties: many(5_000, () => ({})) } } },
    ...{ type: "array", minItems: 100, items: { type: "array", minItems: 100, items: { $ref: "#/$defs/wide" } } },
  },
};

test.each(Object.entries(hostile))("a stranger's schema costs little, however often: %s", (_name, schema) => {
  const tools = Array.from({ length: 50 }, () => ({
    type: "function" as const,
    function: { name: "ask", parameters: schema as Record<string, unknown> },
  }));
  const messages = [{ role: "user" as const, content: "ask" }];
  const started = performance.now();
  const answer = answerFor({ model: "echo", messages, tools, n: 50 }, 1);
  expect(performance.now() - started).toBeLessThan(within(2_000));
  expect(JSON.stringify(answer.choices).length).toBeLessThan(20e6);
});

const everywhere = (one: object) => ({
  $defs: { one },
  type: "object",
  properties: many(2_000, () => ({ $ref: "#/$defs/one" })),
});
const texts = Array.from({ length: 100 }, (_, n) => `${"x".repeat(30_000)}${n}`);
const same = (text: string) => Array(100_000).fill(text);
const wide: Record<string, object> = {
  "a condition on long values in many places": everywhere({
    ...{ type: "null", properties: { a: { enum: texts } }, if: { properties: { a: { enum: texts } } } },
  }),
  "long values in several parts, in many places": everywhere({ type: "null", allOf: [{ enum: texts }, { enum: [1] }] }),
  "many types in many places": everywhere({ type: same("string"), default: 1 }),
  "many dependents in many places": everywhere({
    ...{ type: "object", properties: { a: { type: "null" } }, required: ["a"], dependentRequired: { a: same("a") } },
  }),
  "many patterns of names in many places": everywhere({ type: "object", patternProperties: many(50_000, () => 1) }),
};

test.each(Object.entries(wide))("what has no end in width is looked at a few times: %s", (_name, schema) => {
  const started = performance.now();
  sampleForSchema(schema, seededRandom("1"));
  expect(performance.now() - started).toBeLessThan(within(1_000));
});

test.each(["tools", "functions"] as const)("an answer that calls %s ends at its limit, as a text does", (way) => {
  const define = (name: string) => ({
    name,
    parameters: { type: "object", properties: { a: { type: "string", minLength: 40 } }, required: ["a"] },
  });
  const names = ["first", "second"];
  const asked = {
    messages: [{ role: "user" as const, content: "first second" }],
    ...(way === "tools"
      ? { tools: names.map((name) => ({ type: "function" as const, function: define(name) })) }
      : { functions: names.map(define) }),
  };
  const whole = answerFor(asked, 1);
  const said = (answer: typeof whole) =>
    answer.choices[0]?.toolCalls.map(({ function: { arguments: text } }) => text).join("");
  for (let limit = 1; limit <= whole.usage.output; limit++) {
    const got = answerFor({ ...asked, max_tokens: limit }, 1);
    const [choice] = got.choices;
    expect(got.usage.output).toBeLessThanOrEqual(limit);
    expect(choice?.finish).toBe(limit < whole.usage.output ? "length" : whole.choices[0]?.finish);
    expect((choice?.text === null) === (choice?.toolCalls.length ?? 0) > 0).toBe(true);
  }
  expect(said(answerFor({ ...asked, max_completion_tokens: whole.usage.output }, 1))?.length).toBe(said(whole)?.length);
});

test("many vectors keep nobody waiting, and too many are refused", async () => {
  const target = { provider: "sandbox", kind: "sandbox", model: "embedding", baseUrl: null, credentials: {} } as const;
  const embed = (count: number) =>
    sandboxProvider.embed?.(
      { request: { input: Array(count).fill("x"), dimensions: 4096 }, raw: null, requestId: "req_1", user: null },
      target,
      { signal: new AbortController().signal, timeoutMs: 1_000, cost: () => 0 },
    );
  expect(await embed(1025)).toMatchObject({ kind: "failure", failure: { kind: "invalid", param: "input" } });
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const answer = await embed(64);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(3);
  const { data, usage } = JSON.parse(answer?.kind === "completion" ? answer.body.toString() : "");
  expect(data.map(({ index }: { index: number }) => index)).toEqual(Array.from({ length: 64 }, (_, n) => n));
  expect(usage).toEqual({ prompt_tokens: 64, total_tokens: 64, cost_usd: 0 });
});
