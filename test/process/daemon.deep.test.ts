// The whole of what a daemon must survive; a fast part of it is in daemon.test.ts.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, copyFile, mkdir, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isSameProcess } from "#shared/process-identity.ts";
import { gone, launcher, type Project, temporaryProject } from "./magic.ts";

const start = (made: Project, ...more: string[]) => made.magic(["daemon", "start", "--json", "--port", "0", ...more]);
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

test("two daemons started at once, 50 times: exactly one owner each time, and both commands get it", async () => {
  const made = await temporaryProject();
  for (let round = 0; round < 50; round++) {
    const outcomes = await Promise.all([start(made), start(made)]);
    expect([round, outcomes.map(({ code }) => code)]).toEqual([round, [0, 0]]);
    const pids = new Set(outcomes.map(({ json }) => Number(json["pid"])));
    expect(pids.size).toBe(1);
    // The other one is gone, not waiting somewhere.
    expect(await daemonsOf(made.root)).toEqual([...pids]);
    const [pid = 0] = pids;
    process.kill(pid, round % 2 === 0 ? "SIGKILL" : "SIGTERM");
    await gone(pid);
  }
});

test("kill -9 at 50 random moments under load: the next command comes back, and nothing is damaged", async () => {
  const made = await temporaryProject();
  for (let round = 0; round < 50; round++) {
    const started = await start(made);
    expect([round, started.code, started.stderr]).toEqual([round, 0, ""]);
    const { pid, url, local_token: token } = started.json as { pid: number; url: string; local_token: string };
    const load = Array.from({ length: 8 }, () =>
      fetch(`${url}/v1/logs`, { headers: { authorization: `Bearer ${token}` } }).then(
        (answer) => answer.text(),
        () => undefined,
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 120));
    process.kill(pid, "SIGKILL");
    await Promise.all(load);
    await gone(pid);
  }
  const last = await made.magic(["logs", "--json"]);
  expect(last.code).toBe(0);
  await made.magic(["daemon", "stop"]);
  const database = new DatabaseSync(join(made.root, ".magic", "magic.db"), { readOnly: true });
  expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  database.close();
});

test("a wedged daemon is told from one that runs", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  process.kill(Number(json["pid"]), "SIGSTOP");
  const status = await made.magic(["daemon", "status", "--json"]);
  expect([status.code, status.json["state"]]).toEqual([6, "wedged"]);
  process.kill(Number(json["pid"]), "SIGCONT");
  expect((await made.magic(["daemon", "status", "--json"])).json["state"]).toBe("running");
}, 60_000);

test("cold start is at most 500 ms, finding the daemon at most 100 ms over --help", async () => {
  const made = await temporaryProject();
  await start(made);
  const help: number[] = [];
  const cold: number[] = [];
  const found: number[] = [];
  for (let round = 0; round < 10; round++) {
    help.push((await made.magic(["--help"])).ms);
    await made.magic(["daemon", "stop"]);
    cold.push((await start(made)).ms);
    found.push((await made.magic(["daemon", "status", "--json"])).ms);
  }
  const [h, c, f] = [median(help), median(cold), median(found)];
  process.stderr.write(
    `median of 10: --help ${h.toFixed(0)} ms, cold start ${c.toFixed(0)} ms, status ${f.toFixed(0)} ms\n`,
  );
  expect(c).toBeLessThanOrEqual(500);
  expect(f - h).toBeLessThanOrEqual(100);
});

test("a damaged database is refused, and not a byte of it is changed", async () => {
  const made = await temporaryProject();
  await start(made);
  await made.magic(["daemon", "stop"]);
  const path = join(made.root, ".magic", "magic.db");
  const file = await open(path, "r+");
  await file.write(Buffer.alloc(2_000, 0xaa), 0, 2_000, 0);
  await file.close();
  const before = await readFile(path);
  const outcome = await start(made);
  expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([1, "", "database_corrupt"]);
  expect(await readFile(path)).toEqual(before);
});

// Root may read and write everything: these need another user.
describe.skipIf(process.getuid?.() !== 0)("as another user", () => {
  const nobody = 65_534;

  test("a state folder of somebody else is refused", async () => {
    const made = await temporaryProject();
    await mkdir(join(made.root, ".magic"), { mode: 0o755 });
    for (const path of [dirname(made.root), made.root, made.home]) await chown(path, nobody, nobody);
    const outcome = await made.magicAs(nobody, ["daemon", "start", "--json", "--port", "0"]);
    expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([1, "", "state_unusable"]);
    expect((await stat(join(made.root, ".magic"))).mode & 0o777).toBe(0o755);
  });

  test("a state folder that cannot be read is refused", async () => {
    const made = await temporaryProject();
    await mkdir(join(made.root, ".magic"), { mode: 0o700 });
    for (const path of [dirname(made.root), made.root, made.home, join(made.root, ".magic")])
      await chown(path, nobody, nobody);
    await chmod(join(made.root, ".magic"), 0o000);
    const outcome = await made.magicAs(nobody, ["daemon", "start", "--json", "--port", "0"]);
    expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([1, "", "state_unusable"]);
  });

  test("doctor has files of somebody else given back, not restored or removed", async () => {
    const made = await temporaryProject();
    await start(made);
    await made.magic(["daemon", "stop"]);
    for (const path of [dirname(made.root), made.root, made.home, join(made.root, ".magic")])
      await chown(path, nobody, nobody);
    const { json } = await made.magicAs(nobody, ["doctor", "--json"]);
    const sick = (json["checks"] as { name: string; next?: string }[]).filter(({ name }) =>
      /database|files/.test(name),
    );
    const next = "Correct its owner and permissions.";
    expect(sick).toMatchObject([
      { name: "database", next },
      { name: "state files", next },
    ]);
  });
});

test("a read-only disk is refused, and nothing is lost", async (context) => {
  const made = await temporaryProject();
  await start(made);
  await made.magic(["daemon", "stop"]);
  const outcome = await made.magicReadOnly(["daemon", "start", "--json", "--port", "0"]);
  if (outcome === undefined) return context.skip("this machine lets nobody mount a disk");
  expect([outcome.code, outcome.stdout, outcome.failure["code"]]).toEqual([1, "", "state_unusable"]);
  expect((await start(made)).code).toBe(0);
});

test("a fresh checkout on a read-only disk is validated and tested", async (context) => {
  const made = await temporaryProject();
  await made.magic(["scaffold", "--name", "hello"]);
  await rm(join(made.root, ".magic"), { recursive: true });
  const validated = await made.magicReadOnly(["validate", "--json"]);
  if (validated === undefined) return context.skip("this machine lets nobody mount a disk");
  expect([validated.code, validated.json["valid"]]).toEqual([0, true]);
  expect((await made.magicReadOnly(["test"]))?.code).toBe(0);
});

test("another Node than the pinned one is refused with what to do", async (context) => {
  const old = ["/usr/bin/node", "/usr/local/bin/node"].find((path) => existsSync(path));
  const version = old === undefined ? "" : execFileSync(old, ["--version"], { encoding: "utf8" });
  if (old === undefined || Number(/^v(\d+)/.exec(version)?.[1]) >= 26)
    return context.skip("there is no older Node here");
  const made = await temporaryProject();
  // An installation without the pinned Node's package.
  await mkdir(join(made.home, "bin"));
  await copyFile(launcher, join(made.home, "bin", "magic.js"));
  await writeFile(join(made.home, "package.json"), '{"type":"module"}');
  const outcome = spawnSync(old, [join(made.home, "bin", "magic.js"), "daemon", "start", "--json"], {
    encoding: "utf8",
  });
  expect([outcome.status, outcome.stdout]).toEqual([1, ""]);
  expect(outcome.stderr).toContain("magic needs Node 26.10.0");
});

test("a daemon that is frozen is told of by whoever starts, follows or develops", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  process.kill(Number(json["pid"]), "SIGSTOP");
  const outcomes = await Promise.all([
    made.magic(["daemon", "start", "--json"]),
    made.magic(["logs", "--follow", "--output", "ndjson"]),
    made.magic(["dev", "--output", "ndjson"]),
  ]);
  for (const { code, failure, ms } of outcomes)
    expect([code, failure["code"], ms < 20_000]).toEqual([6, "daemon_unavailable", true]);
});

test("unfinished headers are cut within 15 s, unfinished bodies within 40, long answers are not", async () => {
  const made = await temporaryProject();
  const { json } = await start(made);
  const { hostname, port } = new URL(String(json["url"]));
  const cutAfter = (text: string) =>
    new Promise<number>((resolve) => {
      const began = performance.now();
      const socket = connect(Number(port), hostname, () => socket.write(text));
      const drip = setInterval(
        () => socket.writable && socket.write(text.endsWith("\r\n") ? "X-A: b\r\n" : " "),
        1_000,
      );
      socket.resume();
      socket.on("error", () => undefined);
      socket.on("close", () => {
        clearInterval(drip);
        resolve((performance.now() - began) / 1_000);
      });
    });
  const [headers, body] = await Promise.all([
    cutAfter("GET /health HTTP/1.1\r\nHost: localhost\r\n"),
    cutAfter(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${String(json["gateway_token"])}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
    ),
  ]);
  expect(headers).toBeLessThan(15);
  expect(body).toBeLessThan(40);
});

async function daemonsOf(root: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.includes(`--root=${root}\0`) && isSameProcess(Number(pid), null)) found.push(Number(pid));
  }
  return found;
}
