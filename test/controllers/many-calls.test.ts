// One invocation with as many broker calls as it may have, spoken to by a broker that answers when the test says so.
import { afterAll, expect, test } from "vitest";
import { type Cell, startCell } from "#daemon/controllers/cell/cell.ts";
import { allLayers } from "#daemon/controllers/cell/lockdown/boot.ts";
import type { BrokerAnswer } from "#daemon/controllers/cell/streams.ts";

type Answer = (op: string, args: Record<string, unknown>, signal: AbortSignal) => Promise<BrokerAnswer>;

const handlers = `
  const many = (length, one) => Array.from({ length }, one);
  const handlers = {
    async abort() {
      const first = new AbortController();
      const others = many(256, () => fetch("http://a.example/", { signal: first.signal }).catch(() => 1));
      let canceled = null;
      const body = new ReadableStream({ pull(one) { one.enqueue(new Uint8Array(9)); }, cancel(reason) { canceled = reason.name; } });
      const late = await fetch("http://a.example/", { method: "POST", body, duplex: "half", signal: AbortSignal.timeout(20) }).catch(({ name }) => name);
      first.abort();
      await Promise.all(others);
      return { late, canceled, next: (await fetch("http://a.example/next")).status };
    },
    async streams() {
      const answers = await Promise.all(many(256, () => fetch("http://a.example/")));
      return new Set(await Promise.all(answers.map((one) => one.text()))).size;
    },
    async transaction({ db }) {
      let others = [];
      await db.transaction("main", async (tx) => {
        others = many(300, () => db.query("main", "select 1"));
        await Promise.all(many(100, () => tx.query("select 2")));
      });
      return (await Promise.all(others)).length;
    },
  };
  exports.default = (request) => handlers[request.input](request);`;

const cell: Cell = await startCell(allLayers);
const memoryBytes = 128 * 2 ** 20;
await cell.load({ controller: "x", version: "1.0.0", filename: "x.magic.js", memoryBytes }, handlers, () => {});
afterAll(() => cell.kill("killed", "done"));

/** What the handler returns, or how it ended. */
function run(input: string, answer: Answer): Promise<unknown> {
  const message = { input, id: "req_1", deadline: Date.now() + 2_000, environment: "sandbox" };
  return new Promise((resolve) => {
    cell.invoke({
      message,
      broker: () => ({ call: (op, args, _body, signal) => answer(op, args as never, signal) }),
      onLog() {},
      onEnd: (end) => resolve(end.ok ? JSON.parse(String(end.output)) : end.error),
      onGone: resolve,
    });
  });
}

const ANSWER = { status: 200, statusText: "OK", headers: [], url: "http://a.example/", redirected: false };

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));

test("a call that waits for others is over when its signal is aborted, and its body is let go of", async () => {
  let begun = 0;
  const seen = await run("abort", (_op, { url }, signal) => {
    begun++;
    return String(url).endsWith("next") ? Promise.resolve({ value: ANSWER }) : aborted(signal);
  });
  expect(seen).toEqual({ late: "TimeoutError", canceled: "TimeoutError", next: 200 });
  expect(begun).toBe(257);
});

test("256 answers can be open before the first of them is read", async () => {
  let begun = 0;
  const all = Promise.withResolvers<void>();
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("a");
    await all.promise;
    yield Buffer.from("b");
  }
  const seen = await run("streams", async () => {
    if (++begun === 256) all.resolve();
    return { value: ANSWER, stream: body() };
  });
  expect(seen).toBe(1);
});

test("an open transaction goes on while other calls wait for its session", async () => {
  const over = Promise.withResolvers<void>();
  const seen = await run("transaction", async (op, { tx }) => {
    if (op === "db.begin") return { value: 1 };
    if (op === "db.commit") over.resolve();
    else if (tx === undefined) await over.promise;
    return { value: { rows: [], row_count: 0 } };
  });
  expect(seen).toBe(300);
});
