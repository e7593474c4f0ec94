// Hot reload under load: nothing fails, nothing leaks, and a save is live soon.
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import { openBench, put } from "./harness.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const heap = (): number => {
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
};
const handler = (n: number): string => `import { reply } from "magic/sdk"; export default () => reply({ n: ${n} });`;
const children = (): number => Number(execFileSync("pgrep", ["-P", String(process.pid), "-c"], { encoding: "utf8" }));
const descriptors = (): number => readdirSync("/proc/self/fd").length;

async function open() {
  const bench = await openBench();
  const folder = bench.write("busy", handler(0));
  const session = await bench.runtime.develop({ folder: join(bench.root, "controllers") });
  const events = session.events[Symbol.asyncIterator]();
  const next = async (type: DevelopmentEvent["type"]): Promise<DevelopmentEvent> => {
    for (;;) {
      const { value } = await events.next();
      if (value?.type === type) return value;
    }
  };
  await next("ready");
  return { bench, session, next, save: (n: number) => writeFileSync(join(folder, "handler.ts"), handler(n)) };
}

test("200 reloads while 32 clients invoke without pause: no failed request, no process, descriptor or heap left", async () => {
  const { bench, session, next, save } = await open();
  const outcomes = new Map<string, number>();
  let running = true;
  const clients = Array.from({ length: 32 }, async () => {
    while (running) {
      const outcome = await bench.outcome("busy");
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  });
  let early = { heap: 0, children: 0, descriptors: 0 };
  for (let n = 1; n <= 200; n++) {
    save(n);
    await next("reload");
    bench.logs.length = 0;
    if (n === 40) early = { heap: heap(), children: children(), descriptors: descriptors() };
  }
  running = false;
  await Promise.all(clients);
  await new Promise((done) => setTimeout(done, 1_000));
  const late = { heap: heap(), children: children(), descriptors: descriptors() };
  process.stdout.write(
    `${JSON.stringify([...outcomes])}, after 40 reloads ${JSON.stringify(early)}, after 200 ${JSON.stringify(late)}\n`,
  );
  expect([...outcomes.keys()]).toEqual(["ok"]);
  expect(await bench.invoke("busy")).toEqual({ n: 200 });
  expect(late.children).toBeLessThanOrEqual(early.children + 2);
  expect(late.descriptors).toBeLessThanOrEqual(early.descriptors + 8);
  // 160 reloads more: a leak of a bundle, a schema or a session each would be far beyond it.
  expect(late.heap).toBeLessThan(early.heap + 4);
  await session.close();
});

test("save to live, 100 edits while 100 invokes a second arrive", async () => {
  const { bench, session, next, save } = await open();
  const outcomes = new Map<string, number>();
  const arrivals = setInterval(() => {
    void bench.outcome("busy").then((outcome) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1));
  }, 10);
  const times: number[] = [];
  const phases: Record<string, number[]> = {};
  for (let n = 1; n <= 100; n++) {
    save(n);
    const event = (await next("reload")) as Extract<DevelopmentEvent, { type: "reload" }>;
    times.push(event.duration_ms);
    for (const [name, ms] of Object.entries(event.phases)) phases[name] = [...(phases[name] ?? []), ms];
    await new Promise((done) => setTimeout(done, 250));
  }
  clearInterval(arrivals);
  const quantile = (list: number[], q: number): number =>
    [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) * q)] ?? 0;
  const medians = Object.entries(phases).map(([name, list]) => `${name} ${quantile(list, 0.5)}`);
  process.stdout.write(
    `save to live p50 ${quantile(times, 0.5)} p95 ${quantile(times, 0.95)} ms; ${medians.join(", ")}; ${JSON.stringify([...outcomes])}\n`,
  );
  expect([...outcomes.keys()]).toEqual(["ok"]);
  // The figure to hold is 60 ms on an idle machine; a busy one may take longer, never long.
  expect(quantile(times, 0.5)).toBeLessThan(250);
  await session.close();
});

test("1,000 deploys and rollbacks under 32-way load: no failed request", async () => {
  const bench = await openBench();
  await bench.deploy("d", "export default () => 0;");
  let running = true;
  const outcomes = new Map<string, number>();
  const clients = Array.from({ length: 32 }, async () => {
    while (running) {
      const outcome = await bench.outcome("d");
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  });
  const artifact = await bench.runtime.build(bench.write("d", "export default () => 1;", { version: "1.1.0" }));
  let early = 0;
  for (let i = 0; i < 500; i++) {
    await bench.runtime.deploy(artifact);
    await bench.runtime.rollback("d");
    bench.logs.length = 0;
    if (i === 100) early = heap();
  }
  running = false;
  await Promise.all(clients);
  const late = heap();
  process.stdout.write(`${JSON.stringify([...outcomes])}, heap ${early.toFixed(1)} -> ${late.toFixed(1)} MB\n`);
  expect([...outcomes.keys()]).toEqual(["ok"]);
  expect(late).toBeLessThan(early + 4);
});

test("what is saved while a session over thousands of files starts is not lost", async () => {
  const bench = await openBench();
  const names = ["a", "b", "c", "d"];
  for (const name of names)
    for (let n = 0; n < 900; n++) put(join(bench.root, "controllers", name, "assets", `${n % 30}`, `${n}.md`), "");
  for (let round = 1; round <= 6; round++) {
    for (const name of names) bench.write(name, handler(0));
    const opening = bench.runtime.develop({ folder: join(bench.root, "controllers") });
    await new Promise((done) => setTimeout(done, round * 20));
    for (const name of names) bench.write(name, handler(round));
    bench.write(`new${round}`, handler(round));
    const session = await opening;
    for (const name of [...names, `new${round}`])
      await expect
        .poll(() => bench.invoke(name).catch(String), { message: `${name} in round ${round}`, timeout: 5_000 })
        .toEqual({ n: round });
    await session.close();
  }
});

const limit = "echo 3 > /proc/sys/user/max_inotify_watches";
const mayLimit = spawnSync("unshare", ["-U", "-r", "sh", "-c", limit]).status === 0;
test.skipIf(!mayLimit)("where the system takes no more watches, the watcher looks again and again", () => {
  const script = `
    import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
    import { openWatcher } from "#daemon/controllers/reload/watcher.ts";
    const folder = mkdtempSync("/tmp/magic-watch-");
    const files = Array.from({ length: 6 }, (_, n) => folder + "/" + n + "/handler.ts");
    for (const file of files) { mkdirSync(file.slice(0, -11)); writeFileSync(file, "1"); }
    const seen = new Set();
    const watcher = openWatcher({ folder, ignored: () => false, onChange: (path) => seen.add(path), onRenewed() {} });
    await watcher.ready;
    for (const file of files) writeFileSync(file, "22");
    const until = Date.now() + 10_000;
    while (seen.size < files.length && Date.now() < until) await new Promise((done) => setTimeout(done, 50));
    await watcher.close();
    rmSync(folder, { recursive: true });
    console.log(files.filter((file) => seen.has(file)).length);`;
  const limited = `${limit}; exec "$0" --input-type=module -e "$1"`;
  const seen = execFileSync("unshare", ["-U", "-r", "sh", "-c", limited, process.execPath, script], {
    encoding: "utf8",
    timeout: 30_000,
  });
  expect(Number(seen)).toBe(6);
});
