import { expect, test } from "vitest";
import { striker } from "#daemon/controllers/broker/redaction.ts";
import { formsOf } from "#shared/redact.ts";
import { openBench, settle } from "./harness.ts";

const CANARY = "canary-7f3a9c-secret";
/** As a private key is: with what JSON escapes. */
const LINES = `canary-key "a"\nb${CANARY}`;

test("a secret appears in no log line, error or span, and its rotation is seen at once", async () => {
  let value = CANARY;
  const bench = await openBench({ ports: { secrets: { get: (name) => (name === "TOKEN" ? value : null) } } });
  await bench.deploy(
    "s",
    `export default async ({ input, secrets, log }) => {
       const token = await secrets.get(input.name ?? "TOKEN");
       if (input.mode === "length") return { length: token.length };
       log.info("got " + token, { token, nested: [{ token, [token]: 1 }] });
       if (input.mode === "count") log.info("counted", { calls: 171234 });
       if (input.mode === "address") throw new Error("/?key=" + encodeURIComponent(token));
       console.error("still " + token);
       if (input.mode === "throw") throw new Error("failed with " + token);
       if (input.mode === "custom") throw Object.assign(new Error(token), { name: token });
       return {};
     };`,
    { capabilities: ["secrets:read"], scopes: { secrets: ["TOKEN", "ABSENT"] } },
  );
  const errors = [];
  for (const mode of ["log", "throw", "custom"])
    errors.push(await bench.invoke("s", { mode }).catch((error) => `${error.message} ${error.cause?.stack}`));
  const spans = bench.logs.flatMap((line) => bench.tracer.spansOf(String(line["request_id"])));
  expect(spans.length).toBeGreaterThan(0);
  const written = JSON.stringify([bench.logs, errors, spans, await bench.metrics.render()]);
  // Not expect().toContain(): a failure would print everything.
  expect(written.includes(CANARY)).toBe(false);
  expect(written.includes("[redacted]")).toBe(true);
  expect(await bench.invoke("s", { mode: "length" })).toEqual({ length: CANARY.length });
  value = LINES;
  for (const mode of ["address", "throw"]) await bench.outcome("s", { mode });
  expect(JSON.stringify(bench.logs).includes("canary-key")).toBe(false);
  // What the call has learned first may be the beginning of the next one, and digits may be a number's.
  value = "1234";
  expect(await bench.outcome("s", { mode: "count" })).toBe("ok");
  expect(bench.logs.find(({ event }) => event === "counted")).toMatchObject({ fields: { calls: "17[redacted]" } });
  value = "short";
  expect(await bench.invoke("s", { mode: "length" })).toEqual({ length: 5 });
  expect(await bench.outcome("s", { name: "OTHER" })).toBe("capability_denied");
  expect(await bench.outcome("s", { name: "ABSENT" })).toBe("not_found");
});

test("a secret is struck out in base64 and hex too, and so is what a cut has left of one", async () => {
  const bench = await openBench({ ports: { secrets: { get: () => CANARY } } });
  await bench.deploy(
    "written",
    `export default async ({ input, secrets }) => {
       const token = await secrets.get("TOKEN");
       if (input.long) {
         console.log("x".repeat(16 * 1024 - 12) + token);
         throw new Error("y".repeat(8 * 1024 - 12) + token);
       }
       const written = ["", "a:", "ab:", "abc:"].map((user) => btoa(user + token + "~"));
       throw new Error([...written, Buffer.from(token).toString("base64url"), Buffer.from(token).toString("hex")].join(" "));
     };`,
    { capabilities: ["secrets:read"], scopes: { secrets: ["TOKEN"] } },
  );
  expect((await bench.failure(bench.invoke("written"))).message).toMatch(/^[^:]+: (\S{0,6}\[redacted\]\S{0,4} ?){6}$/);
  expect((await bench.failure(bench.invoke("written", { long: true }))).message).toMatch(/y\[redacted\]…$/);
  const written = JSON.stringify(bench.logs);
  expect(written).toContain("x[redacted]…");
  for (const left of [CANARY.slice(0, 4), btoa(CANARY).slice(0, 8)]) expect(written.includes(left)).toBe(false);
});

test("what a cut has left of a secret in JSON is struck out", () => {
  const keys = Array.from({ length: 12 }, (_, at) => `key ${at}\n${"x/+".repeat(1_000)}`);
  const strike = striker(keys.flatMap(formsOf));
  const logged = JSON.stringify({ a: keys[7] });
  expect(strike(`${logged.slice(0, 20)}…`)).toBe('{"a":"[redacted]…');
  expect(strike(`${logged.slice(0, 1_000)}…`)).toBe('{"a":"[redacted]…');
  expect(strike("a line…")).toBe("a line…");
});

test("a secret that begins with another one is struck out whole", async () => {
  const values: Record<string, string> = { A: "canary", B: CANARY };
  const bench = await openBench({ ports: { secrets: { get: (name) => values[name] ?? null } } });
  await bench.deploy(
    "both",
    `export default async ({ secrets }) => { throw new Error([await secrets.get("A"), await secrets.get("B")].join()); };`,
    { capabilities: ["secrets:read"], scopes: { secrets: ["A", "B"] } },
  );
  expect((await bench.failure(bench.invoke("both"))).message).toMatch(/: \[redacted\],\[redacted\]$/);
});

test("a secret that went to another controller, or into an error that nobody caught, is in no line either", async () => {
  const bench = await openBench({ ports: { secrets: { get: () => CANARY } } });
  const reads = { capabilities: ["secrets:read" as const], scopes: { secrets: ["TOKEN"] } };
  await bench.deploy(
    "outer",
    `export default async ({ input, secrets, controllers, log }) => {
       if (input.stray) {
         const token = await secrets.get("TOKEN");
         setTimeout(() => { console.log("late " + token); throw new Error("late " + token); }, 5);
         return {};
       }
       if (input.give) return await controllers.invoke("inner", { text: await secrets.get("TOKEN") });
       log.info("got " + (await controllers.invoke("inner", { read: true })));
       return {};
     };`,
    { capabilities: ["secrets:read", "controller:invoke"], scopes: { secrets: ["TOKEN"] } },
  );
  await bench.deploy(
    "inner",
    `export default async ({ input, secrets, log }) => {
       if (input.read) return await secrets.get("TOKEN");
       log.info("was given " + input.text);
       throw new Error("cannot use " + input.text);
     };`,
    reads,
  );
  expect(await bench.outcome("outer", { give: true })).toBe("handler_error");
  expect(await bench.outcome("outer", {})).toBe("ok");
  expect(await bench.outcome("outer", { stray: true })).toBe("ok");
  expect(await settle(() => bench.logs.some((line) => String(line["event"]).startsWith("uncaught exception")))).toBe(
    true,
  );
  const written = JSON.stringify(bench.logs);
  expect(written.includes(CANARY)).toBe(false);
  for (const line of ["was given [redacted]", "got [redacted]", "late [redacted]"]) expect(written).toContain(line);
});

test("nothing of the daemon's environment is in a cell, and no cell sees what another one did", async () => {
  process.env["MAGIC_TEST_CANARY"] = CANARY;
  const bench = await openBench();
  await bench.deploy(
    "one",
    `export default () => { globalThis.mark = "${CANARY}"; Object.prototype.mark = "${CANARY}"; process.env.MARK = "${CANARY}"; return {}; };`,
  );
  await bench.deploy(
    "two",
    `export default () => ({ seen: [JSON.stringify(process.env), String(globalThis.mark), String({}.mark), process.argv.join(), process.execArgv.join()].join() });`,
  );
  await bench.invoke("one");
  expect(JSON.stringify(await bench.invoke("two"))).not.toContain(CANARY);
  delete process.env["MAGIC_TEST_CANARY"];
});
