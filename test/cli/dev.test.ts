// The main job, on real processes: scaffold, dev, invoke, edit, break, mend, follow, stop.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type DevProcess, startDev } from "./dev-process.ts";
import { createSandbox, program, type Sandbox } from "./magic.ts";

// Real processes on a machine that may be busy: nothing here depends on how long it takes.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

let box: Sandbox;
let dev: DevProcess;
let handler: string;

beforeAll(async () => {
  box = createSandbox();
  await box.magic(["scaffold", "--name", "hello"]);
  await box.magic(["config", "set", "daemon.port", "0"]);
  handler = join(box.folder, "controllers", "hello", "handler.ts");
  // Another command's daemon, until it is killed: the one that comes after it is the session's own.
  await box.magic(["daemon", "start"]);
  dev = startDev(box);
});
afterAll(async () => {
  dev?.child.kill("SIGKILL");
  await box.dispose();
});

const invoke = async (input: object) => {
  const { code, stdout, stderr } = await box.magic(["invoke", "hello", "--input", JSON.stringify(input), "--json"]);
  return { code, answer: stdout === "" ? undefined : JSON.parse(stdout), error: stderr };
};

test("ready names the addresses, the token and the controllers", async () => {
  const ready = await dev.next("ready");
  expect(ready).toMatchObject({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    gateway_token: expect.any(String),
    api_key: expect.stringMatching(/^sk_test_/),
    controllers: [{ name: "hello", version: "0.1.0" }],
    invalid: [],
  });
});

test("an invocation answers, and its log line has its request id", async () => {
  const { code, answer } = await invoke({ name: "Ada" });
  expect(code).toBe(0);
  expect(answer).toMatchObject({ output: { greeting: "Hello, Ada!" }, version: "0.1.0" });
  const line = await dev.next("log", (event) => event["request_id"] === answer.request_id);
  expect(line["time"]).toMatch(/^\d{4}-/);
});

test("the output alone goes to stdout without --json; input comes from a file or standard input", async () => {
  const text = await box.magic(["invoke", "hello", "--input", "-"], { input: '{"name": "Grace"}' });
  expect(JSON.parse(text.stdout)).toEqual({ greeting: "Hello, Grace!" });
  writeFileSync(join(box.folder, "input.json"), '\ufeff{"name": "Alan"}');
  const file = await box.magic(["invoke", "hello", "--input", "@input.json"]);
  expect(JSON.parse(file.stdout)).toEqual({ greeting: "Hello, Alan!" });
  const bad = await box.magic(["invoke", "hello", "--input", "{oops", "--json"]);
  expect([bad.code, bad.stdout]).toEqual([2, ""]);
});

test("refusals keep the daemon's code, exit code and request id", async () => {
  const wrong = await box.magic(["invoke", "hello", "--input", "{}", "--json"]);
  expect([wrong.code, wrong.stdout]).toEqual([3, ""]);
  expect(JSON.parse(wrong.stderr.trim().split("\n").at(-1) ?? "")).toMatchObject({
    code: "input_invalid",
    exit_code: 3,
    request_id: expect.stringMatching(/^req_/),
  });
  expect((await box.magic(["invoke", "nobody", "--json"])).code).toBe(4);
});

test("a save is live, with the time of each phase", async () => {
  writeFileSync(handler, readFileSync(handler, "utf8").replace("Hello", "Welcome"));
  const reload = await dev.next("reload");
  expect(reload).toMatchObject({
    controller: "hello",
    changed: [expect.stringContaining("handler.ts")],
    phases: { build_ms: expect.any(Number), boot_ms: expect.any(Number), swap_ms: expect.any(Number) },
  });
  expect((await invoke({ name: "Ada" })).answer.output).toEqual({ greeting: "Welcome, Ada!" });
});

test("a broken save shows file and line, and the last good version keeps serving", async () => {
  const good = readFileSync(handler, "utf8");
  writeFileSync(handler, `${good}\nconst = 1;\n`);
  const invalid = await dev.next("invalid");
  expect(invalid).toMatchObject({
    controller: "hello",
    serving: "0.1.0",
    problems: [
      { file: "controllers/hello/handler.ts", line: good.split("\n").length + 1, message: expect.any(String) },
    ],
  });
  expect((await invoke({ name: "Ada" })).answer.output).toEqual({ greeting: "Welcome, Ada!" });
  writeFileSync(handler, good);
  await dev.next("reload");
});

test("a contract's change is live too, and its types follow", async () => {
  const path = join(box.folder, "controllers", "hello", "contract.yaml");
  const good = readFileSync(path, "utf8");
  writeFileSync(path, good.replace("version: 0.1.0", "version: 1.0"));
  expect(await dev.next("invalid")).toMatchObject({ problems: [{ code: "wrong_type", line: 3, pointer: "/version" }] });
  writeFileSync(
    path,
    good
      .replace("version: 0.1.0", "version: 0.2.0")
      .replace("maxLength: 100 }", "maxLength: 100 }\n    title: { type: string }"),
  );
  expect(await dev.next("reload")).toMatchObject({ version: "0.2.0" });
  expect((await invoke({ name: "Ada", title: "Countess" })).answer.version).toBe("0.2.0");
  expect(readFileSync(join(box.folder, "controllers", "hello", "contract.types.ts"), "utf8")).toContain(
    "title?: string;",
  );
});

test("a new controller appears while it runs, also where it was named and told to be missing", async () => {
  const other = startDev(box, ["later"]);
  expect(await other.next("ready")).toMatchObject({ controllers: [] });
  expect(other.stderr()).toMatch(/There is no controller later in /);
  await box.magic(["scaffold", "--name", "later"]);
  expect(await dev.next("reload", (event) => event["controller"] === "later")).toMatchObject({ version: "0.1.0" });
  await other.next("reload", ({ controller }) => controller === "later");
  expect(await other.end("SIGINT")).toBe(130);
});

test("a killed daemon is started again, and the session with it", async () => {
  const { stdout } = await box.magic(["daemon", "status", "--json"]);
  process.kill(JSON.parse(stdout).pid, "SIGKILL");
  const ready = await dev.next("ready");
  expect((ready["controllers"] as unknown[]).length).toBe(2);
  expect((await invoke({ name: "Ada" })).answer.output).toEqual({ greeting: "Welcome, Ada!" });
});

test("Ctrl-C ends it cleanly: stopped, exit code 130, no daemon left", async () => {
  expect(await dev.end("SIGINT")).toBe(130);
  expect(dev.events.at(-1)).toMatchObject({ type: "stopped" });
  const status = await box.magic(["daemon", "status", "--json"]);
  expect(status.code).toBe(6);
});

test("deploy, versions and rollback without a session", async () => {
  const deployed = await box.magic(["deploy", "controllers/hello", "--json"]);
  expect(deployed.code, deployed.stderr).toBe(0);
  expect(JSON.parse(deployed.stdout)).toMatchObject({
    name: "hello",
    version: "0.2.0",
    digest: expect.stringMatching(/^sha256:/),
    alias: "latest",
  });
  // There is no version to go back to yet, whatever the alias is called, and what is told can be pasted.
  const again = await box.magic(["deploy", "hello", "--alias", "constructor"]);
  expect(again.stdout).toContain(`magic invoke hello --version constructor --input '{"name":"text","title":"text"}'`);
  expect(again.stdout).not.toContain("rollback");
  const built = JSON.parse((await box.magic(["build", "hello", "--json"])).stdout);
  expect(built.digest).toBe(JSON.parse(deployed.stdout).digest);
  expect((await box.magic(["build", "hello"])).stdout).toContain("magic deploy .magic/builds/hello-0.2.0.json");
  // One that cannot be written whole leaves the former as it is.
  const before = readFileSync(built.file);
  const small = ["-c", 'ulimit -f 1; exec "$@"', "sh", process.execPath, program, "build", "hello", "--json"];
  const { status, stderr } = spawnSync("sh", small, { cwd: box.folder, env: box.env, encoding: "utf8" });
  expect([status, stderr]).toEqual([1, expect.stringContaining("storage_full")]);
  expect(readFileSync(built.file)).toEqual(before);
  expect(readdirSync(dirname(built.file))).toEqual([basename(built.file)]);
  expect((await invoke({ name: "Ada" })).answer).toMatchObject({
    version: "0.2.0",
    output: { greeting: "Welcome, Ada!" },
  });
  const list = JSON.parse((await box.magic(["controller", "list", "--json"])).stdout);
  expect(list.data).toEqual([expect.objectContaining({ name: "hello", serving: "0.2.0", development: false })]);
});

test.skipIf(!existsSync("/dev/full"))("a build that does not fit names the file", async () => {
  const { code, stderr } = await box.magic(["build", "hello", "--out", "/dev/full", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stderr.trim().split("\n").at(-1) ?? "")).toMatchObject({
    code: "storage_full",
    detail: "ENOSPC: no space left on device, write '/dev/full'.",
  });
});

test("magic demo tells its story in time and leaves nothing", async () => {
  const { code, stdout, stderr } = await box.magic(["demo", "--json"]);
  expect(code, stderr).toBe(0);
  const { steps, duration_ms, folder } = JSON.parse(stdout);
  expect(steps.length).toBe(9);
  expect([folder, duration_ms > 0]).toEqual([null, true]);
});
