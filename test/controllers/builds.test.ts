// What becomes of builds that take too long, and of those beside them. A module that is a pipe keeps esbuild waiting for who writes to it.
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openBundler } from "#daemon/controllers/bundle/bundler.ts";
import { ask, BuildTooLong } from "#daemon/controllers/bundle/service.ts";
import { within } from "../patience.ts";
import { type Bench, openBench, settle } from "./harness.ts";

const waiting = `import "./late.js";\nexport default ({ input }) => import(\`./tables/\${input}.json\`);`;

function writeWaiting(bench: Bench, name: string, handler = waiting): string {
  const folder = bench.write(name, handler);
  execFileSync("mkfifo", [join(folder, "late.js")]);
  return folder;
}

/** Of esbuild, of this process. */
function bundlers(): string[] {
  const pids = execFileSync("sh", ["-c", `pgrep -P ${process.pid} esbuild || true`], { encoding: "utf8" });
  return pids.split("\n").filter((pid) => pid !== "");
}

async function took(work: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work;
  return performance.now() - began;
}

test("a build that takes too long is refused and left, and one beside it is made all the same", async () => {
  const [bench, patient] = [await openBench({ buildWithinMs: 500 }), await openBench()];
  const beside = writeWaiting(patient, "beside", `import "./late.js"; export default () => 1;`);
  const built = patient.runtime.build(beside);
  const tooLong = bench.failure(bench.runtime.build(writeWaiting(bench, "hog")));
  await new Promise((resolve) => setTimeout(resolve, 200));
  const [first] = bundlers();
  expect(first).toBeDefined();

  const error = await tooLong;
  expect(error.code).toBe("build_timeout");
  expect(error.extra["problems"]).toMatchObject([
    { file: "controllers/hog/handler.ts", line: 2, column: 31, code: "build_timeout" },
  ]);
  expect(await settle(() => !bundlers().includes(first as string))).toBe(true);
  await writeFile(join(beside, "late.js"), "");
  expect((await built).contract.name).toBe("beside");
});

test("in a session it keeps what serves, holds up nobody, and gives way to the next save", async () => {
  const bench = await openBench({ buildWithinMs: 1_500 });
  const [hog, other] = ["hog", "other"].map((name) => bench.write(name, "export default () => 1;")) as [string, string];
  const session = await bench.runtime.develop({ folder: join(bench.root, "controllers") });
  const events = session.events[Symbol.asyncIterator]();
  const next = async () => (await events.next()).value;
  expect(await next()).toMatchObject({ type: "ready", invalid: [] });

  execFileSync("mkfifo", [join(hog, "late.js")]);
  writeFileSync(join(hog, "handler.ts"), waiting);
  await new Promise((resolve) => setTimeout(resolve, 300));
  writeFileSync(join(other, "handler.ts"), "export default () => 2;");
  expect(await next()).toMatchObject({ type: "reload", controller: "other" });
  expect(await next()).toMatchObject({ type: "invalid", serving: "1.0.0", problems: [{ code: "build_timeout" }] });
  expect([await bench.invoke("hog"), await bench.invoke("other")]).toEqual([1, 2]);

  for (const folder of [hog, other]) writeFileSync(join(folder, "handler.ts"), "export default () => 3;");
  expect([await next(), await next()]).toMatchObject([{ type: "reload" }, { type: "reload" }]);
  expect([await bench.invoke("hog"), await bench.invoke("other")]).toEqual([3, 3]);
});

test("a newer save does not wait for a build that may take long still", async () => {
  const bench = await openBench();
  const folder = bench.write("hog", "export default () => 1;");
  const session = await bench.runtime.develop({ folder: join(bench.root, "controllers") });
  const events = session.events[Symbol.asyncIterator]();
  await events.next();
  execFileSync("mkfifo", [join(folder, "late.js")]);
  writeFileSync(join(folder, "handler.ts"), waiting);
  await new Promise((resolve) => setTimeout(resolve, 300));
  writeFileSync(join(folder, "handler.ts"), "export default () => 2;");
  expect((await events.next()).value).toMatchObject({ type: "reload", controller: "hog" });
});

test("whoever waits for a build may leave, and a daemon's stop does not wait for one", async () => {
  const bench = await openBench();
  const folder = writeWaiting(bench, "hog");
  const { build, develop, stopDevelopment } = bench.runtime;
  const underWay = () => new Promise((resolve) => setTimeout(resolve, 300));

  const leaving = new AbortController();
  const left = bench.failure(build(folder, leaving.signal));
  const opening = develop({ folder, signal: leaving.signal });
  await underWay();
  leaving.abort(new Error("left"));
  expect(await took(Promise.all([left, opening]))).toBeLessThan(within(2_000));
  expect((await left).message).toBe("left");

  const stopped = bench.failure(build(folder));
  const session = develop({ folder });
  await underWay();
  expect(await took(stopDevelopment("the daemon stops"))).toBeLessThan(within(2_000));
  expect((await stopped).code).toBe("draining");
  const events = [];
  for await (const event of (await session).events) events.push(event);
  expect(events).toMatchObject([{ type: "stopped", reason: "the daemon stops" }]);
});

test("a source that is not UTF-8 is refused at its line, and one that says U+FFFD itself is not", async () => {
  const bench = await openBench();
  const folder = bench.write(
    "odd",
    `import bytes from "./odd.bin" with { type: "bytes" }; export default () => "\uFFFD" + bytes[0];`,
  );
  const latin = Buffer.from("// first\nexport default () => 'caf\u00e9';", "latin1");
  writeFileSync(join(folder, "odd.bin"), latin);
  expect((await bench.runtime.build(folder)).code).toContain("\uFFFD");
  const refused = async (source: Buffer, file = "handler.ts") => {
    writeFileSync(join(folder, file), source);
    return (await bench.failure(bench.runtime.build(folder))).extra["problems"];
  };
  const fix = expect.stringContaining("UTF-8");
  expect(await refused(latin)).toMatchObject([
    { file: "controllers/odd/handler.ts", line: 2, code: "build_failed", fix },
  ]);
  expect(await refused(Buffer.from("\uFEFFexport default () => 1;", "utf16le"))).toMatchObject([{ line: 1, fix }]);
  writeFileSync(
    join(folder, "handler.ts"),
    `import text from "./text.md" with { type: "text" }; export default () => text;`,
  );
  expect(await refused(latin, "text.md")).toMatchObject([{ file: "controllers/odd/text.md", line: 2, fix }]);
});

test("what is imported and not there: the package is named, and no command that would install something else", async () => {
  const bench = await openBench();
  const imported = {
    "./lib.ts": "make the file",
    "/lib.ts": "make the file",
    "#lib": "`imports` in package.json",
    lodash: "`npm install lodash`",
    "lodash/fp": "`npm install lodash`",
    "@scope/name/deep/file.js": "`npm install @scope/name`",
    "file:///lib.ts": "by its relative path",
  };
  for (const [path, fix] of Object.entries(imported)) {
    const handler = `import lib from ${JSON.stringify(path)}; export default () => lib;`;
    const error = await bench.failure(bench.runtime.build(bench.write("missing", handler)));
    expect(error.extra["problems"], path).toMatchObject([{ line: 1, fix: expect.stringContaining(fix) }]);
  }
});

test("what a module does not export may be asked of it as a whole", async () => {
  const bench = await openBench();
  const folder = bench.write("asks", `import * as own from "./own.ts"; export default () => own.extra ?? own.n;`);
  writeFileSync(join(folder, "own.ts"), "export const n = 1;");
  expect((await bench.runtime.build(folder)).contract.name).toBe("asks");
});

test("of a bundle that is too large nothing is kept", async () => {
  const bench = await openBench();
  const folder = bench.write(
    "large",
    `import text from "./large.md" with { type: "text" }; export default () => text;`,
  );
  writeFileSync(join(folder, "large.md"), "x".repeat(13 * 2 ** 20));
  const built = bench.failure(bench.runtime.build(folder));
  expect(await settle(() => bundlers().length > 0)).toBe(true);
  const [bundler] = bundlers();
  expect((await built).extra["problems"]).toMatchObject([{ code: "bundle_too_large" }]);
  expect(await settle(() => !bundlers().includes(bundler as string))).toBe(true);
});

test.skipIf(!existsSync("/proc/self/statm"))(
  "a build that is read without end is refused before it takes the machine's memory, and those beside it are made",
  async () => {
    const bench = await openBench();
    const folderOf = (name: string) => bench.write(name, `import "./late.js"; export default () => "${name}";`);
    const [endless, beside] = [folderOf("endless"), folderOf("beside")];
    writeFileSync(join(endless, "late.js"), "//# sourceMappingURL=/dev/zero");
    execFileSync("mkfifo", [join(beside, "late.js")]);
    const bundlerOf = (folder: string) => openBundler(folder, bench.root, 60_000, 500 * 2 ** 20);
    const [bundler, other] = [bundlerOf(endless), bundlerOf(beside)];
    const built = [bundler.build(), other.build()];
    expect(await settle(() => bundlers().length > 0)).toBe(true);
    const [first] = bundlers();
    expect(await settle(() => !bundlers().includes(first as string), 10_000)).toBe(true);
    await writeFile(join(beside, "late.js"), "");
    expect(await Promise.all(built)).toMatchObject([
      { problems: [{ file: "handler.ts", message: expect.stringContaining("memory") }] },
      { ok: true },
    ]);
  },
);

test("builds that share the processors have as much time each as one that is alone", async () => {
  const withinMs = 400;
  const never = () => ask(() => new Promise<never>(() => {}), { withinMs }).catch((error: Error) => error);
  expect(await never()).toBeInstanceOf(BuildTooLong);
  const many = Array.from({ length: 4 * availableParallelism() }, never);
  expect(await took(Promise.all(many))).toBeGreaterThan(3 * withinMs);
  for (const one of many) expect(await one).toBeInstanceOf(BuildTooLong);
});

test("the cell's own programs are bundled once more where esbuild's process was ended meanwhile", async () => {
  vi.resetModules();
  const { cellEntries } = await import("#daemon/controllers/cell/entries.ts");
  const { currentService, endService } = await import("#daemon/controllers/bundle/service.ts");
  const before = bundlers();
  const found = cellEntries();
  expect(await settle(() => bundlers().some((pid) => !before.includes(pid)))).toBe(true);
  endService(currentService());
  expect(existsSync((await found).zygote)).toBe(true);
});
