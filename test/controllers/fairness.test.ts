// How much of the daemon and of the machine one cell can take from the others.
import { readdirSync, readFileSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { availableParallelism, getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LARGE_FRAME, openConnection } from "#daemon/controllers/cell/connection.ts";
import { HEADER, SECRET, up } from "#daemon/controllers/cell/frames.ts";
import { readSocket } from "#daemon/controllers/cell/socket.ts";
import { checkLargeOutput, type LargeOutput } from "#daemon/controllers/serving/large-output.ts";
import { schemaCheck } from "#daemon/controllers/serving/slow-check.ts";
import { newId } from "#shared/ids.ts";
import { openBench, principal, settle } from "./harness.ts";

const linux = process.platform === "linux";

/** Two ends of a socket. */
async function pair(): Promise<{ daemon: Socket; cell: Socket; close(): void }> {
  const path = join(tmpdir(), `${newId("sock")}.sock`);
  const server = createServer();
  await new Promise<void>((done) => server.listen(path, done));
  const cell = createConnection(path);
  const daemon = await new Promise<Socket>((resolve) => server.once("connection", resolve));
  return {
    daemon,
    cell,
    close() {
      for (const one of [cell, daemon]) one.destroy();
      server.close();
    },
  };
}

function frame(type: number, id: number, payload: string): Buffer {
  const text = Buffer.from(payload);
  const whole = Buffer.alloc(HEADER + SECRET + text.length);
  whole.writeUInt32LE(SECRET + text.length, 0);
  whole[4] = type;
  whole.writeUInt32LE(id, 5);
  text.copy(whole, HEADER + SECRET);
  return whole;
}

test("frames that cost the daemon its time are taken a few a turn, and all of them in the end", async () => {
  const { daemon, cell, close } = await pair();
  const taken: number[] = [];
  let turn = 0;
  const mostInATurn = { turn: -1, frames: 0, most: 0 };
  openConnection(readSocket(daemon), {
    frame(_type, id) {
      taken.push(id);
      mostInATurn.frames = mostInATurn.turn === turn ? mostInATurn.frames + 1 : 1;
      mostInATurn.turn = turn;
      mostInATurn.most = Math.max(mostInATurn.most, mostInATurn.frames);
      for (const until = performance.now() + 0.5; performance.now() < until; );
      return false;
    },
    violation: (why) => expect.unreachable(why),
  });
  let counting = true;
  const count = (): void => {
    turn++;
    if (counting) setImmediate(count);
  };
  count();
  const ids = Array.from({ length: 150 }, (_, n) => n + 1);
  cell.write(Buffer.concat(ids.map((id) => frame(up.call, id, "{}"))));
  expect(await settle(() => taken.length === ids.length, 30_000)).toBe(true);
  counting = false;
  expect(taken).toEqual(ids);
  // 0.5 ms at once: one, or the first of them and another.
  expect(mostInATurn.most).toBeLessThanOrEqual(2);
  close();
});

test("answers are taken as they come, however many; large frames between small ones come whole", async () => {
  const { daemon, cell, close } = await pair();
  const taken: string[] = [];
  openConnection(readSocket(daemon), {
    frame(_type, id, _secret, payload) {
      taken.push(`${id}:${payload.length}:${payload.at(0)}:${payload.at(-1)}`);
      return true;
    },
    violation: (why) => expect.unreachable(why),
  });
  const sizes = [3, LARGE_FRAME * 3 + 7, 2, LARGE_FRAME - SECRET, LARGE_FRAME + 1, 70_000, 2];
  const payloadOf = (size: number): string => `a${"b".repeat(size - 2)}c`;
  const all = Buffer.concat(sizes.map((size, id) => frame(up.result, id, payloadOf(size))));
  // In pieces that end anywhere, in the middle of a header too.
  for (let at = 0; at < all.length; at += 65_521) cell.write(all.subarray(at, at + 65_521));
  expect(await settle(() => taken.length === sizes.length, 10_000)).toBe(true);
  expect(taken).toEqual(sizes.map((size, id) => `${id}:${size}:97:99`));
  close();
});

const patient = { ms: 60_000, late: () => new Error("late") };

test("a large output is checked against the schema, and must be JSON", async () => {
  const check = (text: string | Buffer, schema: boolean | Record<string, unknown> = true) =>
    checkLargeOutput(Buffer.from(text), schemaCheck(schema), patient);
  const good = await check('{"a":[1,2]}', { type: "object" });
  expect("output" in good && good.output.value()).toEqual({ a: [1, 2] });
  expect(JSON.stringify({ nested: "output" in good && good.output })).toBe('{"nested":{"a":[1,2]}}');
  expect(await check('{"a":1}', { type: "array" })).toMatchObject({ problems: [{ pointer: "", code: "type" }] });
  expect(await check("1", false)).toMatchObject({ problems: [{ pointer: "" }] });
  for (const broken of ['1,"request_id":"forged"', "", '{"a":1', Buffer.from([0x22, 0xff, 0x22])])
    expect(await check(broken), String(broken)).toEqual({ problems: null });
});

test("a check that takes as long as the caller wants holds up neither the daemon nor anybody else's call", async () => {
  const bench = await openBench();
  const text = { type: "string", pattern: "^(?!.*\\s+$)" };
  await bench.deploy("slow", "export default ({ input }) => input;", { input_schema: text, output_schema: text });
  await bench.deploy("other", "export default () => 1;");
  expect(await bench.invoke("slow", "text")).toBe("text");
  await bench.invoke("other");
  const hostile = `${" ".repeat(300_000)}x`;
  const before = process.threadCpuUsage();
  const calls = Promise.allSettled(Array.from({ length: 3 }, () => bench.invoke("slow", hostile)));
  await bench.invoke("other");
  for (const call of await calls)
    expect(call).toMatchObject({ reason: { code: "input_invalid", problems: [{ pointer: "", code: "too_slow" }] } });
  const { user, system } = process.threadCpuUsage(before);
  // Of this thread; it was 250 ms a call.
  expect((user + system) / 1_000).toBeLessThan(400);
  // What ends is answered as ever, also while its schema counts as slow.
  expect(await bench.invoke("slow", "a b")).toBe("a b");
  await expect(bench.invoke("slow", "x ")).rejects.toMatchObject({ problems: [{ pointer: "", code: "pattern" }] });
});

test("slow checks end with their calls' time, whether they run or wait", async () => {
  const bench = await openBench();
  const text = { type: "string", pattern: "^(?!.*\\s+$)" };
  const limits = { timeout_ms: 400 };
  await bench.deploy("slow", "export default ({ input }) => input;", { input_schema: text, limits });
  await bench.deploy("answer", `export default () => " ".repeat(100_000) + "x";`, { output_schema: text, limits });
  // The threads are there.
  await Promise.all([bench.outcome("slow", " ".repeat(100_000)), bench.outcome("answer")]);
  const began = performance.now();
  const calls = Array.from({ length: 16 }, () => [
    bench.outcome("slow", `${" ".repeat(300_000)}x`),
    bench.outcome("answer"),
  ]);
  const outcomes = await Promise.all(calls.flat());
  // In turn they were 8 s.
  expect(performance.now() - began).toBeLessThan(6_000);
  expect(outcomes).toContain("timeout");
});

test("a contract that takes seconds to be checked, loaded and called holds up nobody else's call", async () => {
  const bench = await openBench();
  await bench.deploy("other", "export default () => 1;");
  const members = (n: number, of: () => unknown) =>
    Object.fromEntries(Array.from({ length: n }, (_, at) => [`member${at}`, of()]));
  const large = {
    type: "object",
    properties: members(200, () => ({ type: "object", properties: members(12, () => ({ type: "string" })) })),
  };
  const invalid = { allOf: Array.from({ length: 60 }, (_, at) => ({ pattern: `(a+)+b{${at}}$` })) };
  const before = process.threadCpuUsage();
  await expect(bench.deploy("invalid", "export default () => 1;", { input_schema: invalid })).rejects.toThrow(
    "pattern",
  );
  await bench.deploy("large", "export default ({ input }) => input;", { input_schema: large, output_schema: large });
  expect(await bench.invoke("large", { member1: { member2: "a" } })).toEqual({ member1: { member2: "a" } });
  await expect(bench.invoke("large", { member1: { member2: 1 } })).rejects.toMatchObject({
    problems: [{ pointer: "/member1/member2", code: "type" }],
  });
  const { user, system } = process.threadCpuUsage(before);
  // Of this thread; it was nearly two seconds.
  expect((user + system) / 1_000).toBeLessThan(800);
});

test("the memory of a large output is used again once it was released, and not before", async () => {
  const bench = await openBench();
  await bench.deploy("large", "export default ({ input }) => input.letter.repeat(400_000);");
  const call = async (letter: string): Promise<LargeOutput> => {
    const input = { letter };
    const { output } = await bench.runtime.invoke("large", { input, requestId: newId("req"), principal });
    return output as LargeOutput;
  };
  const whole = (letter: string): string => letter.repeat(400_000);
  const [a, b] = await Promise.all([call("a"), call("b")]);
  expect(a.value() === whole("a") && b.value() === whole("b")).toBe(true);
  a.release();
  a.release();
  expect(() => a.value()).toThrow("after its release");
  const [c, d] = await Promise.all([call("c"), call("d")]);
  expect([c, d].filter(({ json }) => json.buffer === a.json.buffer)).toHaveLength(1);
  expect(b.value() === whole("b") && c.value() === whole("c") && d.value() === whole("d")).toBe(true);
});

test.runIf(linux)("the thread that checks large outputs comes after all others", async () => {
  await checkLargeOutput(Buffer.from("1"), schemaCheck(true), patient);
  const nameOf = (thread: string): string => readFileSync(`/proc/self/task/${thread}/comm`, "latin1").trim();
  const behind = (): boolean =>
    readdirSync("/proc/self/task").some((thread) => nameOf(thread) === "outputs" && getPriority(Number(thread)) === 10);
  expect(await settle(behind)).toBe(true);
});

test.runIf(linux)(
  "after the first few, cells are started by a thread of their own, and begin where the others do",
  async () => {
    const bench = await openBench();
    const commOf = (thread: string): string => readFileSync(`/proc/self/task/${thread}/comm`, "latin1").trim();
    const processorsOf = (pid: number): string =>
      /^Cpus_allowed_list:\s*(.+)$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? "";
    for (let n = 0; n < 7; n++) {
      await bench.deploy(`c${n}`, "export default () => process.pid;");
      const pid = (await bench.invoke(`c${n}`)) as number;
      expect(getPriority(pid)).toBe(getPriority());
      if (availableParallelism() > 1) expect(processorsOf(pid)).not.toBe(processorsOf(process.pid));
    }
    expect(await settle(() => readdirSync("/proc/self/task").map(commOf).includes("cells"))).toBe(true);
  },
);

test.runIf(linux)(
  "a handler that takes a core for itself steps back, and so does the next cell of its controller",
  async () => {
    const bench = await openBench();
    await bench.deploy("quiet", "export default () => process.pid;");
    await bench.deploy(
      "greedy",
      "export default async ({ input }) => { for (const end = Date.now() + input.ms; Date.now() < end; ); return process.pid; };",
      { limits: { timeout_ms: 20_000 } },
    );
    const quiet = (await bench.invoke("quiet", {})) as number;
    const greedy = (await bench.invoke("greedy", { ms: 0 })) as number;
    expect(getPriority(greedy)).toBe(getPriority());
    const sessionOf = (pid: number): string | null => {
      try {
        return /nice (-?\d+)/.exec(readFileSync(`/proc/${pid}/autogroup`, "latin1"))?.[1] ?? null;
      } catch {
        return null;
      }
    };
    const call = bench.outcome("greedy", { ms: 1_500 });
    expect(await settle(() => getPriority(greedy) === 10, 10_000)).toBe(true);
    expect(await call).toBe("ok");
    // A session of its own, where the kernel groups by sessions at all.
    expect([null, "10"]).toContain(sessionOf(greedy));
    expect([null, "0"]).toContain(sessionOf(process.pid));
    process.kill(greedy, "SIGKILL");
    expect(await settle(() => bench.logs.some((line) => line["event"] === "controller.cell_ended"))).toBe(true);
    const next = (await bench.invoke("greedy", { ms: 0 })) as number;
    expect(next).not.toBe(greedy);
    expect(getPriority(next)).toBe(10);
    // A call that takes long because it waits is none that takes a core, nor is a cell that gets none.
    expect(getPriority(quiet)).toBe(getPriority());
    await bench.invoke("quiet", {});
    process.kill(quiet, "SIGSTOP");
    await new Promise((done) => setTimeout(done, 600));
    expect(getPriority(quiet)).toBe(getPriority());
    const again = bench.invoke("quiet", {});
    await new Promise((done) => setTimeout(done, 100));
    process.kill(quiet, "SIGCONT");
    expect(await again).toBe(quiet);
  },
);

test.runIf(linux && availableParallelism() > 1)(
  "a processor is kept free of a controller's cells until it has answered quickly for a while, and again of one that takes a core",
  async () => {
    const bench = await openBench();
    await bench.deploy(
      "steady",
      "export default async ({ input }) => { for (const end = Date.now() + input.ms; Date.now() < end; ); return process.pid; };",
      { limits: { timeout_ms: 20_000 } },
    );
    const processorsOf = (pid: number): string =>
      /^Cpus_allowed_list:\s*(.+)$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? "";
    const everyOne = processorsOf(process.pid);
    const pid = (await bench.invoke("steady", { ms: 0 })) as number;
    expect(processorsOf(pid)).not.toBe(everyOne);
    // On a busy machine an answer may take longer than what counts as quick.
    for (let n = 0; n < 2_000 && processorsOf(pid) !== everyOne; n++) await bench.invoke("steady", { ms: 0 });
    expect(processorsOf(pid)).toBe(everyOne);
    const call = bench.outcome("steady", { ms: 1_500 });
    expect(await settle(() => processorsOf(pid) !== everyOne, 10_000)).toBe(true);
    expect(await call).toBe("ok");
  },
);
