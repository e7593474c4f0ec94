import { execFileSync, spawn } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { readRuntimeFile, readStartingMark } from "#client/daemon/files.ts";
import { VERSION } from "#contract/protocol.ts";
import { isSameProcess, processStarted } from "#shared/process-identity.ts";
import { listen } from "#test/listen.ts";
import { within } from "../patience.ts";
import { gone, launcher, type Project, temporaryProject, until } from "./magic.ts";
import { asOlderNode } from "./older-node.ts";

// Every test starts several processes: on a busy machine each may take seconds.
vi.setConfig({ testTimeout: 180_000 });

/** What doctor says, check by check. */
const checks = (document: Record<string, unknown>) =>
  Object.fromEntries(
    (document["checks"] as { name: string; status: string }[]).map(({ name, status }) => [name, status]),
  );

const start = (made: Project, ...more: string[]) => made.magic(["daemon", "start", "--json", "--port", "0", ...more]);

test("start prints the document, and the same one again while it runs; tokens outlive a restart; state is the user's alone", async () => {
  const made = await temporaryProject();
  const first = await start(made);
  expect(first.code).toBe(0);
  expect(Object.keys(first.json).sort()).toEqual(
    "admin_key api_key base_url gateway_token gateway_url local_token pid protocol root url version".split(" "),
  );
  const second = await start(made);
  expect([second.json, second.stderr]).toEqual([first.json, ""]);
  const other = await made.magic(["daemon", "start", "--json", "--port", "1", "--host", "::", "--tls"]);
  expect([other.json, other.stderr]).toEqual([
    first.json,
    expect.stringContaining("--host :: and --port 1 and --tls would take"),
  ]);
  expect((await fetch(`${String(first.json["url"])}/health`)).status).toBe(200);
  const state = join(made.root, ".magic");
  expect((await stat(state)).mode & 0o777).toBe(0o700);
  await until(() => stat(join(state, "logs", "daemon.log")));
  for (const name of ["daemon.json", "credentials.json", "daemon.lock", "logs/daemon.log"])
    expect([name, (await stat(join(state, name))).mode & 0o077]).toEqual([name, 0]);
  expect(await readFile(join(state, ".gitignore"), "utf8")).toBe("*\n");
  const stopped = await made.magic(["daemon", "stop", "--json"]);
  expect(stopped.json).toMatchObject({ stopped: true, pid: first.json["pid"], killed: false });
  expect(isSameProcess(Number(first.json["pid"]), null)).toBe(false);
  const third = await start(made);
  expect(third.json["pid"]).not.toBe(first.json["pid"]);
  for (const name of ["local_token", "gateway_token", "api_key", "admin_key"])
    expect(third.json[name]).toBe(first.json[name]);
});

test("five commands that start a daemon at once get the same one", async () => {
  const made = await temporaryProject();
  const outcomes = await Promise.all(Array.from({ length: 5 }, () => start(made)));
  expect(outcomes.map(({ code, stderr }) => [code, stderr])).toEqual(outcomes.map(() => [0, ""]));
  expect(new Set(outcomes.map(({ json }) => json["pid"])).size).toBe(1);
});

test("start does not hand out the address of what is not this root's daemon", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  const path = join(made.root, ".magic", "daemon.json");
  const runtime = await readFile(path, "utf8");
  const other = createServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  const { origin } = await listen(other);
  await writeFile(path, runtime.replace(String(json["url"]), origin), { mode: 0o600 });
  const outcome = await start(made);
  other.close();
  expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([6, "", "daemon_unavailable"]);
});

test("after kill -9 the next start takes over the stale files, and no process that has the pid now is believed or signalled", async () => {
  const made = await temporaryProject();
  const first = await start(made);
  process.kill(Number(first.json["pid"]), "SIGKILL");
  await gone(Number(first.json["pid"]));
  expect((await made.magic(["daemon", "status", "--json"])).json).toMatchObject({ state: "stale", running: false });
  const second = await start(made);
  expect(second.code).toBe(0);
  expect(second.json["pid"]).not.toBe(first.json["pid"]);
  expect(second.json["local_token"]).toBe(first.json["local_token"]);
  const path = join(made.root, ".magic", "daemon.json");
  const runtime = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await made.magic(["daemon", "stop"]);
  await writeFile(path, JSON.stringify({ ...runtime, pid: process.pid }), { mode: 0o600 });
  expect((await made.magic(["daemon", "stop", "--json"])).json).toMatchObject({ stopped: false });
  expect((await start(made)).code).toBe(0);
});

test("a daemon that was killed and is not gone yet is waited for: the start's is another one", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  const path = join(made.root, ".magic", "daemon.json");
  const runtime = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await made.magic(["daemon", "stop"]);
  // Lives for a while and listens nowhere, as a process does that a signal ends on a busy machine.
  const dying = spawn("sleep", ["2"]);
  const ended = { ...runtime, pid: dying.pid, pid_started: processStarted(dying.pid ?? 0) };
  await writeFile(path, JSON.stringify(ended), { mode: 0o600 });
  const outcome = await start(made);
  expect([outcome.code, outcome.stderr]).toEqual([0, ""]);
  expect([json["pid"], dying.pid]).not.toContain(outcome.json["pid"]);
});

test("a port that was asked for and is taken is an error that names its holder", async () => {
  const made = await temporaryProject();
  const { port, close } = await listen(createServer());
  const outcome = await made.magic(["daemon", "start", "--json", "--port", String(port)]);
  await close();
  expect([outcome.code, outcome.stdout]).toEqual([7, ""]);
  expect(outcome.failure).toMatchObject({ code: "port_taken", exit_code: 7, port });
  expect(String(outcome.failure["detail"])).toContain(`pid ${process.pid}`);
});

test("a default port that is taken gives way to the next free one, and what magic.yaml names and is not set is none, each with a notice", async () => {
  const made = await temporaryProject();
  await writeFile(join(made.root, "magic.yaml"), `version: 1\nsecrets: { CRM: "\${env:NOT_SET_HERE}" }\n`);
  const server = createServer();
  // Where another process has the port already, that one is the holder.
  const listening = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(4141, "127.0.0.1", () => resolve(true));
  });
  const outcome = await made.magic(["daemon", "start", "--json"]);
  if (listening) server.close();
  expect(outcome.code).toBe(0);
  expect(Number(new URL(String(outcome.json["url"])).port)).toBeGreaterThan(4141);
  expect(outcome.stderr).toMatch(/^Port 4141 is taken.*: listening on \d+\.$/m);
  expect(outcome.stderr).toMatch(/^magic\.yaml names what is not set here: NOT_SET_HERE\. /m);
});

test.each([
  ["is a file", async (root: string) => writeFile(join(root, ".magic"), "mine")],
  ["is a link that leads nowhere", async (root: string) => symlink("away", join(root, ".magic"))],
  [
    "holds a damaged lock file",
    async (root: string) => {
      await mkdir(join(root, ".magic"));
      await writeFile(join(root, ".magic", "daemon.lock"), "this is no database, and someone may want it back");
    },
  ],
  [
    "holds damaged credentials",
    async (root: string) => {
      await mkdir(join(root, ".magic"));
      await writeFile(join(root, ".magic", "credentials.json"), '{"local_token": 5}');
    },
  ],
])(
  "a state folder that %s is refused, as doctor says beforehand, and nothing in it is overwritten",
  async (_name, spoil) => {
    const made = await temporaryProject();
    await spoil(made.root);
    const before = await contents(made.root);
    expect((await made.magic(["doctor", "--json"])).code).toBe(3);
    const outcome = await start(made);
    expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([1, "", "state_unusable"]);
    expect(await contents(made.root)).toMatchObject(before);
  },
);

test.skipIf(process.getuid?.() === 0)(
  "a root that cannot be written to is refused, as doctor says beforehand",
  async () => {
    const made = await temporaryProject();
    await chmod(made.root, 0o500);
    const outcome = await start(made);
    const doctor = await made.magic(["doctor", "--json"]);
    await chmod(made.root, 0o700);
    expect([outcome.code, outcome.failure["code"]]).toEqual([1, "state_unusable"]);
    expect([doctor.code, checks(doctor.json)]).toMatchObject([3, { "project state": "failed", "user state": "ok" }]);
  },
);

test.each(["daemon.starting.json", "credentials.json", ".gitignore"])(
  "a folder where %s belongs is told by its path",
  async (name) => {
    const made = await temporaryProject();
    const path = join(made.root, ".magic", name);
    await mkdir(path, { recursive: true });
    const failure = { code: "state_unusable", detail: expect.stringContaining(path) };
    expect(await start(made)).toMatchObject({ code: 1, failure });
  },
);

test("a pipe where a file of the state belongs is not waited for", async () => {
  const made = await temporaryProject();
  const folder = join(made.root, ".magic");
  await mkdir(join(folder, "logs"), { recursive: true, mode: 0o700 });
  for (const name of ["credentials.json", "logs/daemon.log", "logs/daemon.out"])
    execFileSync("mkfifo", [join(folder, name)]);
  const next = "Restore it from a copy, or remove it: new credentials are made.";
  const failure = { code: "state_unusable", detail: expect.stringContaining("credentials.json is damaged"), next };
  expect(await start(made)).toMatchObject({ code: 1, failure });
  await rm(join(folder, "credentials.json"));
  expect(await start(made)).toMatchObject({ code: 0 });
});

test("doctor --fix removes a damaged lock file, and leaves what it cannot judge in its place", async () => {
  const made = await temporaryProject();
  const lock = join(made.root, ".magic", "daemon.lock");
  await mkdir(lock, { recursive: true, mode: 0o700 });
  await writeFile(join(lock, "mine"), "mine");
  const left = { name: "state files", status: "failed", next: expect.stringContaining("left as it is") };
  expect((await made.magic(["doctor", "--fix", "--json"])).json["checks"]).toContainEqual(
    expect.objectContaining({ ...left, detail: `${lock} is no file` }),
  );
  expect(await readFile(join(lock, "mine"), "utf8")).toBe("mine");
  await rm(lock, { recursive: true });
  await symlink("daemon.lock", lock);
  expect((await made.magic(["doctor", "--fix", "--json"])).json["checks"]).toContainEqual(
    expect.objectContaining({ ...left, detail: expect.stringContaining("ELOOP") }),
  );
  await rm(lock);
  await writeFile(lock, "this is no database");
  expect((await made.magic(["doctor", "--fix", "--json"])).json["checks"]).toContainEqual(
    expect.objectContaining({ name: "state files", status: "fixed" }),
  );
  expect(await readdir(join(made.root, ".magic"))).not.toContain("daemon.lock");
});

test("a project whose path is too long for SQLite is said to be so, and one that just fits runs", async () => {
  const made = await temporaryProject();
  const most = 492 - "/.magic".length;
  const long = join(made.root, "d".repeat(200), "d".repeat(most - made.root.length - 202));
  await mkdir(`${long}d`, { recursive: true });
  const refused = await made.magic(["daemon", "start", "--json", "--root", `${long}d`]);
  const next = expect.stringContaining("shorter path");
  expect(refused).toMatchObject({ code: 1, failure: { code: "state_unusable", next } });
  await mkdir(long);
  expect(await made.magic(["daemon", "start", "--json", "--port", "0", "--root", long])).toMatchObject({ code: 0 });
  await made.magic(["daemon", "stop", "--root", long]);
});

test("--foreground stays, logs to stderr, and drains on a Ctrl-C, which its daemon hears as well", async () => {
  const made = await temporaryProject();
  const words = [launcher, "daemon", "start", "--foreground", "--port", "0", "--json"];
  const env = { PATH: process.env["PATH"] ?? "", MAGIC_ROOT: made.root, MAGIC_HOME: made.home };
  const command = spawn(process.execPath, words, { cwd: made.root, env, detached: true });
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    command[name].setEncoding("utf8").on("data", (chunk: string) => {
      said[name] += chunk;
    });
  const ended = new Promise((resolve) => command.once("close", resolve));
  const { pid } = await until(() => JSON.parse(said.stdout) as { pid: number });
  // Once for the group, as a terminal does, and once more for its first process, as `timeout` does.
  process.kill(-Number(command.pid), "SIGINT");
  command.kill("SIGINT");
  expect(await ended).toBe(0);
  expect(said.stderr).toContain('"event":"daemon.stopped"');
  expect(isSameProcess(pid, null)).toBe(false);
});

test.each([
  ["", []],
  [", by an older Node", ["--import", asOlderNode]],
])("--foreground leaves no daemon behind when its command is killed while it comes up%s", async (_, flags) => {
  const made = await temporaryProject();
  const words = [...flags, launcher, "daemon", "start", "--foreground", "--port", "0"];
  const env = { PATH: process.env["PATH"] ?? "", MAGIC_ROOT: made.root, MAGIC_HOME: made.home };
  const command = spawn(process.execPath, words, { cwd: made.root, env, stdio: "ignore" });
  const { pid } = await until(async () => {
    const mark = readStartingMark(made.root);
    if (!mark) throw new Error("not yet");
    return mark;
  });
  command.kill("SIGKILL");
  await gone(pid);
});

test("a daemon that is stopped stays so while its log is followed", async () => {
  const made = await temporaryProject();
  await start(made);
  const env = { PATH: process.env["PATH"] ?? "", MAGIC_ROOT: made.root, MAGIC_HOME: made.home };
  const follower = spawn(process.execPath, [launcher, "logs", "--follow", "--since", "1h", "--output", "ndjson"], {
    env,
  });
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    follower[name].setEncoding("utf8").on("data", (chunk: string) => {
      said[name] += chunk;
    });
  const says = (name: keyof typeof said, text: string) => until(() => expect(said[name]).toContain(text));
  await says("stdout", "daemon.ready");
  await made.magic(["daemon", "stop"]);
  await says("stderr", "waiting for it");
  // Longer than the follower's first attempts take.
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect((await made.magic(["daemon", "status", "--json"])).json["state"]).toBe("absent");
  follower.kill("SIGINT");
});

test("an uncaught error ends the daemon, is told by the next command, and leaves nothing in the way", async () => {
  const made = await temporaryProject();
  const first = await startWith(made, "throw new Error('out of luck')");
  expect(first.code).toBe(0);
  await gone(Number(first.json["pid"]));
  const second = await start(made);
  expect(second.code).toBe(0);
  expect(second.stderr).toContain("out of luck");
  expect((await start(made)).stderr).toBe("");
  const logs = await made.magic(["daemon", "logs", "--json"]);
  expect(JSON.stringify(logs.json)).toContain("daemon.crashed");
});

test("what the runtime printed while it died is told by the next start", async () => {
  const made = await temporaryProject();
  const words = "fs.writeSync(2, 'JavaScript heap out of memory'); process.kill(process.pid, 'SIGKILL')";
  const first = await startWith(made, words);
  await gone(Number(first.json["pid"]));
  const second = await start(made);
  expect([second.code, second.stderr]).toEqual([0, expect.stringContaining("It said: JavaScript heap out of memory")]);
});

test("a daemon that a command started by itself ends when it is idle; one that the user started stays", async () => {
  const made = await temporaryProject();
  const env = { MAGIC_IDLE_EXIT_MS: "2500" };
  const slip = await made.magic(["logs", "--json"], { MAGIC_IDLE_EXIT_MS: "30m" });
  expect([slip.code, slip.failure["detail"]]).toEqual([2, expect.stringContaining("MAGIC_IDLE_EXIT_MS=30m")]);
  // A variable that is empty is not set.
  await made.magic(["logs", "--json"], { MAGIC_IDLE_EXIT_MS: "" });
  const lasting = readRuntimeFile(made.root);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(isSameProcess(Number(lasting?.pid), lasting?.pid_started ?? null)).toBe(true);
  await made.magic(["daemon", "stop"]);
  const logs = await made.magic(["logs", "--json"], env);
  expect([logs.code, logs.stderr]).toEqual([0, expect.stringContaining("Started the daemon")]);
  const { pid } = JSON.parse(await readFile(join(made.root, ".magic", "daemon.json"), "utf8")) as { pid: number };
  await gone(pid);
  // A command started this one as well: asked for, it is the user's.
  expect((await made.magic(["logs", "--json"], env)).stderr).toContain("Started the daemon");
  const started = await made.magic(["daemon", "start", "--json"], env);
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  expect(isSameProcess(Number(started.json["pid"]), null)).toBe(true);
});

test("SIGTERM refuses what is new, ends what is under way, and stops within its time", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  const url = String(json["url"]);
  const stream = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${String(json["gateway_token"])}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/echo",
      stream: true,
      messages: [{ role: "user", content: "word ".repeat(200) }],
    }),
  });
  process.kill(Number(json["pid"]), "SIGTERM");
  expect(await stream.text()).toContain("data: [DONE]");
  const ended = performance.now();
  await gone(Number(json["pid"]));
  expect(performance.now() - ended).toBeLessThan(within(12_000));
  await expect(fetch(`${url}/health`)).rejects.toThrow();
});

test("beyond loopback, plain HTTP takes no credential but the local command line's", async () => {
  const made = await temporaryProject();
  const { json } = await start(made, "--host", "0.0.0.0");
  const url = String(json["url"]);
  const ask = async (path: string, token: unknown) => {
    const answer = await fetch(url + path, {
      redirect: "manual",
      headers: { authorization: `Bearer ${String(token)}` },
    });
    return [answer.status, ((await answer.json()) as { code?: string }).code];
  };
  for (const name of ["api_key", "admin_key", "gateway_token"])
    expect([name, ...(await ask("/v1/models", json[name]))]).toEqual([name, 403, undefined]);
  expect(await ask("/v1/logs", json["api_key"])).toEqual([403, "tls_required"]);
  expect(await ask("/health", json["api_key"])).toEqual([403, "tls_required"]);
  expect((await ask("/v1/daemon", json["local_token"]))[0]).toBe(200);
  expect((await fetch(`${url}/health`)).status).toBe(200);
});

test("doctor tells a stale daemon, mends it, and closes what others can read", async () => {
  const made = await temporaryProject();
  await writeFile(join(made.root, "magic.yaml"), `version: 1\nsecrets: { A: "\${env:MAGIC_TEST_UNSET}" }\n`);
  const { json } = await start(made);
  const well = await made.magic(["doctor", "--json"]);
  expect([well.code, checks(well.json)]).toMatchObject([0, { daemon: "ok", secrets: "ok", "magic.yaml": "warning" }]);
  expect(well.stdout).toContain("MAGIC_TEST_UNSET (/secrets/A)");
  // One of before an upgrade.
  const file = join(made.root, ".magic", "daemon.json");
  await writeFile(file, (await readFile(file, "utf8")).replace(/"version": ".*?"/, '"version": "0.0.1"'));
  expect(checks((await made.magic(["doctor", "--json"])).json)).toMatchObject({ daemon: "warning" });
  expect((await start(made)).stderr).toContain(`version ${VERSION} would take \`magic daemon restart\``);
  const kept = await readFile(join(made.root, "magic.yaml"), "utf8");
  await writeFile(join(made.root, "magic.yaml"), "version: 1\ngatewy: {}\n");
  const status = async () => JSON.stringify((await made.magic(["daemon", "status", "--json"])).json["problems"]);
  await expect.poll(status, { timeout: 20_000 }).toMatch(/config_invalid.*not in force.*magic\.yaml:2:1 .*gatewy/);
  await writeFile(join(made.root, "magic.yaml"), kept);
  process.kill(Number(json["pid"]), "SIGKILL");
  await gone(Number(json["pid"]));
  await chmod(join(made.root, ".magic", "credentials.json"), 0o644);
  const sick = await made.magic(["doctor", "--json"]);
  expect([sick.code, checks(sick.json)]).toMatchObject([3, { daemon: "failed", secrets: "failed" }]);
  const mended = await made.magic(["doctor", "--fix", "--json"]);
  expect([mended.code, checks(mended.json)]).toMatchObject([0, { daemon: "fixed", secrets: "fixed" }]);
  expect(checks((await made.magic(["doctor", "--json"])).json)).toMatchObject({ daemon: "ok", secrets: "ok" });
  // What would keep the next daemon from starting.
  const db = new DatabaseSync(join(made.root, ".magic", "magic.db"));
  db.exec("insert into magic_migration (name, timestamp) values ('999-later', '2030-01-01T00:00:00.000Z')");
  db.close();
  const newer = await made.magic(["doctor", "--json"]);
  expect([newer.code, checks(newer.json)]).toMatchObject([3, { database: "failed" }]);
  expect(await start(made)).toMatchObject({ code: 1, failure: { code: "state_unusable", next: "Upgrade magic." } });
  await rm(join(made.root, ".magic", "magic.db"), { force: true });
  await writeFile(join(made.root, ".magic", "magic.db-wal"), "of a database that is gone");
  await writeFile(join(made.root, ".magic", "daemon.lock"), "neither is this");
  await writeFile(join(made.home, "master.key"), "short", { mode: 0o600 });
  const broken = await made.magic(["doctor", "--json"]);
  expect([broken.code, checks(broken.json)]).toMatchObject([3, { database: "failed", "state files": "failed" }]);
  expect(broken.stdout).toMatch(/master key/);
  await writeFile(join(made.home, "master.key"), `${Buffer.alloc(32).toString("base64url")}\n`, { mode: 0o600 });
  expect((await start(made)).failure["next"]).toBe("`magic doctor --fix` removes it.");
  await rm(join(made.root, ".magic", "daemon.lock"));
  expect(await start(made)).toMatchObject({ code: 1, failure: { code: "database_corrupt" } });
  expect(await readdir(join(made.root, ".magic"))).not.toContain("magic.db");
});

test("a master key that was lost and made anew is told at the start, by status and by doctor, with both ways on", async () => {
  const made = await temporaryProject();
  await start(made);
  const config = '{"url": "postgres://u:p@127.0.0.1:1/x"}';
  expect(
    (await made.magic(["connection", "create", "--provider", "postgres", "--config", config, "--json"])).code,
  ).toBe(0);
  await made.magic(["daemon", "stop"]);
  expect(checks((await made.magic(["doctor", "--json"])).json)).toMatchObject({ "master key": "ok" });
  await rm(join(made.home, "master.key"));
  const sick = await made.magic(["doctor", "--json"]);
  expect([sick.code, checks(sick.json)]).toMatchObject([3, { "master key": "failed" }]);
  expect(sick.stdout).toContain("--forget-sealed");
  const started = await start(made);
  expect([started.code, started.stderr]).toEqual([0, expect.stringContaining(join(made.home, "master.key"))]);
  const status = await made.magic(["daemon", "status", "--json"]);
  expect([status.code, status.json["problems"]]).toMatchObject([0, [{ code: "master_key_mismatch" }]]);
  expect(checks((await made.magic(["doctor", "--json"])).json)).toMatchObject({ master_key_mismatch: "failed" });
  const asked = await made.magic(["connection", "create", "--provider", "postgres", "--config", config, "--json"]);
  expect([asked.code, asked.failure["code"]]).toEqual([1, "master_key_mismatch"]);
  const proven = await made.magic(["audit", "verify", "--json"]);
  expect([proven.code, proven.stdout, proven.failure["code"]]).toEqual([1, "", "master_key_mismatch"]);
  expect((await start(made, "--forget-sealed")).failure["code"]).toBe("daemon_owned");
  expect((await made.magic(["daemon", "restart", "--forget-sealed", "--json"])).code).toBe(0);
  expect((await made.magic(["daemon", "status", "--json"])).json["problems"]).toEqual([]);
  expect((await made.magic(["doctor", "--json"])).code).toBe(0);
});

test("a root that does not exist is named, and not made", async () => {
  const made = await temporaryProject();
  const outcome = await made.magic(["daemon", "start", "--json", "--root", join(made.root, "nowhere")]);
  expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([4, "", "not_found"]);
  const dev = await made.magic(["dev", "--output", "ndjson", "--root", join(made.root, "nowhere")]);
  expect([dev.code, dev.failure["code"]]).toEqual([4, "not_found"]);
  await expect(stat(join(made.root, "nowhere"))).rejects.toThrow();
});

test("outside a project the user's state folder is the root, made when it is needed", async () => {
  const made = await temporaryProject();
  const home = join(made.root, "not", "yet", "made", "at", "all");
  expect((await made.magic(["doctor", "--json"], { MAGIC_ROOT: "", MAGIC_HOME: home })).code).toBe(0);
  const outcome = await made.magic(["daemon", "start", "--json", "--port", "0"], { MAGIC_ROOT: "", MAGIC_HOME: home });
  expect([outcome.code, outcome.json["root"]]).toEqual([0, home]);
  const stopped = await made.magic(["daemon", "stop", "--json"], { MAGIC_ROOT: "", MAGIC_HOME: home });
  expect(stopped.json["pid"]).toBe(outcome.json["pid"]);
});

test("restart keeps the port and the flags of the start; the root's own certificate is trusted however the daemon is named", async () => {
  const made = await temporaryProject();
  const first = await start(made, "--tls", "--host", "localhost");
  expect(first.json["url"]).toMatch(/^https:\/\/localhost:\d+$/);
  const second = await made.magic(["daemon", "restart", "--json"]);
  expect([second.code, second.json["url"]]).toEqual([0, first.json["url"]]);
  expect(second.json["pid"]).not.toBe(first.json["pid"]);
  const named = { MAGIC_URL: String(first.json["url"]), MAGIC_API_KEY: String(first.json["api_key"]) };
  expect(await made.magic(["sync", "list", "--json"], named)).toMatchObject({ code: 0, stderr: "" });
});

test("restart leaves the daemon running whose magic.yaml is not valid any more", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  await writeFile(join(made.root, "magic.yaml"), "version: 1\ngatway: {}\n");
  const refused = await made.magic(["daemon", "restart", "--json"]);
  const detail = expect.stringContaining("Did you mean `gateway`?");
  expect(refused).toMatchObject({ code: 3, failure: { code: "config_invalid", detail } });
  expect((await made.magic(["daemon", "status", "--json"])).json["pid"]).toBe(json["pid"]);
});

test("restart leaves the daemon running where the next one could not listen, whoever named the address", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  const { port, close } = await listen(createServer());
  const restart = (...more: string[]) => made.magic(["daemon", "restart", "--json", ...more]);
  const taken = { code: 7, stdout: "", failure: { code: "port_taken", port } };
  expect(await restart("--port", String(port))).toMatchObject(taken);
  expect(await restart("--host", "203.0.113.1")).toMatchObject({ code: 2, failure: { code: "usage" } });
  expect((await made.magic(["daemon", "status", "--json"])).json["pid"]).toBe(json["pid"]);

  const stopped = await made.magic(["daemon", "stop", "--json"]);
  const configured = await made.magic(["daemon", "start", "--json"]);
  await writeFile(join(made.root, "magic.yaml"), `version: 1\ndaemon: { host: "\${env:HERE}", port: ${port} }\n`);
  expect(await made.magic(["daemon", "restart", "--json"], { HERE: "127.0.0.1" })).toMatchObject(taken);
  const status = await made.magic(["daemon", "status", "--json"]);
  expect([stopped.json["pid"], status.json["pid"]]).toEqual([json["pid"], configured.json["pid"]]);
  await close();
  const moved = await made.magic(["daemon", "restart", "--json"], { HERE: "127.0.0.1" });
  expect(moved).toMatchObject({ code: 0, stderr: "" });
  expect(moved.json["url"]).toBe(`http://127.0.0.1:${port}`);
});

test("restart leaves the daemon running by whose certificate, or on whose disk, the next one would not start", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  const restart = (...more: string[]) => made.magic(["daemon", "restart", "--json", ...more]);
  await writeFile(join(made.root, "own.pem"), "none");
  for (const flags of [["--tls-cert=own.pem"], ["--tls-cert=own.pem", "--tls-key=own.pem"], ["--tls-key=gone.pem"]])
    expect([flags, await restart(...flags)]).toMatchObject([flags, { code: 3, failure: { code: "config_invalid" } }]);
  await writeFile(join(made.root, "magic.yaml"), "version: 1\ndaemon: { tls: { cert: own.pem, key: gone.pem } }\n");
  expect(await restart()).toMatchObject({ code: 3, failure: { code: "config_invalid" } });
  await rm(join(made.root, "magic.yaml"));
  const readOnly = await made.magicReadOnly(["daemon", "restart", "--json"]);
  if (readOnly) expect(readOnly).toMatchObject({ code: 1, failure: { code: "state_unusable" } });
  expect((await made.magic(["daemon", "status", "--json"])).json["pid"]).toBe(json["pid"]);
});

test("a port or host that cannot be is a usage error", async () => {
  const made = await temporaryProject();
  const port = await made.magic(["daemon", "start", "--json", "--port", "70000"]);
  expect([port.code, port.failure["code"]]).toEqual([2, "usage"]);
  for (const given of ["203.0.113.1", "fe80::1"]) {
    const host = await start(made, "--host", given);
    const next = expect.stringContaining("magic.yaml");
    expect(host).toMatchObject({ code: 2, failure: { code: "usage", detail: expect.stringContaining(given), next } });
  }
});

/** Starts a daemon in whose process this code runs, a little after it is ready. */
function startWith(made: Project, code: string) {
  const bomb =
    "import fs from 'node:fs'; const path = process.env.MAGIC_ROOT + '/.magic/daemon.json';" +
    "if (process.argv.includes('--started-by=user')) { const timer = setInterval(() => { if (fs.existsSync(path)) {" +
    `clearInterval(timer); setTimeout(() => { ${code} }, 400) } }, 20).unref() }`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(bomb)}`;
  return made.magic(["daemon", "start", "--json", "--port", "0"], { NODE_OPTIONS });
}

async function contents(root: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of [".magic", ".magic/daemon.lock", ".magic/credentials.json"])
    await readFile(join(root, name), "utf8").then(
      (text) => {
        found[name] = text;
      },
      () => undefined,
    );
  return found;
}
