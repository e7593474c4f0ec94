// Requests made from the document's own schemas, with mutations; a canary after each batch.
import fc from "fast-check";
import { conformance } from "./conformance.ts";
import type { Answer, TestDaemon } from "./daemon.ts";
import { type Operation, operationsOf } from "./operations.ts";

export interface FuzzOutcome {
  readonly requests: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Answers of 500 and above, answers that the document does not describe, canaries that failed. */
  readonly faults: readonly string[];
}

type Schema = Readonly<Record<string, unknown>>;

/** Values that mostly fit the schema and sometimes do not. */
function valueFor(schema: Schema | undefined, depth = 0): fc.Arbitrary<unknown> {
  if (!schema || depth > 4) return fc.jsonValue({ maxDepth: 2 });
  return fc.oneof({ weight: 9, arbitrary: fitting(schema, depth) }, { weight: 1, arbitrary: hostile });
}

const hostile = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(
    null,
    -1,
    1e308,
    "",
    "\u0000",
    "\ud800",
    "x".repeat(5_000),
    [],
    {},
    true,
    "__proto__",
    ["$", "{env:HOME}"].join(""),
    "' or 1=1",
  ),
  fc.string({ unit: "binary", maxLength: 50 }),
);

function fitting(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const any = (schema["anyOf"] ?? schema["oneOf"]) as Schema[] | undefined;
  if (any) return fc.oneof(...any.map((one) => valueFor(one, depth + 1)));
  if (schema["const"] !== undefined) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...schema["enum"]);
  const examples = schema["examples"] as unknown[] | undefined;
  switch (schema["type"]) {
    case "string":
      return fc.oneof(fc.constantFrom(...(examples ?? ["a"])), fc.string({ maxLength: 40 }), fc.webUrl());
    case "integer":
      return fc.oneof(
        fc.integer({ min: Number(schema["minimum"] ?? -5), max: Number(schema["maximum"] ?? 5_000) }),
        fc.integer(),
      );
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(valueFor(schema["items"] as Schema, depth + 1), { maxLength: 4 });
    case "object": {
      const properties = (schema["properties"] ?? {}) as Record<string, Schema>;
      const members = Object.fromEntries(
        Object.entries(properties).map(([name, one]) => [name, valueFor(one, depth + 1)]),
      );
      const required = (schema["required"] ?? []) as string[];
      return fc.record(members, { requiredKeys: required.filter((name) => name in members) });
    }
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

// `.` and `..` are taken out of a URL before it is sent.
function isSegment(text: string): boolean {
  return !/^\.{1,2}$/.test(text);
}

interface FuzzRequest {
  readonly operation: Operation;
  readonly path: string;
  readonly body: unknown;
  readonly headers: Record<string, string>;
}

function requestOf(operation: Operation, ids: readonly string[]): fc.Arbitrary<FuzzRequest> {
  const parameter = fc.oneof(
    fc.constantFrom(...ids, "\0", "a\0b"),
    fc.string({ minLength: 1, maxLength: 30 }).filter(isSegment),
  );
  const query = fc.record(
    Object.fromEntries(operation.query.map(({ name, schema }) => [name, valueFor(schema as Schema)])),
    {
      requiredKeys: [],
    },
  );
  return fc.record({
    operation: fc.constant(operation),
    path: fc.tuple(fc.array(parameter, { minLength: 3, maxLength: 3 }), query).map(([values, members]) => {
      let path = operation.path;
      for (const [index, name] of operation.parameters.entries())
        path = path.replace(`{${name}}`, encodeURIComponent((values[index] ?? "x").toWellFormed()));
      const search = Object.entries(members).map(
        ([name, value]) => `${name}=${encodeURIComponent(String(value).toWellFormed())}`,
      );
      return search.length > 0 ? `${path}?${search.join("&")}` : path;
    }),
    body: operation.body
      ? fc.oneof(
          { weight: 8, arbitrary: valueFor(operation.body as Schema) },
          {
            weight: 1,
            arbitrary: fc.constantFrom("{", "[1,", '"', "nul", '{"a":1}}', '{"__proto__":{"x":1}}', "[".repeat(2_000)),
          },
        )
      : fc.constant(undefined),
    headers: fc.oneof(
      { weight: 6, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: fc.record({ "idempotency-key": fc.constantFrom("k1", "k2", "no good") }) },
      {
        weight: 1,
        arbitrary: fc.record({
          "content-type": fc.constantFrom("text/plain", "application/xml", "application/json; charset=latin1"),
        }),
      },
      { weight: 1, arbitrary: fc.record({ accept: fc.constantFrom("text/html", "*/*", "application/json;q=0") }) },
    ),
  });
}

/** What changes the daemon itself is left out: it has tests of its own. */
const left = /^\/v1\/dev/;

export async function fuzz(
  daemon: TestDaemon,
  options: { token: string; requests: number; seed: number; batch: number; ids: readonly string[] },
): Promise<FuzzOutcome> {
  const { token, requests, seed, batch, ids } = options;
  const document = (await daemon.call("GET", "/openapi.json", { token: null })).body;
  const misfit = conformance(document);
  const operations = operationsOf(document).filter(({ path }) => !left.test(path));
  const all = fc.sample(fc.oneof(...operations.map((operation) => requestOf(operation, ids))), {
    seed,
    numRuns: requests,
  });
  const faults: string[] = [];
  const statuses: Record<string, number> = {};
  const send = async ({ operation, path, body, headers }: FuzzRequest) => {
    const where = `${operation.method} ${path.slice(0, 200)} ${JSON.stringify(body)?.slice(0, 300)}`;
    const answer: Answer | undefined = await daemon
      .call(operation.method, path, { token, body, headers: body === undefined ? {} : headers })
      .catch((error: Error) => {
        faults.push(`${where}: ${error.message} ${String(error.cause)}`);
        return undefined;
      });
    if (!answer) return;
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    if (answer.status >= 500) faults.push(`${where}: ${answer.status} ${answer.text.slice(0, 300)}`);
    const wrong = misfit(operation, answer);
    if (wrong !== undefined) faults.push(`${where}: ${wrong}`);
    if (answer.status >= 400 && answer.body === undefined && operation.method !== "HEAD")
      faults.push(`${where}: no JSON`);
  };
  for (let start = 0; start < all.length; start += batch) {
    await Promise.all(all.slice(start, start + batch).map(send));
    const canary = await daemon.call("GET", "/v1/health", { token: null });
    if (canary.status !== 200) faults.push(`canary after ${start}: ${canary.text.slice(0, 200)}`);
  }
  return { requests: all.length, statuses, faults };
}
