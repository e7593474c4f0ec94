import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { MagicError } from "#contract/errors.ts";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import { isStill } from "#daemon/controllers/reload/folders.ts";
import { whenThere } from "#daemon/controllers/reload/missing.ts";
import { loadProblem } from "#daemon/controllers/reload/problems.ts";
import type { DevelopmentSession } from "#daemon/controllers/runtime.ts";
import { within } from "../patience.ts";
import { contractOf, openBench, put } from "./harness.ts";

type Of<T extends DevelopmentEvent["type"]> = Extract<DevelopmentEvent, { type: T }>;

async function start(folder: string, bench: Awaited<ReturnType<typeof openBench>>) {
  const session: DevelopmentSession = await bench.runtime.develop({ folder });
  const events = session.events[Symbol.asyncIterator]();
  return {
    session,
    following: () => events.next(),
    async next<T extends DevelopmentEvent["type"]>(type: T): Promise<Of<T>> {
      for (;;) {
        const { value, done } = await events.next();
        if (done) throw new Error(`the session ended without ${type}`);
        if (value.type === type) return value as Of<T>;
      }
    },
  };
}

const handler = (n: number) => `import { n } from "./lib.ts"; export default () => ({ n: n + ${n} });`;

test("where the machine refuses a cell, nothing in the module is said to be wrong", () => {
  const refused = new MagicError("overloaded", "a cell could not be started: socketpair failed");
  expect(loadProblem({ folder: "/nowhere/controllers/a" }, refused, "/nowhere").fix).toContain("ulimit -n");
  expect(loadProblem({ folder: "/nowhere/controllers/a" }, new Error("no"), "/nowhere").fix).toContain("the module");
});

test("a module that does not load is shown at the file that threw, wherever that lies, whatever its message says", async () => {
  const bench = await openBench();
  const throwing = (message: string) =>
    `\n\nexport const v = (() => { throw new Error(${JSON.stringify(message)}); })();`;
  const importing = (path: string) => `import { v } from ${JSON.stringify(path)}; export default () => v;`;
  const at = (name: string) => join(bench.root, "src/controllers", name);
  put(join(bench.root, "src/lib/dé (1).ts"), throwing("a"));
  put(join(at("b"), "my lib.ts"), throwing("b"));
  const handlers = {
    a: importing("../../lib/dé (1).ts"),
    b: importing("./my lib.ts"),
    c: importing("../b/my lib.ts"),
    d: throwing("controllers/b/my lib.ts:9:9 is not the place\n    at /etc/passwd:5:5"),
  };
  for (const [name, text] of Object.entries(handlers)) {
    put(join(at(name), "handler.ts"), text);
    put(join(at(name), "contract.yaml"), JSON.stringify(contractOf(`named-${name}`)));
  }
  const { session, next } = await start(join(bench.root, "src/controllers"), bench);
  await next("ready");
  const found = new Map<string, unknown>();
  while (found.size < 4) {
    const { controller, problems } = await next("invalid");
    found.set(controller, [problems[0]?.file, problems[0]?.line]);
  }
  expect(Object.fromEntries(found)).toEqual({
    a: ["src/lib/dé (1).ts", 3],
    b: ["src/controllers/b/my lib.ts", 3],
    c: ["src/controllers/b/my lib.ts", 3],
    d: ["src/controllers/d/handler.ts", 3],
  });
  await session.close();
});

test("a save is live at once, a broken one keeps the last good version and shows its line", async () => {
  const bench = await openBench();
  const folder = bench.write("counter", handler(1));
  put(join(folder, "lib.ts"), "export const n = 0;");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  expect(await next("ready")).toMatchObject({ controllers: [{ name: "counter", version: "1.0.0" }], invalid: [] });
  expect(await bench.invoke("counter")).toEqual({ n: 1 });

  writeFileSync(join(folder, "handler.ts"), handler(2));
  const reload = await next("reload");
  expect(reload).toMatchObject({ controller: "counter", changed: ["controllers/counter/handler.ts"] });
  expect(reload.duration_ms).toBeGreaterThan(0);
  expect(await bench.invoke("counter")).toEqual({ n: 2 });

  writeFileSync(join(folder, "lib.ts"), "export const n = 10;");
  await next("reload");
  expect(await bench.invoke("counter")).toEqual({ n: 12 });

  writeFileSync(join(folder, "handler.ts"), "export default () => {\n  return {;\n}");
  const invalid = await next("invalid");
  expect(invalid).toMatchObject({ controller: "counter", serving: "1.0.0" });
  expect(invalid.problems[0]).toMatchObject({ file: "controllers/counter/handler.ts", line: 2, code: "build_failed" });
  expect(await bench.invoke("counter")).toEqual({ n: 12 });

  writeFileSync(join(folder, "contract.yaml"), "name: counter\nversion: one\n");
  expect(
    (await next("invalid")).problems.some((one) => one.file === "controllers/counter/contract.yaml" && one.line === 2),
  ).toBe(true);
  await session.close();
  expect(await next("stopped")).toMatchObject({ reason: "closed" });
  expect(await bench.outcome("counter")).toBe("controller_not_found");
});

test("a controller has any name but that of a hidden folder, before and during a session", async () => {
  const bench = await openBench();
  bench.write("dist", "export default () => 1;");
  const hidden = bench.write("hidden", "export default () => 1;");
  const folder = join(bench.root, "controllers");
  renameSync(hidden, join(folder, ".hidden"));
  const { next, following } = await start(folder, bench);
  expect((await next("ready")).controllers).toMatchObject([{ name: "dist" }]);
  writeFileSync(join(folder, "dist", "handler.ts"), "export default () => 2;");
  expect(await next("reload")).toMatchObject({ controller: "dist" });
  expect(await bench.invoke("dist")).toBe(2);
  writeFileSync(join(folder, ".hidden", "handler.ts"), "export default () => 2;");
  bench.write("coverage", "export default () => 1;");
  expect((await following()).value).toMatchObject({ type: "reload", controller: "coverage" });
});

test("a file that a save has emptied is read when it is written", async () => {
  const bench = await openBench();
  const folder = bench.write("slow", "export default () => 1;");
  const { session, following, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  writeFileSync(join(folder, "handler.ts"), "");
  await new Promise((done) => setTimeout(done, 40));
  writeFileSync(join(folder, "handler.ts"), "export default () => 2;");
  expect((await following()).value).toMatchObject({ type: "reload" });
  expect(await bench.invoke("slow")).toBe(2);
  await session.close();
});

test("a save that keeps the file's size and time, as `cp -p` does, is taken up", async () => {
  const bench = await openBench();
  const file = join(bench.write("kept", "export default () => ({ n: 1 });"), "handler.ts");
  const copy = join(bench.root, "copy.ts");
  writeFileSync(copy, "export default () => ({ n: 2 });");
  const saved = new Date(Date.now() - 60_000);
  for (const one of [file, copy]) utimesSync(one, new Date(), saved);
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  execFileSync("cp", ["-p", copy, file]);
  expect(await next("reload")).toMatchObject({ controller: "kept" });
  expect(await bench.invoke("kept")).toEqual({ n: 2 });
  await session.close();
});

test("a folder that is renamed, and one that is away for a moment, never stop serving", async () => {
  const bench = await openBench();
  const folder = bench.write("moved", "export default () => 1;");
  for (let n = 0; n < 20; n++) put(join(folder, "lib", `${n}.ts`), "export {};");
  const { session, next, following } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  let calling = true;
  const outcomes = new Set<string>();
  const calls = (async () => {
    while (calling) outcomes.add(await bench.outcome("moved"));
  })();
  renameSync(folder, `${folder}-two`);
  await vi.waitFor(() => expect(bench.invoke("moved")).resolves.toBe(1), 10_000);
  const first = await following();
  for (let n = 2; n < 4; n++) {
    renameSync(`${folder}-two`, folder);
    await new Promise((done) => setTimeout(done, n * 20));
    renameSync(folder, `${folder}-two`);
    writeFileSync(join(`${folder}-two`, "handler.ts"), `export default () => ${n};`);
    await vi.waitFor(async () => expect(await bench.invoke("moved")).toBe(n), { timeout: 20_000, interval: 50 });
  }
  calling = false;
  await calls;
  expect(outcomes).toEqual(new Set(["ok"]));
  // The watcher tells of the new folder before it does of the old one: that is no clash of names.
  expect(first.value).toMatchObject({ type: "reload", controller: "moved" });
  await session.close();
});

test("a folder that is away twice within half a second is still there, and one that stays away is not", async () => {
  const bench = await openBench();
  const folder = bench.write("moved", "export default () => 1;");
  const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
  renameSync(folder, `${folder}-two`);
  const still = isStill(folder);
  await pause(50);
  renameSync(`${folder}-two`, folder);
  await pause(200);
  renameSync(folder, `${folder}-two`);
  expect(await still).toBe(true);
  expect(await isStill(folder)).toBe(false);
});

test("folders that exchange their names serve under them, and never stop", async () => {
  const bench = await openBench();
  const names = ["one", "two", "three"];
  const contractIn = (folder: string) => join(bench.root, "controllers", folder, "contract.yaml");
  for (const name of names) bench.write(name, `export default () => "${name}";`);
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  let calling = true;
  const outcomes = new Set<string>();
  const calls = (async () => {
    while (calling) for (const name of names) outcomes.add(await bench.outcome(name));
  })();
  for (const [at, folder] of names.entries())
    writeFileSync(contractIn(folder), JSON.stringify(contractOf(names[(at + 1) % 3] as string)));
  await vi.waitFor(async () => {
    expect(await Promise.all(names.map((name) => bench.invoke(name)))).toEqual(["three", "one", "two"]);
  }, 10_000);
  calling = false;
  await calls;
  expect([...outcomes]).toEqual(["ok"]);
  await session.close();
});

test("of folders that exchange their names, one that does not load holds none, and the other one's ends with its folder", async () => {
  const bench = await openBench();
  const folderOf = (name: string) => join(bench.root, "controllers", name);
  const rename = (folder: string, name: string) =>
    writeFileSync(join(folderOf(folder), "contract.yaml"), JSON.stringify(contractOf(name)));
  for (const name of ["one", "two"]) bench.write(name, `export default () => "${name}";`);
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  writeFileSync(join(folderOf("one"), "handler.ts"), 'throw new Error("no");');
  await next("invalid");
  rename("one", "two");
  await next("invalid");
  rename("two", "one");
  await vi.waitFor(async () => expect(await bench.invoke("one")).toBe("two"), 10_000);
  expect(await next("invalid")).toMatchObject({ serving: null });
  await vi.waitFor(async () => expect(await bench.outcome("two")).toBe("controller_not_found"), 10_000);
  rmSync(folderOf("two"), { recursive: true });
  await vi.waitFor(async () => expect(await bench.outcome("one")).toBe("controller_not_found"), 10_000);
  await session.close();
});

test("a name that one controller gives up, and another one that is still loading is about to take, never stops serving", async () => {
  const bench = await openBench();
  const names = ["one", "two"];
  const [one, two] = names.map((name) => bench.write(name, `export default () => "${name}";`)) as [string, string];
  const named = (folder: string, name: string) =>
    writeFileSync(join(folder, "contract.yaml"), JSON.stringify(contractOf(name)));
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  const slow = `for (const end = Date.now() + 400; Date.now() < end; ); export default () => "slow";`;
  writeFileSync(join(two, "handler.ts"), slow);
  await new Promise((done) => setTimeout(done, 100));
  const outcomes = new Set<string>();
  named(two, "one");
  named(one, "three");
  await vi.waitFor(async () => {
    outcomes.add(await bench.outcome("one"));
    expect(await bench.invoke("one")).toBe("slow");
  }, 10_000);
  expect([...outcomes]).toEqual(["ok"]);
  await session.close();
});

test("a controller that is removed is told of where the one that waited for its name does not load", async () => {
  const bench = await openBench();
  const first = bench.write("first", `export default () => 1;`);
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  const heir = bench.write("heir", `throw new Error("no");`);
  writeFileSync(join(heir, "contract.yaml"), JSON.stringify(contractOf("first")));
  await next("invalid");
  rmSync(first, { recursive: true });
  expect(await next("removed")).toMatchObject({ controller: "first" });
  expect(await bench.outcome("first")).toBe("controller_not_found");
  await session.close();
});

test("what is wrong with saves that come one upon the other is told once", async () => {
  const bench = await openBench();
  const folder = bench.write("broken", "export default () => 1;");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  // Each is still loading when the next one comes.
  const save = (n: number) =>
    writeFileSync(
      join(folder, "handler.ts"),
      `for (const end = Date.now() + 200 + ${n}; Date.now() < end; ); throw new Error("no");`,
    );
  for (const n of [1, 2, 3]) {
    save(n);
    await new Promise((done) => setTimeout(done, 100));
  }
  await next("invalid");
  await new Promise((done) => setTimeout(done, 500));
  await session.close();
  const rest: string[] = [];
  for await (const event of session.events) rest.push(event.type);
  expect(rest).toEqual(["stopped"]);
});

test("a module that is empty while it is saved is not taken for one without what is imported of it", async () => {
  const bench = await openBench();
  const folder = bench.write("half", handler(1));
  put(join(folder, "lib.ts"), "export const n = 1;");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  writeFileSync(join(folder, "lib.ts"), "");
  const place = { file: "controllers/half/handler.ts", line: 1, code: "build_failed" };
  const fix = "Import a name that the module exports.";
  expect(await next("invalid")).toMatchObject({ problems: [{ ...place, fix }], serving: "1.0.0" });
  expect(await bench.invoke("half")).toEqual({ n: 2 });
  await session.close();
});

test("saves are heard in a folder that was replaced by a link, and in the one that takes the link's place", async () => {
  const bench = await openBench();
  const folder = bench.write("moved", handler(1));
  put(join(folder, "lib.ts"), "export const n = 1;");
  const aside = join(bench.root, "aside");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  let n = 1;
  const heard = async () => {
    writeFileSync(join(folder, "lib.ts"), `export const n = ${++n};`);
    await vi.waitFor(async () => expect(await bench.invoke("moved")).toEqual({ n: n + 1 }), 5_000);
  };
  renameSync(folder, aside);
  symlinkSync(aside, folder);
  await new Promise((done) => setTimeout(done, 500));
  await heard();
  rmSync(folder);
  cpSync(aside, folder, { recursive: true });
  await new Promise((done) => setTimeout(done, 500));
  await heard();
  await heard();
  await session.close();
});

test("a new folder of many files is built once", async () => {
  const bench = await openBench();
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  const staged = bench.write("many", "export default () => 1;");
  for (let n = 0; n < 40; n++) put(join(staged, `${n}.ts`), "export {};");
  await next("reload");
  writeFileSync(join(staged, "handler.ts"), "export default () => {");
  expect(await next("invalid")).toMatchObject({ controller: "many" });
  writeFileSync(join(staged, "handler.ts"), "export default () => 2;");
  await next("reload");
  await session.close();
  const rest: string[] = [];
  for await (const event of session.events) rest.push(event.type);
  expect(rest.filter((type) => type === "invalid")).toEqual([]);
});

test("of two sessions on one folder, what is left serves on when the other ends", async () => {
  const bench = await openBench();
  bench.write("shared", "export default () => 1;");
  const folder = join(bench.root, "controllers");
  const [first, second] = [await bench.runtime.develop({ folder }), await bench.runtime.develop({ folder })];
  await second.close();
  expect(await bench.invoke("shared")).toBe(1);
  await first.close();
  expect(await bench.outcome("shared")).toBe("controller_not_found");
});

test("a link to a controller's folder, or to its contract, is followed: at the start and at a save behind it", async () => {
  const bench = await openBench();
  const elsewhere = join(bench.root, "elsewhere");
  put(join(elsewhere, "handler.ts"), "export default ({ input }) => input;");
  const outside = `${bench.root}-outside`;
  onTestFinished(() => rmSync(outside, { recursive: true }));
  put(join(outside, "contract.yaml"), JSON.stringify(contractOf("linked")));
  symlinkSync(join(outside, "contract.yaml"), join(elsewhere, "contract.yaml"));
  mkdirSync(join(bench.root, "controllers"));
  symlinkSync(elsewhere, join(bench.root, "controllers", "linked"));
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  expect(await next("ready")).toMatchObject({ controllers: [{ name: "linked" }] });
  put(join(elsewhere, "handler.ts"), "export default () => 2;");
  await next("reload");
  expect(await bench.invoke("linked", 1)).toBe(2);
  put(join(outside, "contract.yaml"), JSON.stringify(contractOf("linked", { input_schema: { type: "string" } })));
  expect(await next("reload")).toMatchObject({ changed: [`../${basename(outside)}/contract.yaml`] });
  expect(await bench.outcome("linked", 1)).toBe("input_invalid");
  await session.close();
});

test("a link to the folder of all controllers is followed, to another one too", async () => {
  const bench = await openBench();
  const made = (place: string, n: number) => {
    put(join(bench.root, place, "a", "contract.yaml"), JSON.stringify(contractOf("a")));
    put(join(bench.root, place, "a", "n.txt"), String(n));
    put(join(bench.root, place, "a", "handler.ts"), handlerOfText);
  };
  const handlerOfText = `import n from "./n.txt" with { type: "text" }; export default () => Number(n);`;
  made("first", 1);
  made("second", 10);
  const folder = join(bench.root, "controllers");
  symlinkSync("first", folder);
  const { session, next, following } = await start(folder, bench);
  await next("ready");
  const reloaded = async () => [(await next("reload")).changed, await bench.invoke("a", {})];
  put(join(bench.root, "first", "a", "n.txt"), "2");
  expect(await reloaded()).toEqual([["controllers/a/n.txt"], 2]);
  put(join(bench.root, "first", "b", "handler.ts"), "export default () => 3;");
  put(join(bench.root, "first", "b", "contract.yaml"), JSON.stringify(contractOf("b")));
  expect((await next("reload")).controller).toBe("b");
  symlinkSync("second", join(bench.root, "next"));
  renameSync(join(bench.root, "next"), folder);
  // In either order.
  const told = [await following(), await following()].map(({ value }) => `${value.type} ${value.controller}`);
  expect(told.sort()).toEqual(["reload a", "removed b"]);
  expect(await bench.invoke("a", {})).toBe(10);
  put(join(bench.root, "second", "a", "n.txt"), "11");
  expect((await reloaded())[1]).toBe(11);
  await session.close();
});

test("a handler that is a link to nowhere is told of as that", async () => {
  const bench = await openBench();
  const folder = join(bench.root, "controllers");
  put(join(folder, "a", "contract.yaml"), JSON.stringify(contractOf("a")));
  symlinkSync("nowhere.ts", join(folder, "a", "handler.ts"));
  const { session, next } = await start(folder, bench);
  expect((await next("invalid")).problems).toMatchObject([
    { code: "handler_missing", file: "controllers/a/handler.ts", message: "handler.ts cannot be reached." },
  ]);
  await session.close();
});

test("a folder that cannot be looked into is told of, and taken up once it can", async () => {
  const bench = await openBench();
  const folder = join(bench.root, "controllers");
  put(join(folder, "good", "handler.ts"), "export default () => 1;");
  put(join(folder, "good", "contract.yaml"), JSON.stringify(contractOf("good")));
  // As for whoever lacks the permission; root has every one.
  symlinkSync("shut", join(folder, "shut"));
  const { session, next } = await start(folder, bench);
  expect(await next("ready")).toMatchObject({ controllers: [{ name: "good" }], invalid: ["shut"] });
  const { controller, problems } = await next("invalid");
  expect([controller, problems.map(({ code }) => code)]).toEqual(["shut", ["contract_unreadable"]]);
  rmSync(join(folder, "shut"));
  put(join(folder, "shut", "handler.ts"), "export default () => 1;");
  put(join(folder, "shut", "contract.yaml"), JSON.stringify(contractOf("shut")));
  expect(await next("reload")).toMatchObject({ controller: "shut" });
  await session.close();
});

test("a contract that is no file is refused, and not read", async () => {
  const bench = await openBench();
  const folder = bench.write("device", "export default () => 1;");
  rmSync(join(folder, "contract.yaml"));
  symlinkSync("/dev/null", join(folder, "contract.yaml"));
  const error = await bench.failure(bench.runtime.build(folder));
  expect(error.message).toContain("it is not a file");
});

test("a folder may have a name that is a pattern elsewhere", async () => {
  const bench = await openBench();
  const folder = join(bench.root, "a*[b]");
  put(join(folder, "contract.yaml"), JSON.stringify(contractOf("starred")));
  put(join(folder, "handler.ts"), "export default () => 1;");
  expect(await bench.runtime.build(folder)).toMatchObject({ contract: { name: "starred" } });
});

test("builds go on where the bundler's process was killed", async () => {
  const bench = await openBench();
  const folders = ["killed", "too"].map((name) => bench.write(name, "export default () => 1;"));
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  const [bundler] = execFileSync("pgrep", ["-P", `${process.pid}`, "esbuild"], { encoding: "utf8" }).split("\n");
  process.kill(Number(bundler), "SIGKILL");
  // Neither of them ends the new process in which the other is built.
  for (const folder of folders) writeFileSync(join(folder, "handler.ts"), "export default () => 2;");
  for (const _ of folders) await next("reload");
  expect([await bench.invoke("killed"), await bench.invoke("too")]).toEqual([2, 2]);
  await session.close();
});

test("a module that never ends loading gives way to the next save, and to the session's end", async () => {
  const bench = await openBench();
  const folder = bench.write("stuck", "export default () => 1;");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  const other = await start(join(bench.root, "controllers"), bench);
  for (const one of [next, other.next]) await one("ready");
  writeFileSync(join(folder, "handler.ts"), "for (;;);\nexport default () => 2;");
  await new Promise((done) => setTimeout(done, 500));
  const began = performance.now();
  const closing = other.session.close();
  writeFileSync(join(folder, "handler.ts"), "export default () => 3;");
  await next("reload");
  await closing;
  expect(performance.now() - began).toBeLessThan(within(12_000));
  expect(await bench.invoke("stuck")).toBe(3);
  await session.close();
});

test("a contract's change takes effect, new controllers appear, removed ones go", async () => {
  const bench = await openBench();
  bench.write("one", "export default (request) => request.input;");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  expect(await bench.outcome("one", { a: 1 })).toBe("ok");
  bench.write("one", "export default (request) => request.input;", {
    version: "1.1.0",
    input_schema: { type: "string" },
  });
  expect(await next("reload")).toMatchObject({ version: "1.1.0" });
  expect(await bench.outcome("one", { a: 1 })).toBe("input_invalid");
  bench.write("two", "export default () => 2;");
  expect(await next("reload")).toMatchObject({ controller: "two" });
  expect(await bench.invoke("two")).toBe(2);
  rmSync(join(bench.root, "controllers", "two"), { recursive: true });
  expect(await next("removed")).toMatchObject({ controller: "two" });
  expect(await bench.outcome("two")).toBe("controller_not_found");
  await session.close();
});

test("a package, a file elsewhere or a path of tsconfig.json that was missing is taken up once it is there", async () => {
  const bench = await openBench();
  const folder = bench.write("counter", 'import n from "@late/pkg/n.js"; export default () => ({ n });');
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  expect(await next("ready")).toMatchObject({ controllers: [], invalid: ["counter"] });
  put(join(bench.root, "node_modules/@late/pkg/n.js"), "module.exports = 7;");
  put(join(bench.root, "node_modules/@late/pkg/package.json"), '{"name": "@late/pkg", "version": "1.0.0"}');
  await next("reload");
  expect(await bench.invoke("counter")).toEqual({ n: 7 });
  put(join(bench.root, "node_modules/@late/pkg/n.js"), "module.exports = 6;");
  await next("reload");
  expect(await bench.invoke("counter")).toEqual({ n: 6 });
  const imports = (name: string) =>
    writeFileSync(join(folder, "handler.ts"), `import { n } from "${name}"; export default () => ({ n });`);
  imports("../../lib/late.js");
  await next("invalid");
  put(join(bench.root, "lib/late.ts"), "export const n = 8;");
  await next("reload");
  expect(await bench.invoke("counter")).toEqual({ n: 8 });
  imports("@lib/late.ts");
  await next("invalid");
  put(join(bench.root, "tsconfig.json"), '{"compilerOptions": {"paths": {"@lib/*": ["./lib/*"]}}}');
  await next("reload");
  put(join(bench.root, "other/late.ts"), "export const n = 9;");
  put(join(bench.root, "tsconfig.json"), '{"compilerOptions": {"paths": {"@lib/*": ["./other/*"]}}}');
  await next("reload");
  expect(await bench.invoke("counter")).toEqual({ n: 9 });
  await session.close();
});

test("a file whose time lies ahead of the clock is taken up once, and again when it changes", async () => {
  const bench = await openBench();
  const file = join(bench.root, "late.ts");
  put(file, "");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const known = new Map<string, number>();
  const act = vi.fn();
  // As a build that began long before the file's time.
  const wait = () => onTestFinished(whenThere([file], 0, known, act));
  wait();
  vi.advanceTimersByTime(1_000);
  expect(act).toHaveBeenCalledTimes(1);
  wait();
  vi.advanceTimersByTime(5_000);
  expect(act).toHaveBeenCalledTimes(1);
  await new Promise((done) => setTimeout(done, 20));
  put(file, "changed");
  vi.advanceTimersByTime(1_000);
  expect(act).toHaveBeenCalledTimes(2);
});

test("native addons are refused by the package's name, builtins by use", async () => {
  const bench = await openBench();
  const folder = bench.write("native", `import addon from "fastthing"; export default () => addon();`);
  put(join(folder, "node_modules/fastthing/package.json"), `{"name":"fastthing","main":"index.js"}`);
  put(join(folder, "node_modules/fastthing/index.js"), `module.exports = require("./build/thing.node");`);
  put(join(folder, "node_modules/fastthing/build/thing.node"), "");
  const error = await bench.failure(bench.runtime.build(folder));
  expect(error.message).toContain(`the package "fastthing" loads a native addon`);
  await bench.deploy(
    "reader",
    `import { readFileSync } from "node:fs"; export default () => { try { return readFileSync("/etc/passwd", "utf8"); } catch (e) { return e.message; } };`,
  );
  expect(await bench.invoke("reader")).toContain("node:fs.readFileSync is not available in a controller");
});

test("no call fails while versions are swapped under load, and old cells go", async () => {
  const bench = await openBench();
  const folder = bench.write("busy", handler(0));
  put(join(folder, "lib.ts"), "export const n = 0;");
  const { session, next } = await start(join(bench.root, "controllers"), bench);
  await next("ready");
  const outcomes = new Map<string, number>();
  let running = true;
  const clients = Array.from({ length: 12 }, async () => {
    while (running) {
      const outcome = await bench.outcome("busy");
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  });
  for (let i = 1; i <= 5; i++) {
    writeFileSync(join(folder, "handler.ts"), handler(i));
    await next("reload");
  }
  running = false;
  await Promise.all(clients);
  expect([...outcomes.keys()]).toEqual(["ok"]);
  expect(await bench.invoke("busy")).toEqual({ n: 5 });
  await session.close();
});
