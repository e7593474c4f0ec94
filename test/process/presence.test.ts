// What commands find a daemon by, removed while it serves.
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RuntimeFile } from "#contract/protocol.ts";
import { watchPresence } from "#daemon/process/presence.ts";
import { writeRuntimeFile } from "#daemon/process/runtime-file.ts";
import { databaseFile } from "#shared/paths.ts";

const runtime = { pid: process.pid, pid_started: null, url: "http://127.0.0.1:4141" } as unknown as RuntimeFile;
let state: string;
let ended: string[];
let stop: () => void;
const placed = () => [
  ...["", "-wal", "-shm"].map((suffix) => `${databaseFile(state)}${suffix}`),
  join(state, "daemon.lock"),
];
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "magic-presence-"));
  ended = [];
  writeRuntimeFile(state, runtime);
  for (const path of placed()) writeFileSync(path, "");
  const end = (reason: string) => void ended.push(reason);
  stop = watchPresence({
    state,
    database: databaseFile(state),
    runtime,
    end,
    ending: () => ended.length > 0,
    everyMs: 5,
  });
});
afterEach(() => {
  stop();
  for (const path of [state, `${state}-moved`]) rmSync(path, { recursive: true, force: true });
});

const file = (folder = state) => join(folder, "daemon.json");
const looks = () => new Promise((resolve) => setTimeout(resolve, 40));
const written = (folder?: string) => expect.poll(() => JSON.parse(readFileSync(file(folder), "utf8")).url);

test("a runtime file that is gone or damaged is written again; another process's is left alone", async () => {
  rmSync(file());
  await written().toBe(runtime.url);
  writeFileSync(file(), "{oops");
  await written().toBe(runtime.url);
  writeFileSync(file(), '{"pid": 1}');
  await looks();
  expect([readFileSync(file(), "utf8"), ended]).toEqual(['{"pid": 1}', []]);
});

test("a daemon whose state folder is removed ends; one whose project is moved goes on", async () => {
  renameSync(state, `${state}-moved`);
  await looks();
  symlinkSync(state, state);
  await looks();
  rmSync(state);
  expect(ended).toEqual([]);
  renameSync(`${state}-moved`, state);
  rmSync(state, { recursive: true });
  await expect.poll(() => ended).toEqual(["state folder removed"]);
});

test("a daemon whose database is removed, or another one put in its place, ends", async () => {
  writeFileSync(databaseFile(state), "more");
  await looks();
  expect(ended).toEqual([]);
  writeFileSync(`${databaseFile(state)}.copy`, "");
  renameSync(`${databaseFile(state)}.copy`, databaseFile(state));
  await expect.poll(() => ended).toEqual(["database removed"]);
});

test.each([
  ["write-ahead log", 1, "database removed"],
  ["log's index", 2, "database removed"],
  ["lock", 3, "lock removed"],
])("a daemon whose %s is removed ends", async (_name, which, reason) => {
  rmSync(placed()[which] as string);
  await expect.poll(() => ended).toEqual([reason]);
});
