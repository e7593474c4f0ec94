// Whatever text is thrown at the readers: an answer in bounded time, never an exception, and each problem has its place.
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { readContract } from "#contract/controller-check.ts";
import { checkEmbedded } from "#contract/json-schema/embedded.ts";
import { readProject } from "#contract/project-check.ts";
import { readSource } from "#contract/source.ts";
import { typesOf } from "#contract/types.ts";
import { within } from "../patience.ts";

// Real processes on a machine that may be busy: nothing here depends on how long it takes.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const valid = `name: triage
version: 1.0.0
input_schema: { type: object, properties: { text: { type: string, pattern: "^[a-z]+$" } }, required: [text] }
output_schema: { $ref: "#/$defs/out", $defs: { out: { type: object } } }
capabilities: [llm:chat, http:egress]
scopes:
  http:
    - { host: api.example.com, port: 443 }
limits: { timeout_ms: 5000 }
`;

const settled = (text: string) => {
  for (const read of [readContract, readProject]) {
    const start = performance.now();
    const { problems } = read(text, "f");
    expect(performance.now() - start).toBeLessThan(30_000);
    for (const problem of problems) {
      expect(problem.line).toBeGreaterThan(0);
      expect(problem.column).toBeGreaterThan(0);
      expect(problem.message).not.toBe("");
      expect(problem.fix).not.toBe("");
    }
  }
};

test("references that fork at each level are not followed to their end", () => {
  const both = (ref: string) => `{ allOf: [{ $ref: "${ref}" }, { $ref: "${ref}" }] }`;
  const levels = Array.from({ length: 60 }, (_, at) => `a${at}: ${both(`#/$defs/a${at + 1}`)}`);
  const forking = `{ $ref: "#/$defs/a0", $defs: { ${levels.join(", ")}, a60: {} } }`;
  expect(readContract(valid.replace(/output_schema: .*/, `output_schema: ${forking}`), "f").problems).toEqual([]);
});

test("more forms than can be checked are refused, also where a check would come to them by a reference", () => {
  const forms = Array.from({ length: 3_000 }, (_, at) => `{ minLength: ${at} }`).join(", ");
  const schemas = [
    `{ allOf: [${forms}] }`,
    `{ properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { allOf: [${forms}] } } }`,
  ];
  for (const schema of schemas)
    expect(
      readContract(valid.replace(/output_schema: .*/, `output_schema: ${schema}`), "f").problems.map(
        ({ code }) => code,
      ),
    ).toEqual(["schema_invalid"]);
});

test("a schema of which each part takes a moment to be checked is given up as a whole", () => {
  const schema = { allOf: Array.from({ length: 300 }, (_, at) => ({ pattern: `(a+)+b{${at}}$` })) };
  const { source } = readSource(JSON.stringify({ schema }), "f");
  const began = performance.now();
  const problems = checkEmbedded(source as never, "/schema", schema, 20);
  expect(problems.map(({ message }) => message)).toContain(
    "The schema cannot be used: it takes too long to be checked.",
  );
  expect(performance.now() - began).toBeLessThan(within(5_000));
  const { problems: after } = readContract(valid, "f");
  expect(after).toEqual([]);
});

test("a schema whose check got no processor for its time is checked again, one that used it is not", () => {
  const { source } = readSource("{}", "f");
  const stuckOnce = () => {
    let looks = 0;
    const schema = {
      get type() {
        while (looks === 0) if (performance.now() > began + 1_500) looks++;
        return "string";
      },
    };
    const began = performance.now();
    return schema;
  };
  const used = vi.spyOn(process, "threadCpuUsage").mockReturnValue({ user: 90_000, system: 0 });
  expect(checkEmbedded(source as never, "/schema", stuckOnce(), 1_000)).toEqual([]);
  used.mockReturnValue({ user: 600_000, system: 0 });
  expect(checkEmbedded(source as never, "/schema", stuckOnce(), 1_000)).toHaveLength(1);
  used.mockRestore();
});

test("texts with pieces cut out, doubled or exchanged", () => {
  const piece = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ":",
    "-",
    "\t",
    "\n",
    '"',
    "'",
    "&a",
    "*a",
    "!!",
    "|",
    ">",
    "%",
    "?",
    "#",
    "~",
    "\0",
    "\ud800",
    "é",
    "$ref",
    "__proto__",
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(valid.length), fc.nat(20), piece), { maxLength: 6 }), (edits) => {
      let text = valid;
      for (const [at, cut, insert] of edits) text = text.slice(0, at) + insert + text.slice(at + cut);
      settled(text);
    }),
    { numRuns: 100, seed: 11 },
  );
});

test("any JSON value in any place", () => {
  const keys = ["name", "version", "input_schema", "output_schema", "capabilities", "scopes", "limits", "isolation"];
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 4 })), (value) =>
      settled(JSON.stringify(value)),
    ),
    { numRuns: 60, seed: 12 },
  );
});

test("any schema: refused with a reason, or usable and its types can be made", () => {
  const keyword = fc.constantFrom(
    "type",
    "properties",
    "items",
    "$ref",
    "anyOf",
    "allOf",
    "enum",
    "required",
    "pattern",
    "$defs",
    "additionalProperties",
    "prefixItems",
    "const",
    "format",
    "if",
    "$id",
    "$anchor",
  );
  const leaf = fc.constantFrom<unknown>(
    "string",
    "object",
    "#",
    "#/$defs/a",
    "#/$defs/",
    "#%",
    "a",
    ["a"],
    1,
    null,
    true,
    false,
    {},
    [],
    [{}],
  );
  const schema = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.dictionary(keyword, tie("node"), { maxKeys: 4 }),
      fc.dictionary(fc.constantFrom("a", "b"), tie("node"), { maxKeys: 2 }),
      fc.array(tie("node"), { maxLength: 3 }),
    ),
  })).node;
  fc.assert(
    fc.property(schema, (input_schema) => {
      const { contract, problems } = readContract(
        JSON.stringify({ name: "a", version: "1.0.0", input_schema, output_schema: true }),
        "f",
      );
      expect(contract === undefined).toBe(problems.length > 0);
      if (contract) typesOf(contract);
    }),
    { numRuns: 150, seed: 13 },
  );
});

test("references in a long chain are refused, mappings of many keys read at once, and of many problems as many are told as somebody reads", () => {
  const many = (n: number, of: (i: number) => unknown) =>
    Object.fromEntries(Array.from({ length: n }, (_, i) => [`d${i}`, of(i)]));
  const next = (i: number) => ({ $ref: `#/$defs/d${i + 1}` });
  const read = (input_schema: unknown, more = {}) =>
    readContract(JSON.stringify({ name: "a", version: "1.0.0", input_schema, output_schema: true, ...more }), "c")
      .problems;
  const chain = { $defs: many(4001, (i) => (i === 4000 ? true : next(i))) };
  expect(read({ ...chain, $ref: "#/$defs/d0" })[0]?.message).toMatch(/nests too deeply/);
  expect(read({ properties: many(1200, () => ({ type: "objekt" })) })).toHaveLength(1000);
  expect(
    read(
      true,
      many(1200, () => 1),
    ),
  ).toHaveLength(1000);
  // Reading compares no key with all others.
  const started = process.cpuUsage().user;
  expect(read({ $defs: many(16_000, () => true) })).toEqual([]);
  expect(process.cpuUsage().user - started).toBeLessThan(2_500_000);
});
