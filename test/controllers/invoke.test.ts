import { existsSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { digestOf } from "#daemon/controllers/bundle/digest.ts";
import { openAdmission } from "#daemon/controllers/serving/admission.ts";
import { openNestedCalls } from "#daemon/controllers/serving/nested.ts";
import { startWatchdog } from "#daemon/controllers/serving/watchdog.ts";
import { within } from "../patience.ts";
import { openBench, principal, settle } from "./harness.ts";

const bench = await openBench();

const handler = `import { defineHandler, reply, NotFound, HandlerError } from "magic/sdk";
   let calls = 0;
   export default defineHandler(async (request) => {
     const { mode } = request.input;
     calls++;
     if (mode === "count") return { calls };
     if (mode === "throw") throw new TypeError("no such field");
     if (mode === "missing") throw new NotFound("no ticket 7");
     if (mode === "own") throw new HandlerError("handler_error", "as the caller reads it");
     if (mode === "text") throw "only text";
     if (mode === "object") throw { a: 1 };
     if (mode === "nothing") throw undefined;
     if (mode === "empty") throw new Error();
     if (mode === "long") throw new Error("x".repeat(1e6));
     if (mode === "circle") { const error = new Error("round"); error.cause = error; error.self = error; throw error; }
     if (mode === "trap") throw new Proxy({}, { get() { throw new Error("trap"); } });
     if (mode === "getter") throw { get message() { throw 1; } };
     if (mode === "later") { setTimeout(() => { throw new Error("after the answer"); }, 1); return {}; }
     if (mode === "rejection") { Promise.reject(new Error("nobody's")); return {}; }
     if (mode === "forged") throw new HandlerError("invalid_key", "not yours to say");
     if (mode === "bad") return reply({ label: 7 });
     if (mode === "bigint") return { a: 1n };
     if (mode === "huge") return "x".repeat(9 * 2 ** 20);
     if (mode === "spin") for (;;);
     if (mode === "async spin") for (;;) await null;
     if (mode === "wait") { await new Promise((r) => setTimeout(r, request.input.ms)); return reply({ label: "waited" }); }
     if (mode === "signal") return await new Promise((r) => request.signal.addEventListener("abort", () => r({ label: "aborted" })));
     if (mode === "console") { console.log("said %s", "hello", { a: 1 }); console.error("worse"); request.log.warn("typed", { n: 1 }); }
     if (mode === "traced") { const error = new Error("traced"); console.error(error); request.log.error("kept", { stack: error.stack }); request.log.error("held", { error: Object.assign(error, { code: "E_TRACED" }), big: 1n, deep: [{ error, big: 2n }] }); request.log.error(error, { n: 1 }); request.log.error(error, error); request.log.error(error, "words"); error.self = error; request.log.error("endless", { error }); }
     if (mode === "denied") return await request.llm.chat({ messages: [] });
     if (mode === "fetch") return await fetch("https://example.com/");
     return reply({ label: "question", id: request.id, controller: request.controller, left: request.deadline - Date.now() });
   });`;
const contract = {
  input_schema: {
    type: "object",
    properties: { mode: { type: "string" }, ms: { type: "number" } },
    additionalProperties: false,
  },
  output_schema: { type: ["object", "string"], properties: { label: { type: "string" } } },
};
const HASTE_MS = 1_000;
await bench.deploy("triage", handler, { ...contract, limits: { timeout_ms: 20_000, concurrency: 4 } });
await bench.deploy("hasty", handler, { ...contract, limits: { timeout_ms: HASTE_MS, concurrency: 4 } });

test("a handler gets its input, its id and its deadline, and its reply is the output", async () => {
  const output = (await bench.invoke("triage")) as Record<string, unknown>;
  expect(output).toMatchObject({ label: "question", controller: { name: "triage", version: "1.0.0" } });
  expect(output["id"]).toMatch(/^req_/);
  expect(output["left"]).toBeGreaterThan(1_000);
});

test("what a handler's completions cost together is exact", async () => {
  const body = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost_usd: 0.0000025 } };
  const { deploy, runtime } = await openBench({
    ports: { llm: { chat: async () => ({ status: 200, headers: {}, body }) } },
    zygotes: 1,
  });
  const talkative = `export default async ({ llm }) => {
    for (let n = 0; n < 3; n++) await llm.chat({ messages: [] });
    return {};
  };`;
  await deploy("talkative", talkative, { capabilities: ["llm:chat"] });
  const { usage } = await runtime.invoke("talkative", { input: {}, requestId: "req_1", principal });
  expect(usage).toMatchObject({ llm_calls: 3, cost_usd: 0.0000075 });
});

test("the series of a controller say how long its phases took and what its cells hold", async () => {
  const sample = async (series: string) => {
    const { text } = await bench.metrics.render();
    return Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.split(" ")
        .at(-1),
    );
  };
  const before = await sample('magic_controller_seconds_count{controller="triage",phase="run"}');
  await bench.invoke("triage");
  expect(await sample('magic_controller_seconds_count{controller="triage",phase="run"}')).toBe(before + 1);
  expect(await sample('magic_controller_memory_bytes{controller="triage"}')).toBeGreaterThan(10 * 2 ** 20);
});

test("an input that does not fit is refused with every problem before the handler runs", async () => {
  const { calls } = (await bench.invoke("triage", { mode: "count" })) as { calls: number };
  const error = await bench.failure(bench.invoke("triage", { mode: 7, more: 1 }));
  expect(error).toMatchObject({ code: "input_invalid" });
  expect(error.problems.map((problem) => problem.pointer).sort()).toEqual(["/mode", "/more"]);
  expect(await bench.invoke("triage", { mode: "count" })).toEqual({ calls: calls + 1 });
});

test("members called like what every object inherits are there only where they were sent", async () => {
  const named = { type: "object", properties: { constructor: { type: "string" }, valueOf: { type: "number" } } };
  await bench.deploy("names", "export default (request) => request.input;", {
    input_schema: { ...named, required: ["constructor"] },
    output_schema: named,
  });
  expect(await bench.outcome("names", {})).toBe("input_invalid");
  expect(await bench.outcome("names", { constructor: "x" })).toBe("ok");
  expect(await bench.outcome("names", { constructor: 1 })).toBe("input_invalid");
});

test("formats are checked by their grammars, the international ones too", async () => {
  const formats = ["idn-email", "idn-hostname", "iri", "iri-reference", "uuid", "duration", "time", "date-time"];
  const properties = Object.fromEntries(formats.map((format) => [format, { type: "string", format }]));
  await bench.deploy("world", "export default (request) => request.input;", {
    input_schema: { type: "object", properties },
    output_schema: true,
  });
  const outcome = (format: string, value: string) => bench.outcome("world", { [format]: value });
  for (const [format, good, bad] of [
    ["idn-email", "jürgen@münchen.example", ["2962", "a@b@", "x y@ü.example", "a@ü..example"]],
    ["idn-hostname", "例え.テスト", ["", ".", "a b", "-ü", "ü".repeat(70), "a/ü"]],
    ["iri", "http://ƒøø.ßår/?∂éœ=πîx#πîüx", ["/abc", "âππ", "http://a b/", "\ud800"]],
    ["iri-reference", "/âππ", ["\\\\WINDOWS\\filëßåré", "#ƒräg\\mênt"]],
    ["uuid", "2EB8AA08-aa98-11ea-b4aa-73b441d16380", ["urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380", ""]],
    ["duration", "P1Y2M3DT4H5M6S", ["P1Y2D", "PT1H2S", "P", "P1YT", "P1W1D"]],
    ["time", "05:29:60.5+05:30", ["05:29:60Z", "12:00:00", "12:00:00+05", "12:00:00+0530", "24:00:00Z"]],
    [
      "date-time",
      "2026-01-02T03:04:59.999999999999999z",
      ["2026-02-29T00:00:00Z", "2026-01-02T03:04:05+05", "2026-01-02\n03:04:05Z", "2026-01-02"],
    ],
  ] as const) {
    expect(await outcome(format, good), good).toBe("ok");
    for (const value of bad) expect(await outcome(format, value), `${format} ${value}`).toBe("input_invalid");
  }
});

test.each([
  ["bad", "output_invalid"],
  ["bigint", "output_invalid"],
  ["huge", "limit_exceeded"],
  ["throw", "handler_error"],
  ["missing", "not_found"],
  ["forged", "handler_error"],
  ["denied", "capability_denied"],
  ["fetch", "capability_denied"],
])("a handler that answers %s is %s", async (mode, code) => {
  expect(await bench.outcome("triage", { mode })).toBe(code);
});

test.each([
  ["throw", /^the handler threw TypeError: no such field$/],
  ["own", /^as the caller reads it$/],
  ["text", /^the handler threw Error: thrown: only text$/],
  ["object", /^the handler threw Error: thrown: {"a":1}$/],
  ["nothing", /^the handler threw Error: thrown: undefined$/],
  ["empty", /^the handler threw Error$/],
  ["long", /^the handler threw Error: x{8192}…$/],
  ["circle", /^the handler threw Error: round$/],
  ["trap", /cannot be read/],
  ["getter", /cannot be read/],
])("a handler that throws (%s) is told apart in the error's text", async (mode, text) => {
  const error = await bench.failure(bench.invoke("triage", { mode }));
  expect(error.code).toBe("handler_error");
  expect(error.message).toMatch(text);
});

test.each([
  ["later", "uncaught exception: Error: after the answer"],
  ["rejection", "unhandled rejection: Error: nobody's"],
])("an error that no invocation caught (%s) is in the log, and the cell goes on", async (mode, text) => {
  expect(await bench.outcome("triage", { mode })).toBe("ok");
  expect(await settle(() => bench.logs.some((line) => line["event"] === text))).toBe(true);
  expect(await bench.outcome("triage")).toBe("ok");
});

test("a refused capability names the line to add to the contract", async () => {
  const error = await bench.failure(bench.invoke("triage", { mode: "denied" }));
  expect(error.message).toContain("capabilities: [llm:chat]");
  expect(error.extra).toEqual({ add: "capabilities: [llm:chat]" });
  const fetching = await bench.failure(bench.invoke("triage", { mode: "fetch" }));
  expect(fetching.message).toContain(
    "capabilities: [http:egress] and scopes: { http: [{ host: example.com, port: 443, methods: [GET] }] }",
  );
});

test("a deployed source map that says nothing, or more than anybody reads, fails no call and holds up none", async () => {
  const artifact = await bench.runtime.build(
    bench.write("mapped", `export default () => { throw new Error("mine"); };`),
  );
  const endless = { version: 3, sources: ["a.ts"], names: [], mappings: `AAAA${";AACA".repeat(4_000_000)}` };
  const maps = [
    { version: 3, sources: [null], names: [], mappings: "AAAA" },
    { version: 3, sources: [5], names: [], mappings: "gggg".repeat(1_000) },
    endless,
    { ...endless, mappings: "", sections: [{ offset: { line: 0, column: 0 }, map: endless }] },
    null,
  ];
  for (const [at, map] of maps.entries()) {
    const contract = { ...artifact.contract, version: `1.0.${at}` };
    const digest = digestOf(contract, artifact.code);
    await bench.runtime.deploy({ ...artifact, contract, digest, map: JSON.stringify(map) });
    const before = process.threadCpuUsage();
    expect(await bench.failure(bench.invoke("mapped"))).toMatchObject({
      code: "handler_error",
      cause: { message: "mine" },
    });
    const { user, system } = process.threadCpuUsage(before);
    // What would read all of the endless one takes twice that.
    expect((user + system) / 1_000).toBeLessThan(400);
  }
});

test("a cell whose own end was provoked is told by the error that ended it", async () => {
  await bench.deploy(
    "ending",
    `export default async () => {
       process.removeAllListeners("uncaughtException");
       setTimeout(() => { throw new TypeError("boom, by a timer"); }, 5);
       await new Promise(() => {});
     };`,
  );
  expect(await bench.failure(bench.invoke("ending"))).toMatchObject({
    code: "handler_error",
    message: "the cell died: the process ended: exit code 1: TypeError: boom, by a timer",
  });
});

test("a stack trace shows the user's file and line", async () => {
  await bench.outcome("triage", { mode: "throw" });
  const line = bench.logs.findLast((one) => one["event"] === "controller.invoked") as { error: { stack: string } };
  expect(line.error.stack).toContain("controllers/triage/handler.ts:7:");
  expect(line.error.stack).not.toContain("cell-zygote");
  // And where a handler logs one itself.
  bench.logs.length = 0;
  await bench.invoke("triage", { mode: "traced" });
  const [logged, kept, held, alone, both, words, endless] = bench.logs as {
    event: string;
    fields: Record<string, unknown>;
  }[];
  const error = held?.fields["error"] as { stack: string };
  expect(held?.fields["deep"]).toEqual([{ error, big: "2" }]);
  expect(held?.fields).toMatchObject({ error: { name: "Error", message: "traced", code: "E_TRACED" }, big: "1" });
  expect(alone).toMatchObject({ event: "Error: traced", fields: { error: { code: "E_TRACED" }, n: 1 } });
  expect(both?.fields).toMatchObject({ error: { code: "E_TRACED" }, fields: { code: "E_TRACED" } });
  expect(words?.fields).toMatchObject({ error: { code: "E_TRACED" }, fields: "words" });
  expect(endless?.fields).toEqual({ fields_unreadable: expect.stringContaining("circular") });
  for (const stack of [logged?.event, kept?.fields["stack"], error.stack]) {
    expect(stack).toMatch(/^Error: traced\n +at .*controllers\/triage\/handler\.ts:\d+:/);
    expect(stack).not.toContain("file:");
  }
});

test("console and log lines carry the request's id and the level in force is in every invocation's line", async () => {
  bench.logs.length = 0;
  await bench.invoke("triage", { mode: "console" });
  const [said, worse, typed, invoked] = bench.logs;
  expect(said).toMatchObject({ event: "said hello { a: 1 }", level: "info", controller: "triage" });
  expect(worse).toMatchObject({ event: "worse", level: "error" });
  expect(typed).toMatchObject({ event: "typed", level: "warn", fields: { n: 1 } });
  expect(said?.["request_id"]).toBe(invoked?.["request_id"]);
  expect(invoked).toMatchObject({
    event: "controller.invoked",
    outcome: "ok",
    isolation: expect.stringMatching(/strong|reduced|unproven/),
  });
});

test("what iterates and has no JSON is refused as an output, and not answered as {}", async () => {
  const outputs = {
    generator: "(function* () { yield 1 })()",
    "async generator": "(async function* () { yield 1 })()",
    stream: "new Blob(['x']).stream()",
    map: "new Map([[1, 2]])",
    empty: "{}",
    list: "[]",
  };
  const entries = Object.entries(outputs).map(([name, made]) => `${JSON.stringify(name)}: () => (${made})`);
  await bench.deploy("iterates", `export default ({ input }) => ({ ${entries.join(", ")} })[input]();`);
  for (const name of Object.keys(outputs).slice(0, 4)) {
    const { code, message } = await bench.failure(bench.invoke("iterates", name));
    expect([name, code, message]).toEqual([name, "output_invalid", expect.stringContaining("Array.fromAsync")]);
  }
  expect([await bench.invoke("iterates", "empty"), await bench.invoke("iterates", "list")]).toEqual([{}, []]);
});

test("what a call still says when it was answered carries its request's id", async () => {
  const handler = `export default ({ input, log }) => {
    setTimeout(() => { log.info("last words", { n: 1 }); console.log("late words"); Promise.reject(new Error("nobody's")); throw new Error("late"); }, 20);
    return "answered";
  };`;
  await bench.deploy("late", handler);
  bench.logs.length = 0;
  await bench.invoke("late", {});
  await vi.waitFor(() => expect(bench.logs).toHaveLength(5), { timeout: 10_000 });
  const invoked = bench.logs.find(({ event }) => event === "controller.invoked");
  const said = bench.logs.filter(({ event }) => event !== "controller.invoked");
  expect(said[0]).toMatchObject({ fields: { n: 1 } });
  expect(said.map(({ event }) => event)).toEqual([
    "last words",
    "late words",
    "uncaught exception: Error: late",
    "unhandled rejection: Error: nobody's",
  ]);
  for (const line of said) {
    expect(line).toMatchObject({ controller: "late", request_id: invoked?.["request_id"] });
    expect(line["fields"] ?? {}).not.toHaveProperty("request_id");
  }
});

test("what nests without end is told as that: in fields of the log, and where a schema would follow it", async () => {
  const tree = { type: "array", items: { $ref: "#" } };
  const handler = `export default ({ log }) => { let deep = []; for (let n = 0; n < 100_000; n++) deep = [deep]; log.info("deep", { deep }); return deep; };`;
  await bench.deploy("nested", handler, { output_schema: tree });
  bench.logs.length = 0;
  expect(await bench.outcome("nested")).toBe("output_invalid");
  expect(bench.logs[0]).toMatchObject({
    event: "deep",
    fields: { fields_unreadable: "they nest deeper than 100 levels" },
  });
});

test.each(["spin", "async spin", "wait"])(
  "the caller of a handler that would %s for ever is answered at the deadline",
  async (mode) => {
    await hastyServes();
    const began = performance.now();
    expect(await bench.outcome("hasty", { mode, ms: 600_000 })).toBe("timeout");
    const late = performance.now() - began - HASTE_MS;
    expect(late).toBeGreaterThan(-5);
    // 50 ms is the figure on an idle machine; a busy one delays the timer itself.
    expect(late).toBeLessThan(within(2_000));
    await hastyServes();
  },
);

// On a busy machine a new cell's first call may take its whole second.
const hastyServes = () => expect.poll(() => bench.outcome("hasty"), { timeout: 10_000 }).toBe("ok");

test("a call past its deadline leaves its neighbours alone while the loop turns", async () => {
  const slow = bench.outcome("hasty", { mode: "wait", ms: 600_000 });
  await new Promise((done) => setTimeout(done, 700));
  const neighbour = bench.outcome("hasty", { mode: "wait", ms: 500 });
  expect(await slow).toBe("timeout");
  expect(await neighbour).toBe("ok");
});

test("a handler's signal is aborted when its caller leaves", async () => {
  const left = new AbortController();
  const call = bench.invoke("triage", { mode: "signal" }, { signal: left.signal }).catch((error) => error.code);
  await new Promise((done) => setTimeout(done, 30));
  left.abort();
  expect(await call).toBe("client_closed");
  expect(await bench.outcome("triage")).toBe("ok");
});

test.each([
  ["a deadline has passed", { late: 1, overdue: 1 }, 500, true],
  ["a caller has left, and nobody else waits", { calls: 0, late: 1, overdue: 0 }, 500, true],
  ["a caller has left, and others wait", { late: 1, overdue: 0 }, 500, false],
  ["a caller has left, for seconds", { late: 1, overdue: 0 }, 5_500, true],
  ["its callers wait", { late: 0, overdue: 0 }, 60_000, false],
])("a loop that does not yield where %s", (_where, calls, silentMs, ended) => {
  vi.useFakeTimers();
  try {
    const kill = vi.fn();
    const cell = {
      pid: process.pid,
      gone: new Promise(() => {}),
      silence: () => silentMs,
      spinning: () => 0,
      ping() {},
      stepBack() {},
      kill,
    };
    const watchdog = startWatchdog({ idleMs: 60_000, most: 9, onIdle() {} });
    watchdog.watch({ cell, calls: 1, ...calls, onGreed() {} } as never);
    vi.advanceTimersByTime(300);
    watchdog.stop();
    expect(kill).toHaveBeenCalledTimes(ended ? 1 : 0);
  } finally {
    vi.useRealTimers();
  }
});

test.each(["invocation", "process"] as const)(
  "a cell that takes no more calls ends where its last caller leaves (isolation: %s)",
  async (isolation) => {
    const name = `left-${isolation}`;
    const handler = `export default async ({ input, log }) => { log.info("${name}", { pid: process.pid }); await new Promise((done) => setTimeout(done, input.ms)); };`;
    await bench.deploy(name, handler, { isolation, limits: { timeout_ms: 300 } });
    // The first passes its deadline and so retires the cell that they share.
    const late = isolation === "process" ? bench.outcome(name, { ms: 2_000 }) : null;
    if (late) await new Promise((done) => setTimeout(done, 150));
    const leaving = new AbortController();
    const call = bench.invoke(name, { ms: 250 }, { signal: leaving.signal }).catch(() => {});
    const lines = () => bench.logs.filter(({ event }) => event === name);
    expect(await settle(() => lines().length === (late ? 2 : 1))).toBe(true);
    expect(await late).toBe(late && "timeout");
    leaving.abort();
    await call;
    const [pid] = lines().map(({ fields }) => (fields as { pid: number }).pid);
    expect(await settle(() => !existsSync(`/proc/${pid}`))).toBe(true);
  },
);

test("what a handler keeps until memory is refused goes with its cell: the next call has a new one", async () => {
  const handler = "const kept = []; export default () => kept.push(new Uint8Array(32 * 2 ** 20).fill(1));";
  await bench.deploy("keeper", handler, { limits: { memory_mb: 48 } });
  expect(await bench.invoke("keeper")).toBe(1);
  expect(await bench.outcome("keeper")).toBe("memory_exceeded");
  expect(await bench.invoke("keeper")).toBe(1);
});

test("a nested call has no later deadline than the call around it", async () => {
  await bench.deploy("inner", "export default ({ deadline }) => deadline;");
  const outer =
    "export default async ({ deadline, controllers }) => [deadline, await controllers.invoke('inner', {})];";
  const contract = { capabilities: ["controller:invoke" as const], limits: { timeout_ms: 5_000 } };
  await bench.deploy("outer", outer, contract);
  const [around, nested] = (await bench.invoke("outer")) as number[];
  expect(nested).toBe(around);
});

test("more calls than the contract allows wait, and more than may wait are refused as overloaded", async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 90 }, () => bench.outcome("triage", { mode: "wait", ms: 5 })),
  );
  expect(new Set(outcomes)).toEqual(new Set(["ok", "overloaded"]));
  expect(outcomes.filter((one) => one === "ok").length).toBeGreaterThanOrEqual(68);
});

test.each([1, 2, 3])(
  "a controller that invokes itself beyond its places (%i) is refused, not kept waiting",
  async (places) => {
    const name = `self${places}`;
    const handler = `export default async ({ input: { n }, controllers }) => n === 0 ? "done" : await controllers.invoke("${name}", { n: n - 1 }).catch(({ code }) => code);`;
    await bench.deploy(name, handler, { capabilities: ["controller:invoke"], limits: { concurrency: places } });
    expect(await bench.invoke(name, { n: places - 1 })).toBe("done");
    expect(await bench.invoke(name, { n: places })).toBe("overloaded");
    const many = await Promise.all(Array.from({ length: 4 }, () => bench.invoke(name, { n: 1 })));
    expect(["done", "overloaded"]).toEqual(expect.arrayContaining(many));
  },
);

test("controllers that invoke each other and are full are refused, not kept waiting; who waits for others goes on", async () => {
  const handler = `export default async ({ input: { path }, controllers }) => {
    await new Promise((done) => setTimeout(done, 20));
    return path.length === 0 ? "done" : await controllers.invoke(path[0], { path: path.slice(1) }).catch(({ code }) => code);
  };`;
  for (const name of ["ping", "pong", "other"])
    await bench.deploy(name, handler, { capabilities: ["controller:invoke"], limits: { concurrency: 1 } });
  const call = (name: string, ...path: string[]) => bench.invoke(name, { path });
  const began = performance.now();
  expect((await Promise.all([call("ping", "pong", "ping"), call("other", "pong")])).sort()).toEqual([
    "done",
    "overloaded",
  ]);
  expect((await Promise.all([call("ping", "pong"), call("pong", "other"), call("other", "ping")])).sort()).toEqual([
    ...["done", "done", "overloaded"],
  ]);
  expect(await Promise.all([call("ping", "pong"), call("pong", "other"), call("other")])).toEqual([
    "done",
    "done",
    "done",
  ]);
  expect(performance.now() - began).toBeLessThan(within(4_000));
});

test("thousands of calls that wait inside of others are not gone through for each that comes", async () => {
  const nested = openNestedCalls();
  const full = openAdmission("full", 1_024, 16_384, nested);
  const outer = { place: openAdmission("outer", 1, 1, nested), within: undefined };
  for (let n = 0; n < 1_024; n++) full.tryEnter();
  const began = performance.now();
  const calls = Array.from({ length: 16_384 }, () => full.wait(30_000, undefined, outer));
  const took = performance.now() - began;
  for (let n = 0; n < 1_024 + 16_384; n++) full.leave();
  await Promise.all(calls);
  expect(full).toMatchObject({ active: 0, waiting: 0 });
  expect(took).toBeLessThan(within(1_000));
});

test("a handler that goes on without its caller waits for nobody's place, and is in nobody's way", async () => {
  const handler = `export default async ({ input: { ms, next }, controllers }) => {
    await new Promise((done) => setTimeout(done, ms));
    return next ? await controllers.invoke(next, { ms: 0 }).then(() => "done", ({ code }) => code) : "done";
  };`;
  for (const name of ["here", "there"])
    await bench.deploy(name, handler, { capabilities: ["controller:invoke"], limits: { concurrency: 1 } });
  await Promise.all([bench.invoke("here", { ms: 0 }), bench.invoke("there", { ms: 0 })]);
  const leaving = new AbortController();
  const left = bench.failure(bench.invoke("here", { ms: 60, next: "there" }, { signal: leaving.signal }));
  const calling = bench.invoke("there", { ms: 150, next: "here" });
  await new Promise((done) => setTimeout(done, 20));
  leaving.abort();
  expect((await left).code).toBe("client_closed");
  const [other, answer] = await Promise.all([bench.invoke("here", { ms: 250 }), calling]);
  expect([other, answer]).toEqual(["done", "done"]);
});

test("isolation: invocation gives each call a process of its own", async () => {
  await bench.deploy("alone", `let n = 0; export default () => ({ n: ++n });`, { isolation: "invocation" });
  bench.logs.length = 0;
  expect(await bench.invoke("alone")).toEqual({ n: 1 });
  expect(await bench.invoke("alone")).toEqual({ n: 1 });
  // Each ended with its call, as was meant: nobody is warned of it.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(bench.logs.map(({ event }) => event)).not.toContain("controller.cell_ended");
});

test("a controller that keeps dying rests behind a breaker, and is told so", async () => {
  await bench.deploy(
    "dying",
    `export default (request) => { if (request.input.die) { const a = []; for (;;) a.push(new Array(1e6).fill(a.length)); } return {}; };`,
    {
      limits: { memory_mb: 32, timeout_ms: 25_000 },
    },
  );
  const outcomes: string[] = [];
  for (let i = 0; i < 7; i++) outcomes.push(await bench.outcome("dying", { die: true }));
  expect(outcomes.slice(0, 5)).toEqual(Array(5).fill("memory_exceeded"));
  expect(outcomes.at(-1)).toBe("overloaded");
});

test("a handler that spins after it has answered is ended from outside, and the calls that came to it run elsewhere", async () => {
  const handler = `export default ({ input }) => { if (input.spin) setTimeout(() => { for (;;); }, 30); return { pid: 1 }; };`;
  await bench.deploy("lingering", handler, { limits: { timeout_ms: 8_000 } });
  const spins = async (forMs: number): Promise<void> => {
    await bench.invoke("lingering", { spin: true });
    await new Promise((done) => setTimeout(done, 30 + forMs));
  };
  const ended = () =>
    bench.logs.filter((line) => line["event"] === "controller.cell_ended" && line["controller"] === "lingering").length;
  await spins(100);
  expect(await Promise.all([1, 2, 3].map(() => bench.outcome("lingering")))).toEqual(["ok", "ok", "ok"]);
  expect(ended()).toBe(1);
  await spins(1_000);
  expect(await bench.outcome("lingering")).toBe("ok");
  expect(await settle(() => ended() === 2)).toBe(true);
});

test("a call that came to a cell which ends before it reads the call runs in another one", async () => {
  await bench.deploy("shortlived", "export default () => process.pid;");
  const pid = (await bench.invoke("shortlived")) as number;
  process.kill(pid, "SIGSTOP");
  // By then it has been asked whether its loop turns.
  await new Promise((done) => setTimeout(done, 50));
  const calls = [1, 2, 3].map(() => bench.invoke("shortlived"));
  process.kill(pid, "SIGKILL");
  const pids = new Set(await Promise.all(calls));
  expect(pids.size).toBe(1);
  expect(pids).not.toContain(pid);
});

test("a daemon that was late itself takes no cell for one that spins", async () => {
  await bench.deploy("steady", "export default () => process.pid;");
  const pids = new Set<unknown>();
  for (let round = 0; round < 4; round++) {
    pids.add(await bench.invoke("steady"));
    // In the turn in which the cell may just have been asked whether its loop turns.
    const later = await new Promise<Promise<unknown>>((done) =>
      setTimeout(() => {
        for (const end = performance.now() + 250; performance.now() < end; );
        done(bench.invoke("steady"));
      }, 10),
    );
    pids.add(await later);
  }
  expect(pids.size).toBe(1);
});

test("a module that does not load is refused at deploy with its line", async () => {
  const error = await bench
    .deploy("broken", `const x: any = null;\nx.y.z();\nexport default () => 1;`)
    .catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "build_failed" });
  expect(error.message).toContain("controllers/broken/handler.ts:2:");
});

test("a module that never ends loading is refused at deploy, by its time, and is no overload", async () => {
  const bench = await openBench({ loadWithinMs: 1_500 });
  const error = await bench.deploy("endless", "for (;;);\nexport default () => 1;").catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "load_timeout", message: expect.stringContaining("endless@1.0.0") });
  expect(error.message).toContain("within 1500 ms");
});

test("a hundred thousand lines at once, in a call or after it, take no memory of the cell beyond what is written down", async () => {
  const flood = "for (let i = 0; i < 100_000; i++) log.info('line', { i });";
  const after = "for (let i = 0; i < 100_000; i++) process.stdout.write('line');";
  const handler = `export default ({ input, log }) => { if (input.in) ${flood} if (input.after) setTimeout(() => { ${after} }, 1); return process.pid; };`;
  await bench.deploy("wordy", handler);
  const pid = await bench.invoke("wordy", { in: true });
  expect(await bench.invoke("wordy", { after: true })).toBe(pid);
  await new Promise((done) => setTimeout(done, 50));
  expect(await bench.invoke("wordy")).toBe(pid);
});

test("what an invocation used is counted: processor time where it ran alone", async () => {
  const { usage } = await bench.runtime.invoke("triage", {
    input: {},
    requestId: "req_usage",
    principal,
  });
  expect(usage["cpu_ms"]).toBeGreaterThan(0);
  // One that came and went meanwhile is not counted as its own.
  const ask = (input: object) => bench.runtime.invoke("triage", { input, requestId: "req_usage", principal });
  const [around] = await Promise.all([ask({ mode: "wait", ms: 100 }), ask({})]);
  expect(around.usage).not.toHaveProperty("cpu_ms");
});

test("a handler that logs without end is cut off, and the log says so", async () => {
  const bench = await openBench();
  await bench.deploy(
    "chatty",
    "export default ({ input, log }) => { for (let i = 0; i < input.lines; i++) log.info('y'.repeat(input.size)); return 1; };",
  );
  expect(await bench.invoke("chatty", { lines: 200, size: 20_000 })).toBe(1);
  expect(await bench.invoke("chatty", { lines: 1, size: 9_000_000 })).toBe(1);
  // No frame holds it: it must not end the cell, and the calls that are in it.
  expect(await bench.invoke("chatty", { lines: 1, size: 17_000_000 })).toBe(1);
  expect(await bench.invoke("chatty", { lines: 1, size: 10 })).toBe(1);
  const lines = bench.logs.filter((line) => line["controller"] === "chatty").map((line) => String(line["event"]));
  expect(lines.filter((line) => line.startsWith("yyyy")).length).toBeLessThan(60);
  expect(lines.filter((line) => line.startsWith("log limit exceeded"))).toHaveLength(3);
  expect(lines).toContain("y".repeat(10));
  // Callers that are bound to an environment see its lines alone.
  const last = bench.logs.find((line) => line["event"] === "y".repeat(10));
  expect(last).toMatchObject({ environment: principal.environment });
});
