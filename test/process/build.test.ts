// What a clone is built into, wherever it lies.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "#test/temporary.ts";
import { makeProject } from "./magic.ts";
import { asOlderNode } from "./older-node.ts";

const here = fileURLToPath(new URL("../..", import.meta.url));

test("a clone whose path names the project's own folders, and has marks of shells and URLs, is built and runs", async () => {
  const folder = temporaryFolder();
  const clone = join(folder, "src", "commander", "a #1 %41 é'$x");
  const modules = join(clone, "node_modules");
  mkdirSync(modules, { recursive: true });
  for (const name of ["bin", "build.js", "daemon", "package.json", "sdk", "src", "templates"])
    cpSync(join(here, name), join(clone, name), { recursive: true });
  // Those that say where they lie; all others are found further up.
  for (const name of ["chokidar", "commander", "readdirp"])
    cpSync(realpathSync(join(here, "node_modules", name)), join(modules, name), { recursive: true });
  symlinkSync(realpathSync(join(here, "node_modules")), join(folder, "node_modules"));
  const project = await makeProject(join(clone, "bin", "magic.js"));
  onTestFinished(() => project.remove());
  const unbuilt = await project.magic(["demo"]);
  expect([unbuilt.code, unbuilt.stderr]).toEqual([1, expect.stringContaining('run "npm run prepare"')]);
  execFileSync(process.execPath, ["build.js"], { cwd: clone });
  const magic = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await project.magic(args);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  };
  await magic("scaffold", "--name", "hello");
  await magic("daemon", "start", "--port", "0", "--json");
  await magic("deploy", "controllers/hello");
  const invoked = JSON.parse(await magic("invoke", "hello", "--input", '{"name":"Ada"}', "--json"));
  expect(invoked).toMatchObject({ output: { greeting: "Hello, Ada!" } });
  await magic("daemon", "stop");
}, 60_000);

test("a clone that is not built says so to an older Node too, and ends", () => {
  const clone = temporaryFolder();
  for (const name of ["bin", "package.json"]) cpSync(join(here, name), join(clone, name), { recursive: true });
  symlinkSync(realpathSync(join(here, "node_modules")), join(clone, "node_modules"));
  const env = { PATH: process.env["PATH"] ?? "", MAGIC_HOME: join(clone, "home") };
  const words = ["--import", asOlderNode, join(clone, "bin", "magic.js"), "demo"];
  const { status, stderr } = spawnSync(process.execPath, words, { env, encoding: "utf8", timeout: 10_000 });
  expect([status, stderr]).toEqual([1, expect.stringContaining('run "npm run prepare"')]);
});
