import { expect, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { createRuntime } from "#daemon/controllers/create-runtime.ts";
import { findBreaks } from "#daemon/controllers/versions/breaks.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createMetrics } from "#daemon/telemetry/metrics.ts";
import { systemClock } from "#shared/clock.ts";
import { contractOf, noPorts, openBench, principal } from "./harness.ts";

const answer = (n: number) => `export default () => ${n};`;

test("versions are immutable, latest moves with a deploy and back with a rollback", async () => {
  const bench = await openBench();
  const digest = await bench.deploy("v", answer(1));
  expect(await bench.deploy("v", answer(1))).toBe(digest);
  expect((await bench.failure(bench.deploy("v", answer(2)))).code).toBe("conflict");
  await bench.deploy("v", answer(2), { version: "1.1.0" });
  expect(await bench.invoke("v")).toBe(2);
  expect(await bench.invoke("v", {}, { version: "1.0.0" })).toBe(1);
  await bench.runtime.promote("v", "stable", "1.0.0");
  expect(await bench.invoke("v", {}, { version: "stable" })).toBe(1);
  expect(await bench.runtime.rollback("v")).toMatchObject({ serving: "1.0.0" });
  expect(await bench.invoke("v")).toBe(1);
  expect(await bench.outcome("v", {})).toBe("ok");
  expect((await bench.failure(bench.invoke("v", {}, { version: "9.9.9" }))).code).toBe("controller_not_found");
});

test("cells that rest are given back beyond a number, the longest rested first, and versions called by their number go with theirs", async () => {
  let away = false;
  const bench = await openBench({
    mostCells: 1,
    onStorage(unit) {
      if (away && unit === "list") throw new MagicError("storage_unavailable");
    },
  });
  for (let n = 0; n < 3; n++) await bench.deploy("v", answer(n), { version: `1.${n}.0` });
  const cells = async (): Promise<number> => {
    const { text } = await bench.metrics.render();
    return Number(/^magic_controller_cells (\d+)$/m.exec(text)?.[1]);
  };
  // One that is in no catalogue, while the database is away: what nobody waits for fails nobody, the daemon least of all.
  await bench.runtime.develop({ folder: bench.write("d", answer(3)) });
  away = true;
  for (let n = 0; n < 3; n++) expect(await bench.invoke("v", {}, { version: `1.${n}.0` })).toBe(n);
  expect(await cells()).toBeGreaterThan(2);
  await expect.poll(cells, { timeout: 5_000, interval: 100 }).toBe(1);
  away = false;
  for (let n = 0; n < 3; n++) expect(await bench.invoke("v", {}, { version: `1.${n}.0` })).toBe(n);
});

test("what another daemon removed leaves the list, and takes nobody else out of it", async () => {
  const bench = await openBench();
  await bench.deploy("gone", answer(1));
  await bench.deploy("stays", answer(2));
  Object.assign(bench.storage, { dialect: "postgres" });
  await bench.storage.units.controller.remove({ name: "gone", version: null });
  expect((await bench.runtime.list()).map(({ name }) => name)).toEqual(["stays"]);
});

test("what another daemon removed is let go of when its cell rests", async () => {
  const asked: unknown[] = [];
  const bench = await openBench({ mostCells: 1, onStorage: (unit, args) => asked.push([unit, args]) });
  await bench.deploy("gone", answer(1));
  const { controller } = bench.storage.units;
  const id = { name: "gone", version: "1.0.0" };
  const stored = (await controller.read(id)) as NonNullable<Awaited<ReturnType<typeof controller.read>>>;
  await controller.remove({ name: "gone", version: null });
  asked.length = 0;
  await bench.deploy("stays", answer(2));
  // Of two cells the one that rested longest is given back.
  await expect.poll(() => asked, { timeout: 5_000 }).toContainEqual(["list", { name: "gone" }]);
  const at = "2026-01-01T00:00:00.000Z";
  await controller.deploy({ row: { ...id, ...stored, created_at: at }, alias: "latest", percent: 100, at });
  await expect.poll(() => bench.outcome("gone"), { timeout: 5_000, interval: 100 }).toBe("ok");
  expect(asked).toContainEqual(["read", id]);
});

test("a percentage rollout splits the calls, and rolling back gives the candidate up", async () => {
  const bench = await openBench();
  await bench.deploy("r", answer(1));
  const artifact = await bench.runtime.build(bench.write("r", answer(2), { version: "1.1.0" }));
  await bench.runtime.deploy(artifact, { percent: 30 });
  let second = 0;
  for (let i = 0; i < 400; i++) if ((await bench.invoke("r")) === 2) second++;
  expect(second).toBeGreaterThan(60);
  expect(second).toBeLessThan(190);
  expect(await bench.runtime.rollback("r")).toMatchObject({ serving: "1.0.0", rollout: null });
  for (let i = 0; i < 20; i++) expect(await bench.invoke("r")).toBe(1);
});

test("during a rollout a request's id decides: a retry reaches the same version", async () => {
  const bench = await openBench();
  await bench.deploy("s", answer(1));
  const artifact = await bench.runtime.build(bench.write("s", answer(2), { version: "1.1.0" }));
  await bench.runtime.deploy(artifact, { percent: 50 });
  const seen = new Set<unknown>();
  for (let n = 0; n < 16; n++) {
    const ask = () => bench.runtime.invoke("s", { input: {}, requestId: `req_${n}`, principal });
    const { output } = await ask();
    seen.add(output);
    for (let i = 0; i < 4; i++) expect((await ask()).output).toBe(output);
  }
  expect(seen).toEqual(new Set([1, 2]));
});

test("a version that an alias holds cannot be removed; the others and the whole controller can", async () => {
  const bench = await openBench();
  await bench.deploy("d", answer(1));
  await bench.deploy("d", answer(2), { version: "1.1.0" });
  expect((await bench.failure(bench.runtime.remove("d", "1.1.0"))).code).toBe("conflict");
  await bench.runtime.remove("d", "1.0.0");
  expect((await bench.runtime.get("d")).versions.map((one) => one.version)).toEqual(["1.1.0"]);
  await bench.runtime.remove("d");
  expect(await bench.outcome("d")).toBe("controller_not_found");
  expect((await bench.failure(bench.runtime.remove("d"))).code).toBe("controller_not_found");
});

test("what was deployed is there after a restart", async () => {
  const bench = await openBench();
  await bench.deploy("kept", answer(7));
  const again = createRuntime({
    root: bench.root,
    storage: bench.storage,
    log: createLogger({ sinks: [] }),
    metrics: createMetrics(),
    tracer: bench.tracer,
    clock: systemClock,
    ports: noPorts,
  });
  const { output } = await again.invoke("kept", { input: {}, requestId: "req_1", principal });
  expect(output).toBe(7);
  await again.close();
});

test("the same sources give the same digest", async () => {
  const [a, b] = await Promise.all([openBench(), openBench()]);
  const source = `import { reply } from "magic/sdk"; export default () => reply({ a: 1 });`;
  const [one, two] = await Promise.all([a, b].map((bench) => bench.runtime.build(bench.write("same", source))));
  expect(one?.digest).toBe(two?.digest);
  expect(one?.code).not.toContain(a.root);
});

test("a breaking change without a major version is refused with the path that breaks", async () => {
  const bench = await openBench();
  const shape = (required: string[]) => ({
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string" } },
    required,
  });
  await bench.deploy("c", answer(1), { input_schema: shape(["a"]) });
  const error = await bench.failure(
    bench.deploy("c", answer(2), { version: "1.1.0", input_schema: shape(["a", "b"]) }),
  );
  expect(error).toMatchObject({ code: "incompatible_version" });
  expect(error.problems[0]).toMatchObject({ pointer: "/input_schema/required" });
  expect(error.message).toContain("2.0.0");
  await bench.deploy("c", answer(2), { version: "2.0.0", input_schema: shape([]) });
  // 1.0.0 serves again, but callers of 2.0.0 keep what they were promised.
  await bench.runtime.rollback("c");
  const later = bench.deploy("c", answer(3), { version: "2.1.0", input_schema: shape(["a", "b"]) });
  expect(await bench.failure(later)).toMatchObject({ code: "incompatible_version" });
  await bench.deploy("c", answer(3), { version: "2.1.0", input_schema: shape([]) });
  // Of two at once the first counts.
  const built = [];
  for (const [version, required] of [
    ["2.2.0", []],
    ["2.3.0", ["a"]],
    ["2.4.0", []],
  ] as const)
    built.push(await bench.runtime.build(bench.write("c", answer(4), { version, input_schema: shape([...required]) })));
  const outcomes = await Promise.allSettled(built.map((one) => bench.runtime.deploy(one)));
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

const object = (properties: Record<string, unknown>, more = {}) => ({ type: "object", properties, ...more });
const text = { type: "string" };
const number = { type: "number" };
const tagged = (tag: string) => object({ tag: { const: tag } }, { required: ["tag"] });
const named = (x: object) => ({ $defs: { x }, ...object({ deep: object({ x: { $ref: "#/$defs/x" } }) }) });
const tree = (more: object) => object({ children: { type: "array", items: { $ref: "#" } }, ...more });
const whole = { type: "integer" };
const tuple = (...prefixItems: object[]) => ({ type: "array", prefixItems });
const anchored = (word: string, x: object) => ({
  [word]: "#x",
  $defs: { x: { [`$${word === "$ref" ? "a" : "dynamicA"}nchor`]: "x", ...x } },
});
const dictionary = (properties: object) => ({ type: "object", properties, additionalProperties: text });
const closed = { additionalProperties: false };
const sealed = { unevaluatedProperties: false };
const patterned = (more: object) => object({}, { patternProperties: { "^x": number }, ...more });
const withNamed = (key: string, x: object) => object({ [key]: x }, { patternProperties: { "^x": number }, ...closed });
const parts = (properties: object) => ({
  allOf: [{ $ref: "#/$defs/x" }],
  ...sealed,
  $defs: { x: object({ z: text, ...properties }) },
});
const spoken = (title: string) => ({
  oneOf: [object({ title: text }), object({ b: { ...text, title } })],
  ...{ patternProperties: { "^x": { description: title } }, not: { const: 1, $comment: title }, default: title },
});
const overlapping = (members: Record<string, unknown>) => ({
  ...object(members),
  oneOf: [object({ a: text }), object({ c: text })],
});
const sealedTuple = (...places: object[]) => ({ ...tuple(...places), unevaluatedItems: false });
function inputs(name: string, before: object, after: object, breaks: number): [string, object, object, number][] {
  return [[name, { input_schema: before }, { input_schema: after }, breaks]];
}

test.each([
  ["a wider input", { input_schema: { enum: ["a"] } }, { input_schema: { enum: ["a", "b"] } }, 0],
  ["a narrower input", { input_schema: { enum: ["a", "b"] } }, { input_schema: { enum: ["a"] } }, 1],
  [
    "a shorter text",
    { input_schema: { type: "string", maxLength: 9 } },
    { input_schema: { type: "string", maxLength: 8 } },
    1,
  ],
  ["integer becomes number", { input_schema: { type: "integer" } }, { input_schema: { type: "number" } }, 0],
  ["number becomes integer", { input_schema: { type: "number" } }, { input_schema: { type: "integer" } }, 1],
  [
    "a new optional input",
    { input_schema: object({}, { additionalProperties: false }) },
    { input_schema: object({ a: true }, { additionalProperties: false }) },
    0,
  ],
  [
    "a removed input",
    { input_schema: object({ a: {} }) },
    { input_schema: object({}, { additionalProperties: false }) },
    2,
  ],
  ["a new value in the output", { output_schema: { enum: ["a"] } }, { output_schema: { enum: ["a", "b"] } }, 1],
  ["fewer values in the output", { output_schema: { enum: ["a", "b"] } }, { output_schema: { enum: ["a"] } }, 0],
  [
    "an output member that may be missing now",
    { output_schema: object({ a: {} }, { required: ["a"] }) },
    { output_schema: object({ a: {} }) },
    1,
  ],
  [
    "a new output member",
    { output_schema: object({ a: {} }, { additionalProperties: false }) },
    { output_schema: object({ a: {}, b: {} }, { additionalProperties: false }) },
    0,
  ],
  ...inputs("nullable is taken away", { type: ["string", "null"] }, { type: "string" }, 1),
  ...inputs("nullable is given", { type: "string" }, { type: ["string", "null"] }, 0),
  ...inputs("nullable as a word of its own is taken away", { type: "string", nullable: true }, { type: "string" }, 1),
  ...inputs("values become a type that holds them", { enum: ["a", "b"] }, { type: "string", maxLength: 1 }, 0),
  ...inputs(
    "values become a type that holds some of them",
    { enum: ["a", "bb", 1] },
    { type: "string", maxLength: 1 },
    2,
  ),
  ...inputs("a type becomes values", { type: "string" }, { enum: ["a"] }, 1),
  ...inputs("a bound is closed", { exclusiveMinimum: 0 }, { minimum: 0 }, 0),
  ...inputs("a bound is opened", { minimum: 0 }, { exclusiveMinimum: 0 }, 1),
  ...inputs("another bound is lower", { minimum: 1 }, { exclusiveMinimum: 0 }, 0),
  ...inputs("a form is added", { anyOf: [text, number] }, { anyOf: [text, number, { type: "null" }] }, 0),
  ...inputs("a form is removed", { anyOf: [text, number] }, { anyOf: [text] }, 1),
  ...inputs("forms become a list of types", { anyOf: [text, number] }, { type: ["string", "number", "null"] }, 0),
  ...inputs("a distinct form is added to oneOf", { oneOf: [text] }, { oneOf: [text, number] }, 0),
  ...inputs(
    "a form that fits the same values is added to oneOf",
    { oneOf: [number] },
    { oneOf: [number, { type: "integer" }] },
    1,
  ),
  ...inputs(
    "a told-apart object is added to oneOf",
    { oneOf: [tagged("a")] },
    { oneOf: [tagged("a"), tagged("b")] },
    0,
  ),
  ...inputs(
    "allOf is written out",
    { allOf: [object({ a: text }), { required: ["a"] }] },
    object({ a: text }, { required: ["a"] }),
    0,
  ),
  ...inputs("allOf gets a part", { type: "object" }, { allOf: [{ type: "object" }, { required: ["a"] }] }, 1),
  ...inputs("a definition is narrowed behind an equal reference", named({ type: ["string", "null"] }), named(text), 1),
  ...inputs("a definition is widened behind an equal reference", named(text), named({ type: ["string", "null"] }), 0),
  ...inputs("a reference is written out", named(text), object({ deep: object({ x: text }) }), 0),
  ...inputs("a recursive schema gets an optional member", tree({}), tree({ note: text }), 0),
  ...inputs(
    "a recursive schema loses a value",
    tree({ kind: { enum: ["a", "b"] } }),
    tree({ kind: { enum: ["a"] } }),
    1,
  ),
  ...inputs("other members get another type", { additionalProperties: text }, { additionalProperties: number }, 1),
  ...inputs(
    "a member falls under the others' type",
    object({ a: number }),
    object({}, { additionalProperties: text }),
    2,
  ),
  ...inputs("a member is no longer required", object({ a: text }, { required: ["a"] }), object({ a: text }), 0),
  ...inputs("a word that cannot be compared appears", {}, { patternProperties: { "^x": text } }, 1),
  ...inputs("a member wants another, as earlier drafts said it", {}, { dependencies: { a: ["b"] } }, 1),
  ...inputs("a date may not be as early", { format: "date" }, { format: "date", formatMinimum: "2024-01-01" }, 1),
  ...inputs("a type is at the end of a long chain", {}, chain(30), 1),
  ...inputs("a definition is narrowed behind an anchor", anchored("$ref", number), anchored("$ref", whole), 1),
  ...inputs("and behind a dynamic one", anchored("$dynamicRef", number), anchored("$dynamicRef", whole), 1),
  ...inputs("an anchor becomes a pointer", anchored("$ref", number), { $ref: "#/$defs/x", $defs: { x: number } }, 0),
  ...inputs("a tuple's place is widened", tuple(whole, text), tuple(number, text), 0),
  ...inputs("a tuple's place is narrowed", tuple(number), tuple(whole), 1),
  ...inputs("a tuple's place falls under the others'", { ...tuple(number), items: text }, { items: text }, 1),
  ...inputs("words about a schema change", spoken("old"), spoken("new"), 0),
  ...inputs("a member is added beside forms that overlap", overlapping({}), overlapping({ b: text }), 0),
  ...inputs("a member is required beside them", overlapping({}), { ...overlapping({}), required: ["b"] }, 4),
  ...inputs("a finer step", { multipleOf: 4 }, { multipleOf: 2 }, 0),
  ...inputs("a coarser step", { multipleOf: 2 }, { multipleOf: 4 }, 1),
  ...inputs("a list of types becomes forms", { type: ["string", "null"] }, { anyOf: [text, { type: "null" }] }, 0),
  ...inputs("a type becomes its values", { type: ["boolean", "null"] }, { enum: [true, false, null] }, 0),
  ...inputs("a member of a map gets another type", dictionary({}), dictionary({ a: number }), 1),
  ...inputs("members with a pattern fall away", patterned(closed), object({}, closed), 1),
  ...inputs("members with a pattern fall under the others' type", patterned(closed), dictionary({}), 1),
  ...inputs("a member with a pattern gets a type of its own", patterned(closed), withNamed("xa", text), 1),
  ...inputs("a member falls away that nothing else evaluates", object({ a: text }, sealed), object({}, sealed), 1),
  ...inputs("a member is added to evaluated ones", object({}, sealed), object({ a: text }, sealed), 0),
  ...inputs("a member falls away from a part", parts({ a: text }), parts({}), 1),
  ...inputs("a member is added to a part", parts({}), parts({ a: text }), 0),
  ...inputs("a place falls away that nothing else evaluates", sealedTuple(text, text), sealedTuple(text), 1),
  ...inputs("none becomes at least one", { contains: text, minContains: 0 }, { contains: text }, 1),
  ...inputs("at least one is written out", { contains: text }, { contains: text, minContains: 1 }, 0),
  ...inputs(
    "what a reference names is no longer taken beside it",
    { $ref: "#/$defs/x", $defs: { x: object({ a: text }) } },
    { $ref: "#/$defs/x", ...closed, $defs: { x: object({ a: text }) } },
    2,
  ),
  [
    "a map gets a member of another type",
    { output_schema: dictionary({}) },
    { output_schema: dictionary({ n: number }) },
    1,
  ],
  ["a map's values may be anything now", { output_schema: dictionary({}) }, { output_schema: { type: "object" } }, 1],
  ["an output member is not described any more", { output_schema: object({ a: text }) }, { output_schema: {} }, 2],
  [
    "an output member that cannot come any more",
    { output_schema: object({ a: text }) },
    { output_schema: object({}, { additionalProperties: false }) },
    0,
  ],
  ["a new form in the output", { output_schema: { oneOf: [text] } }, { output_schema: { oneOf: [text, number] } }, 1],
  ["null is new in the output", { output_schema: text }, { output_schema: { type: ["string", "null"] } }, 1],
  [
    "a deep change",
    { input_schema: object({ a: object({ b: { type: "string" } }) }) },
    { input_schema: object({ a: object({ b: { type: "number" } }) }) },
    1,
  ],
] as [string, object, object, number][])("%s", (_name, before, after, breaks) => {
  const next = { ...contractOf("x", after as never), version: "1.1.0" };
  expect(findBreaks(contractOf("x", before as never), next)).toHaveLength(breaks);
});

test("definitions that double the work at each level are given up, as a break", () => {
  const schema = (longest: number) => {
    const $defs: Record<string, unknown> = { d40: { type: "string", maxLength: longest } };
    for (let at = 0; at < 40; at++) {
      const next = { $ref: `#/$defs/d${at + 1}` };
      $defs[`d${at}`] = { properties: { a: next, b: next } };
    }
    return { $defs, $ref: "#/$defs/d0" };
  };
  const contract = (longest: number) => contractOf("x", { version: "1.0.0", input_schema: schema(longest) } as never);
  expect(findBreaks(contract(10), contract(11))).toMatchObject([{ pointer: "/input_schema" }]);
});

function chain(length: number): object {
  const links = Array.from({ length }, (_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]);
  return { $ref: "#/$defs/d0", $defs: { ...Object.fromEntries(links), [`d${length}`]: text } };
}
