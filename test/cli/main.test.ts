// The outer forms of the command line, on the built program: help, exit codes, what goes to which stream.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { isNoun } from "#commands/command.ts";
import { changeSetting } from "#commands/config/change.ts";
import { oneSetting } from "#commands/config/settings.ts";
import { createProgram } from "#commands/program.ts";
import { groups } from "#commands/registry.ts";
import { makeCertificate } from "#daemon/http/tls/certificate.ts";
import { listen } from "../listen.ts";
import { CONTROL, createSandbox, program, type Sandbox } from "./magic.ts";

// Real processes on a machine that may be busy: nothing here depends on how long it takes.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

let box: Sandbox;
beforeAll(() => {
  box = createSandbox();
});
afterAll(() => box.dispose());

const lastLine = (text: string) => JSON.parse(text.trim().split("\n").at(-1) ?? "");

test("every command loads, and describes itself without a clash of options", async () => {
  for (const group of groups) {
    for (const [name, entry] of Object.entries(group.commands)) {
      const leaves = isNoun(entry) ? Object.entries((await entry.verbs()).verbs) : [[name, entry] as const];
      for (const [verb, leaf] of leaves) {
        const { default: module } = await leaf.load();
        module.configure?.(new Command(verb));
        expect(typeof module.run, `${name} ${verb}`).toBe("function");
        expect(leaf.summary.length, `${name} ${verb}`).toBeLessThan(90);
      }
    }
  }
});

test("--help lists every command on stdout and exits 0", async () => {
  for (const args of [["--help"], ["help"], []]) {
    const { code, stdout, stderr } = await box.magic(args);
    expect([code, stderr]).toEqual([0, ""]);
    for (const group of groups) for (const name of Object.keys(group.commands)) expect(stdout).toContain(`  ${name} `);
    expect(stdout).not.toMatch(CONTROL);
  }
});

test("help on a narrow terminal breaks between words", async () => {
  const { root } = await createProgram(["sync"], () => {});
  for (const command of [root, ...root.commands]) {
    const help = command.configureOutput({ getOutHelpWidth: () => 40 }).helpInformation();
    const described = help.split("\n").filter((line) => /^ {2}[a-z]/.test(line));
    for (const line of described) expect(line.length, line).toBeLessThanOrEqual(40);
  }
});

test("help of a command and of a verb", async () => {
  const scaffold = await box.magic(["--quiet", "help", "scaffold"]);
  expect(scaffold.stdout).toContain("--template <template>");
  const start = await box.magic(["daemon", "start", "--help"]);
  expect([start.code, start.stdout.includes("--port")]).toEqual([0, true]);
});

test("--version says the version, as JSON too", async () => {
  expect((await box.magic(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const args of [
    ["--version", "--json"],
    ["--json", "--version"],
  ])
    expect(JSON.parse((await box.magic(args)).stdout)).toEqual({ version: expect.any(String) });
});

test("slips are answered with a suggestion, exit code 2 and an empty stdout", async () => {
  for (const [args, said] of [
    [["scafold"], "Did you mean scaffold?"],
    [["daemon", "strat"], "Did you mean start?"],
    [["validate", "--jsno"], "Did you mean --json?"],
    [["scafold", "--help"], "Did you mean scaffold?"],
    [["status"], "Did you mean daemon status?"],
    [["verify"], "Did you mean audit verify?"],
    [["create"], "Did you mean one of connection create, sync create,"],
    [["daemon"], "needs a verb"],
    [["--quiet"], "needs a command"],
    [["--output", "xml", "validate"], "xml"],
  ] as const) {
    const { code, stdout, stderr } = await box.magic(args);
    expect([code, stdout], args.join(" ")).toEqual([2, ""]);
    expect(stderr).toContain(said);
    expect(stderr).toContain("--help");
  }
});

test("a folder whose name Node cannot import from is refused before anything is tried", async () => {
  const folder = join(box.folder, "back\\slash");
  mkdirSync(folder);
  writeFileSync(join(folder, "magic.yaml"), "version: 1\n");
  for (const args of [["test"], ["dev"]]) {
    const { code, stderr } = await box.magic(args, { cwd: folder });
    expect([code, stderr]).toEqual([2, expect.stringContaining("holds a backslash")]);
  }
});

test("everything missing is one error that lists all of it", async () => {
  const { code, stdout, stderr } = await box.magic(["controller", "promote", "--json"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(lastLine(stderr)).toMatchObject({ code: "usage", exit_code: 2, missing: ["<name>", "<version>"] });
  const scaffold = await box.magic(["scaffold", "--json"]);
  expect(lastLine(scaffold.stderr)).toMatchObject({ code: "usage", missing: ["--name <name>"] });
});

test("an empty --root or --url, a variable that is not set, means no other project and no other daemon", async () => {
  for (const flag of ["--root", "--url"]) {
    const { code, stdout, stderr } = await box.magic(["daemon", "status", flag, "", "--json"]);
    expect([code, stdout, lastLine(stderr).code]).toEqual([2, "", "usage"]);
    expect(lastLine(stderr).detail).toContain(flag);
  }
});

test("daemon stop --url stops no other daemon than the one that it names: none", async () => {
  const { code, stdout, stderr } = await box.magic(["daemon", "stop", "--url", "https://magic.example.com", "--json"]);
  expect([code, stdout, lastLine(stderr).code]).toEqual([2, "", "usage"]);
  for (const [line, known] of [
    [["daemon"], false],
    [["daemon", "stop"], false],
    [["doctor"], false],
    [["logs"], true],
  ] as const)
    expect((await box.magic([...line, "--help"])).stdout.includes("--url"), line.join(" ")).toBe(known);
  const { stdout: script } = await box.magic(["completion", "bash"]);
  expect(script).toMatch(/^ +"daemon stop"\) (?!.*--url)/m);
});

test("with --json a failing command writes one document, on stderr's last line", async () => {
  // Node warns of these two on stderr, after everything else.
  const env = { NO_COLOR: "1", FORCE_COLOR: "1" };
  const { code, stdout, stderr } = await box.magic(["validate", "nowhere", "--json"], { env });
  expect([code, stdout]).toEqual([4, ""]);
  expect(lastLine(stderr)).toMatchObject({
    code: "not_found",
    exit_code: 4,
    request_id: null,
    detail: expect.any(String),
  });
});

test("a path that cannot be used is said to be so, not an error of magic's own", async () => {
  for (const args of [
    ["daemon", "start", "--root", program],
    ["connection", "list", "--root", "/nowhere/at/all"],
    ["scaffold", "--name", "ab", "--dir", program],
    ["deploy", "/nowhere/at/all"],
    ["connector", "test", box.folder, "--config", "{}"],
    ["validate", "--root", program],
  ]) {
    const { code, stdout, stderr } = await box.magic([...args, "--json"]);
    expect([code, stdout, lastLine(stderr)], args.join(" ")).toMatchObject([
      4,
      "",
      { code: "not_found", exit_code: 4 },
    ]);
  }
});

test("a magic.yaml that is a folder or a pipe is said to be no file, and is not waited for", async () => {
  for (const make of ["mkdir", "mkfifo"]) {
    const cwd = join(box.folder, make);
    mkdirSync(cwd);
    execFileSync(make, [join(cwd, "magic.yaml")]);
    for (const args of [
      ["config", "get"],
      ["config", "set", "daemon.port", "0"],
      ["scaffold", "--name", "x"],
      ["test"],
    ]) {
      const { code, stderr } = await box.magic([...args, "--json"], { cwd });
      expect([code, lastLine(stderr).detail], `${make} ${args}`).toEqual([
        4,
        expect.stringMatching(/it is not a file/),
      ]);
    }
    const start = await box.magic(["daemon", "start", "--json"], { cwd });
    expect([start.code, lastLine(start.stderr).detail]).toEqual([3, expect.stringMatching(/it is not a file/)]);
    const { stdout } = await box.magic(["doctor"], { cwd });
    expect(stdout).toContain("it cannot be read: it is not a file");
  }
});

/** A command's exit code and error code, run behind what the shell does first. */
function ranAfter(first: string, ...args: string[]): unknown[] {
  const words = ["-c", `${first} && exec "$@" --json`, "sh", process.execPath, program, ...args];
  const { status, stderr } = spawnSync("sh", words, { cwd: box.folder, env: box.env, encoding: "utf8" });
  return [status, lastLine(stderr).code];
}

test("where the current folder is gone, what needs none works, and the rest says so", () => {
  const ran = (...args: string[]) => ranAfter("mkdir gone && cd gone && rmdir ../gone", ...args);
  expect(ran("connection", "list", "--url", "http://127.0.0.1:9")).toEqual([6, "daemon_unavailable"]);
  expect(ran("connection", "list")).toEqual([4, "not_found"]);
  expect(ran("sync", "run", "--from", "a.csv", "--to", "b.csv")).toEqual([4, "not_found"]);
});

// Not every file system takes such a name.
test.skipIf(process.platform !== "linux")(
  "a folder whose name is no UTF-8 is refused, and no other project taken",
  () => {
    const ran = ranAfter(
      'name=$(printf \'bad\\377\') && mkdir "$name" && cd "$name" && touch magic.yaml',
      "connection",
      "list",
    );
    expect(ran).toEqual([2, "usage"]);
  },
);

test("connector add: no part of the way to a manifest is without TLS", async () => {
  const cert = makeCertificate(["127.0.0.1"], new Date(), 1);
  const ca = join(box.folder, "ca.pem");
  writeFileSync(ca, cert.cert);
  let asked = 0;
  const plain = await listen(
    createServer((_request, response) => {
      asked++;
      response.writeHead(302, { location: `https://${secure.address}/manifest.yaml` }).end();
    }),
  );
  onTestFinished(plain.close);
  const manifest = readFileSync(new URL("../../daemon/integrations/catalogue/trello.yaml", import.meta.url), "utf8");
  const secure = await listen(
    createTlsServer(cert, (request, response) => {
      const ways: Record<string, string> = { "/a": `${plain.origin}/`, "/b": "/c", "/c": "/manifest.yaml", "/d": "/d" };
      const location = ways[request.url ?? ""];
      if (location === undefined) response.end(manifest);
      else response.writeHead(302, { location }).end();
    }),
  );
  onTestFinished(secure.close);
  const add = (path: string, name: string) =>
    box.magic(["connector", "add", `https://${secure.address}${path}`, "--name", name, "--json"], {
      env: { NODE_EXTRA_CA_CERTS: ca },
    });
  expect(JSON.parse((await add("/b", "direct")).stdout)).toMatchObject({ name: "direct" });
  const { code, stderr } = await add("/a", "around");
  expect([code, asked]).toEqual([8, 0]);
  expect(stderr).toContain("over https only");
  expect((await add("/d", "circle")).stderr).toContain("redirects");
  expect((await box.magic(["connector", "add", "https://"])).code).toBe(8);
});

test("connector eval: answers each case as it comes; whole floats stay floats, long integers keep their digits, ids stay ids", async () => {
  const lines = [
    '{"template": "{{ config.f }} {{ config.f is float }}", "context": {"config": {"f": 5.0}}}',
    '{"template": "{{ [config.i, config.i / 1, 10 / 2] }}", "context": {"config": {"i": 9007199254740993}}}',
    '{"template": "{{ config }}", "context": {"config": {"s": "\\u00005\\u0000", "e": 1e20}}}',
    '{"template": "{{ config.id }}", "context": {"config": {"id": "12J"}}}',
    '{"template": "{{ config.id }}", "context": {"config": {"id": "12e4567"}}}',
  ];
  const child = spawn(process.execPath, [program, "connector", "eval", "--json"], { env: box.env });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const given: unknown[] = [];
  // Each answer comes before the next case, and before the end.
  for (const line of ["no case", ...lines]) {
    child.stdin.write(`${line}\n`);
    given.push((await answers.next()).value);
  }
  child.stdin.end();
  expect(await answers.next()).toMatchObject({ done: true });
  expect(given).toEqual([
    expect.stringContaining('{"error":'),
    '{"value":"5.0 True"}',
    '{"value":[9007199254740993,9007199254740992.0,5.0]}',
    '{"value":{"s":"\\u00005\\u0000","e":1e+20}}',
    '{"value":"12J"}',
    '{"value":"12e4567"}',
  ]);
});

test("scaffold: a controller and its project; a second time it refuses, and nothing has changed", async () => {
  const first = await box.magic(["scaffold", "--name", "hello", "--json"]);
  expect(first.code).toBe(0);
  const made = JSON.parse(first.stdout);
  expect(made).toMatchObject({
    name: "hello",
    template: "minimal",
    project_files: ["magic.yaml", "tsconfig.json", ".gitignore"],
  });
  for (const file of ["contract.yaml", "handler.ts", "handler.test.ts", "Dockerfile", "README.md"])
    expect(existsSync(join(made.path, file)), file).toBe(true);
  writeFileSync(join(made.path, "handler.ts"), "mine");
  const again = await box.magic(["scaffold", "--name", "hello", "--json"]);
  expect([again.code, lastLine(again.stderr).code]).toEqual([7, "exists"]);
  expect(readFileSync(join(made.path, "handler.ts"), "utf8")).toBe("mine");
  writeFileSync(join(made.path, "notes.md"), "keep me");
  expect((await box.magic(["scaffold", "--name", "hello", "--force", "--json"])).code).toBe(0);
  expect(readFileSync(join(made.path, "handler.ts"), "utf8")).toContain("defineHandler");
  expect(readFileSync(join(made.path, "notes.md"), "utf8")).toBe("keep me");
  const cwd = join(made.path, "..");
  const beside = await box.magic(["scaffold", "--name", "beside", "--dir", "more"], { cwd });
  expect([beside.code, existsSync(join(cwd, "more", "beside", "contract.yaml"))]).toEqual([0, true]);
  expect(beside.stdout).toContain("magic deploy more/beside");
  expect((await box.magic(["scaffold", "--name", "beside", "--dir", ""])).code).toBe(2);
  rmSync(join(cwd, "more"), { recursive: true });
});

test("scaffold: words that YAML reads as something else are names too", async () => {
  const inner = createSandbox();
  try {
    for (const name of ["null", "true", "off"])
      expect((await inner.magic(["scaffold", "--name", name])).code, name).toBe(0);
    expect((await inner.magic(["validate"])).code).toBe(0);
  } finally {
    await inner.dispose();
  }
});

test("a variable with a slip is a usage error, not another form or another environment", async () => {
  for (const env of [{ MAGIC_OUTPUT: "JSON" }, { MAGIC_ENVIRONMENT: "Live" }]) {
    const { code, stdout, stderr } = await box.magic(["config", "get"], { env });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(Object.keys(env)[0]);
  }
});

test("of several scaffolds of one name at once, one makes it, and the others take nothing away", async () => {
  const inner = createSandbox();
  try {
    const all = await Promise.all(Array.from({ length: 4 }, () => inner.magic(["scaffold", "--name", "x", "--json"])));
    expect(all.map(({ code }) => code).sort()).toEqual([0, 7, 7, 7]);
    expect((await inner.magic(["validate"])).code).toBe(0);
  } finally {
    await inner.dispose();
  }
});

test("a contract that cannot be read is a problem beside the others; validate does not wait for one that is a pipe", async () => {
  const inner = createSandbox();
  try {
    for (const name of ["odd", "unread", "wrong"]) mkdirSync(join(inner.folder, name));
    execFileSync("mkfifo", [join(inner.folder, "odd", "contract.yaml")]);
    // Whoever reads it, root too, gets an error.
    symlinkSync("/proc/self/mem", join(inner.folder, "unread", "contract.yaml"));
    writeFileSync(join(inner.folder, "wrong", "contract.yaml"), "name: wrong\nversion: one\n");
    const { code, stdout } = await inner.magic(["validate", "odd", "unread", "wrong", "--json"]);
    expect(code).toBe(3);
    const { problems } = JSON.parse(stdout) as { problems: { file: string; code: string; message: string }[] };
    const unreadable = problems.filter((problem) => problem.code === "contract_unreadable");
    expect(unreadable.map(({ file, message }) => `${file}: ${message}`)).toEqual([
      "odd/contract.yaml: The contract cannot be read: it is not a file.",
      expect.stringMatching(/^unread\/contract\.yaml: .*EIO/),
    ]);
    expect(problems.some(({ file }) => file === "wrong/contract.yaml")).toBe(true);
  } finally {
    await inner.dispose();
  }
});

test("scaffold is all or nothing", async () => {
  const inner = createSandbox();
  try {
    writeFileSync(join(inner.folder, "data"), "a file where the db template wants a folder");
    const { code } = await inner.magic(["scaffold", "--name", "x", "--template", "db", "--json"]);
    expect(code).not.toBe(0);
    expect(readdirSync(inner.folder)).toEqual(["data"]);
    for (const name of ["../up", "Up", "", "a b", "node_modules"])
      expect((await inner.magic(["scaffold", "--name", name])).code).toBe(3);
    expect(readdirSync(inner.folder)).toEqual(["data"]);
  } finally {
    await inner.dispose();
  }
});

test("every template validates, passes its tests and has no type error, in both languages", async () => {
  const inner = createSandbox();
  try {
    for (const template of ["minimal", "llm", "http", "db"])
      for (const lang of ["ts", "js"])
        expect(
          (await inner.magic(["scaffold", "--name", `${template}-${lang}`, "--template", template, "--lang", lang]))
            .code,
        ).toBe(0);
    // As `npm init` makes it.
    writeFileSync(join(inner.folder, "package.json"), '{"type": "commonjs"}');
    const validated = await inner.magic(["validate", "--json"]);
    expect(JSON.parse(validated.stdout)).toMatchObject({ valid: true, problems: [], warnings: [] });
    const tested = await inner.magic(["test", "--json"]);
    expect(JSON.parse(tested.stdout)).toMatchObject({ passed: 18, failed: 0 });
    const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
    const types = spawn(process.execPath, [tsc, "-p", inner.folder]);
    let said = "";
    types.stdout.on("data", (data: Buffer) => {
      said += data.toString("utf8");
    });
    const code = await new Promise((resolve) => types.once("exit", resolve));
    expect([code, said]).toEqual([0, ""]);
  } finally {
    await inner.dispose();
  }
}, 240_000);

test("a slow reader gets all of it, and a full disk is an error", async () => {
  const keys = Array.from({ length: 900 }, (_, at) => `unknown_key_${at}: 1`).join("\n");
  writeFileSync(join(box.folder, "contract.yaml"), `name: big\n${keys}\n`);
  const shell = (line: string) =>
    new Promise<string>((resolve) => {
      const child = spawn("sh", ["-c", line], { cwd: box.folder, env: box.env });
      let text = "";
      child.stdout.on("data", (data) => {
        text += data;
      });
      child.on("close", () => resolve(text));
    });
  const magic = `"${process.execPath}" "${program}"`;
  const whole = await shell(`${magic} validate contract.yaml --json | (sleep 1; cat)`);
  expect(JSON.parse(whole).problems.length).toBeGreaterThanOrEqual(900);
  if (existsSync("/dev/full")) expect(await shell(`${magic} --help 2>&1 > /dev/full`)).toContain("ENOSPC");
});

test("help is one document with --json, also where an example follows it", async () => {
  for (const args of [["--help"], ["completion", "--help"]])
    expect(JSON.parse((await box.magic([...args, "--json"])).stdout)).toEqual({
      help: expect.stringContaining("Usage:"),
    });
});

/** A project with one controller. */
function projectOf(project: string, controller: string): { project: string; folder: string } {
  const folder = join(project, "controllers", controller);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(project, "magic.yaml"), "version: 1\n");
  writeFileSync(join(folder, "handler.ts"), "export default (): number => 1;\n");
  return { project, folder };
}

test("a failing test: its file and line, exit 3, also below node_modules, where Node strips no types", async () => {
  const { project, folder } = projectOf(join(box.folder, "node_modules", "shop"), "failing");
  writeFileSync(
    join(folder, "handler.test.ts"),
    'import { test } from "node:test";\ntest("never", (): void => {\n  throw new Error("no");\n});\n',
  );
  symlinkSync(project, join(box.folder, "link"));
  for (const root of [project, join(box.folder, "link")]) {
    const { code, stdout } = await box.magic(["test", "failing", "--json", "--root", root]);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      passed: 0,
      failed: 1,
      tests: [{ name: "never", ok: false, line: 2, error: expect.stringContaining("no") }],
    });
    // Where it was thrown, and none of the frames of Node's runner behind it.
    expect(stdout).toMatch(/handler\.test\.ts:3:9/);
    expect(stdout).not.toContain("node:internal");
  }
});

test("tests that fail by their suite, end the process or are still to do are counted as what they are", async () => {
  const { project, folder } = projectOf(join(box.folder, "counted"), "a");
  const cases = {
    'test("todo", { todo: true }, () => { throw new Error("no"); });': [0, 0, 0, 1],
    'describe("body", () => { throw new Error("no"); });': [3, 0, 1, 0],
    'describe("hook", () => { after(() => { throw new Error("no"); }); test("inner", () => {}); });': [3, 1, 1, 0],
    'describe("suite", () => test("inner", () => { throw new Error("no"); }));': [3, 0, 1, 0],
    'test("ends", () => process.exit(0)); test("next", () => { throw new Error("no"); });': [3, 0, 2, 0],
    "": [0, 1, 0, 0],
  };
  for (const [text, outcome] of Object.entries(cases)) {
    writeFileSync(join(folder, "a.test.ts"), `import { after, describe, test } from "node:test";\n${text}\n`);
    const { code, stdout } = await box.magic(["test", "--json", "--root", project]);
    const { passed, failed, skipped } = JSON.parse(stdout);
    expect([code, passed, failed, skipped], text).toEqual(outcome);
  }
});

test("tests that are interrupted end, also one that never yields", async () => {
  const { project, folder } = projectOf(join(box.folder, "endless"), "a");
  const told = join(project, "pid");
  writeFileSync(
    join(folder, "a.test.ts"),
    `import { writeFileSync } from "node:fs";
    import { test } from "node:test";
    test("spins", () => { writeFileSync(${JSON.stringify(told)}, String(process.pid)); for (;;); });`,
  );
  const command = spawn(process.execPath, [program, "test", "--root", project], { env: box.env, stdio: "ignore" });
  const ended = new Promise((resolve) => command.once("close", resolve));
  await vi.waitFor(() => expect(Number(readFileSync(told))).toBeGreaterThan(0), { timeout: 60_000 });
  const pid = Number(readFileSync(told));
  onTestFinished(() => void spawnSync("kill", ["-KILL", String(pid)]));
  // Not its process group's, as a terminal would.
  command.kill("SIGINT");
  expect(await ended).toBe(130);
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 5_000 });
});

test("an interruption that is heard when all was done and said does not take it back", async () => {
  const root = join(box.folder, "heard-late");
  const names = Array.from({ length: 150 }, (_, at) => `c${String(at).padStart(3, "0")}`);
  for (const name of names) {
    const folder = join(root, "controllers", name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "handler.js"), "");
    const schemas = "input_schema: { type: object }\noutput_schema: true";
    writeFileSync(join(folder, "contract.yaml"), `name: ${name}\nversion: 1.0.0\n${schemas}\n`);
  }
  writeFileSync(join(root, "magic.yaml"), "version: 1\n");
  // Brought up to date in the middle of the work, which waits for nothing.
  const types = join(root, "controllers", "c000", "contract.types.ts");
  writeFileSync(types, "");
  const command = spawn(process.execPath, [program, "validate", "--json", "--root", root], { env: box.env });
  let said = "";
  command.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const ended = new Promise((resolve) => command.once("close", resolve));
  await vi.waitFor(() => expect(statSync(types).size).toBeGreaterThan(0), { timeout: 60_000, interval: 1 });
  command.kill("SIGINT");
  expect(await ended).toBe(0);
  expect(JSON.parse(said).checked).toHaveLength(151);
});

test("validate: exit 3, every problem with its place", async () => {
  const folder = join(box.folder, "broken");
  mkdirSync(folder);
  writeFileSync(join(folder, "contract.yaml"), "name: a\nversion: 1.0\ninput_schema: true\noutput_schema: true\n");
  const { code, stdout } = await box.magic(["validate", "broken", "--json"]);
  expect(code).toBe(3);
  const { valid, problems } = JSON.parse(stdout);
  expect(valid).toBe(false);
  expect(problems).toContainEqual(
    expect.objectContaining({
      file: "broken/contract.yaml",
      line: 2,
      column: 10,
      pointer: "/version",
      code: "wrong_type",
      fix: expect.any(String),
    }),
  );
  const named = await box.magic([
    "validate",
    "named",
    "--json",
    "--root",
    projectOf(join(box.folder, "names"), "named").project,
  ]);
  expect([named.code, JSON.parse(named.stdout).problems[0].file]).toEqual([3, "names/controllers/named/contract.yaml"]);
  const text = await box.magic(["validate", "broken/contract.yaml"]);
  expect(text.stdout).toContain("broken/contract.yaml:2:10");
  expect(text.stdout).not.toMatch(CONTROL);
  writeFileSync(join(folder, "handler.ts"), "");
  const ofCode = await box.magic(["validate", "broken/handler.ts", "--json"]);
  expect([ofCode.code, lastLine(ofCode.stderr).code]).toEqual([2, "usage"]);
});

test("config: flag before environment before project before user before default, each with its origin", async () => {
  const get = async (key: string, args: string[] = [], env = {}) =>
    JSON.parse((await box.magic(["config", "get", key, "--json", ...args], { env })).stdout);
  expect(await get("environment")).toMatchObject({ value: "sandbox", origin: "default" });
  await box.magic(["config", "set", "environment", "live"]);
  expect(await get("environment")).toMatchObject({ value: "live", origin: "user" });
  expect(await get("environment", [], { MAGIC_ENVIRONMENT: "sandbox" })).toMatchObject({
    value: "sandbox",
    origin: "environment",
  });
  expect(await get("environment", ["--live"], { MAGIC_ENVIRONMENT: "sandbox" })).toMatchObject({
    value: "live",
    origin: "flag",
  });
  await box.magic(["config", "unset", "environment"]);
  expect(await get("gateway.default")).toMatchObject({ value: "sandbox/echo", origin: "project" });
  const refused = await box.magic(["config", "set", "daemon.prot", "1", "--json"]);
  expect([refused.code, refused.stdout]).toEqual([3, ""]);
  const project = join(box.folder, "magic.yaml");
  expect(readFileSync(project, "utf8")).not.toContain("prot:");
  // Secrets may stand in it.
  chmodSync(project, 0o600);
  await box.magic(["config", "set", "environment.seed", "7"]);
  expect(statSync(project).mode & 0o777).toBe(0o600);
  expect((await box.magic(["config", "get", "outptu", "--json"])).code).toBe(4);
});

test("config leaves a file's line ends as they are, and takes what is empty then with what it removes", async () => {
  const inner = createSandbox();
  const file = join(inner.folder, "magic.yaml");
  const lines = ["version: 1 # one", "# two", "environment:", "  tier: starter", ""];
  try {
    for (const end of ["\n", "\r\n"]) {
      writeFileSync(file, lines.join(end));
      await changeSetting("daemon.port", "4200", inner.folder, {});
      expect(readFileSync(file, "utf8")).toBe([...lines.slice(0, -1), "daemon:", "  port: 4200", ""].join(end));
      await changeSetting("daemon.port", undefined, inner.folder, {});
      await changeSetting("daemon.port", undefined, inner.folder, {});
      expect(readFileSync(file, "utf8")).toBe(lines.join(end));
    }
    const refused = { code: "validation_failed" };
    await expect(changeSetting("daemon.port", "{", inner.folder, {})).rejects.toMatchObject(refused);
    await expect(changeSetting("environment.tier.x", "1", inner.folder, {})).rejects.toMatchObject(refused);
    writeFileSync(file, "version: [");
    await expect(changeSetting("daemon.port", "1", inner.folder, {})).rejects.toMatchObject({ code: "config_invalid" });
  } finally {
    await inner.dispose();
  }
});

test("of several changes at once none undoes another, and a model's name may hold dots", async () => {
  const inner = createSandbox();
  const file = join(inner.folder, "magic.yaml");
  const globals = { format: "text", live: false, url: undefined, root: undefined, quiet: false } as const;
  const price = (key: string) => oneSetting(key, { root: inner.folder, env: {}, globals, argv: [] }).value;
  try {
    writeFileSync(file, "version: 1\n");
    // What a command that was killed has left.
    writeFileSync(`${file}.new`, "");
    utimesSync(`${file}.new`, 1, 1);
    const models = ["openai/gpt-4.1", "local/llama3.2", "local/a", "local/b"];
    await Promise.all(
      models.map((model) => changeSetting(`gateway.prices.${model}`, "{ input: 1, output: 2 }", inner.folder, {})),
    );
    await changeSetting("gateway.prices.openai/gpt-4.1.cache_read", "0.5", inner.folder, {});
    await changeSetting("gateway.models.aliases.gpt-4.1", "openai/gpt-4.1", inner.folder, {});
    for (const model of models) expect(price(`gateway.prices.${model}`)).toMatchObject({ input: 1, output: 2 });
    expect([price("gateway.prices.openai/gpt-4.1.cache_read"), price("gateway.models.aliases.gpt-4.1")]).toEqual([
      0.5,
      "openai/gpt-4.1",
    ]);
    for (const model of models) await changeSetting(`gateway.prices.${model}`, undefined, inner.folder, {});
    await changeSetting("gateway.models.aliases.gpt-4.1", undefined, inner.folder, {});
    expect([readFileSync(file, "utf8"), existsSync(`${file}.new`)]).toEqual(["version: 1\n", false]);
  } finally {
    await inner.dispose();
  }
});

test("completion scripts know commands, verbs and options", async () => {
  const { stdout } = await box.magic(["completion", "bash"]);
  // The last one as in macOS's bash, which keeps quotes in a replacement.
  const script = `${stdout}\ncomplete_() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _magic 2>/dev/null; echo "\${COMPREPLY[@]}"; }\ncomplete_ magic sca; complete_ magic daemon sto; complete_ magic scaffold --tem; complete_ magic --root = /x daemon resta; complete_ magic completion f; complete_ magic sync create --mode inc; complete_ magic sync run --mode = f; complete_ magic --json logs --output n; complete_ magic webhook update wh_1 --status d; complete_ magic scaffold --template l; complete_ magic --root sy; complete_ magic key create --scopes usage : read,lo; complete_ magic connection create --scopes lo; BASH_COMPAT=4.2; complete_ magic key create --scopes llm,lo`;
  const shell = spawn("bash", ["-c", script]);
  let said = "";
  shell.stdout.on("data", (data: Buffer) => {
    said += data.toString("utf8");
  });
  await new Promise((resolve) => shell.once("close", resolve));
  expect(said).toBe(
    "scaffold\nstop\n--template\nrestart\nfish\nincremental\nfull_refresh\nndjson\ndisabled\nllm\n\nread,logs:read\n\nllm,logs:read\n",
  );
  // Where no daemon runs nothing is listed, said or started.
  const names = await box.magic(["completion", "bash", "--names", "connections"]);
  expect([names.code, names.stdout.trim(), names.stderr]).toEqual([0, "", ""]);
  expect(existsSync(join(box.folder, ".magic", "daemon.json"))).toBe(false);
  for (const shell of ["zsh", "fish"]) expect((await box.magic(["completion", shell])).stdout).toContain("scaffold");
});

test.skipIf(spawnSync("fish", ["-v"]).error)(
  "fish offers nothing where there are no names, and lists as they begin",
  async () => {
    const { stdout } = await box.magic(["completion", "fish"]);
    const asked = ["sync create --source ", "token create --models a,", "key create --scopes %s,lo"];
    const lines = asked.map((line) => `complete -C 'magic ${line}'`);
    // No program called magic: there are no names.
    const { stdout: said } = spawnSync("fish", ["-c", [stdout, "function magic; end", ...lines].join("\n")]);
    expect(String(said)).toBe("%s,logs:read\n");
  },
);

test("names of a stranger's daemon that a shell would run are not offered", async () => {
  const data = ["good-1", "$(touch x)", "`touch x`", "a;b", "openai/gpt-5:free"].map((id) => ({ id }));
  const list = JSON.stringify({ object: "list", data });
  const server = createServer((_, response) => response.setHeader("x-request-id", "req_1").end(list));
  const { origin, close } = await listen(server);
  const env = { MAGIC_URL: origin, MAGIC_API_KEY: "key" };
  const names = await box.magic(["completion", "bash", "--names", "models"], { env });
  await close();
  expect(names.stdout.trim().split("\n")).toEqual(["good-1", "openai/gpt-5:free"]);
});

test("a reader that leaves early is no error", async () => {
  const shell = spawn(
    "bash",
    ["-c", `"${process.execPath}" "${program}" completion fish | head -1; echo \${PIPESTATUS[0]}`],
    { env: box.env },
  );
  let said = "";
  shell.stdout.on("data", (data: Buffer) => {
    said += data.toString("utf8");
  });
  await new Promise((resolve) => shell.once("close", resolve));
  expect(said.trim().split("\n").at(-1)).toBe("0");
});
