// kill -9 of the daemon at random moments of a development session, cells and all: the next command comes back.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { readRuntimeFile, readStartingMark } from "#client/daemon/files.ts";
import { gone, launcher, makeProject, until } from "./magic.ts";

const ROUNDS = Number(process.env["MAGIC_TEST_ROUNDS"] ?? 50);

test(`kill -9 at ${ROUNDS} random moments of dev: any command comes back, nothing is damaged, no cell is left`, async () => {
  const project = await makeProject();
  const { root, home } = project;
  try {
    expect((await project.magic(["scaffold", "--name", "hello", "--json"])).code).toBe(0);
    let cells = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const dev = spawn(process.execPath, [launcher, "dev", "--output", "ndjson"], {
        cwd: root,
        env: { PATH: process.env["PATH"] ?? "", HOME: home, MAGIC_ROOT: root, MAGIC_HOME: home },
        stdio: ["ignore", "ignore", "ignore"],
      });
      const ended = new Promise((resolve) => dev.once("exit", resolve));
      const pid = await until(() => {
        const found = readRuntimeFile(root) ?? readStartingMark(root);
        if (!found) throw new Error("no daemon yet");
        return found.pid;
      });
      // Every second time not before there is a cell to lose.
      if (round % 2 === 0)
        await until(() => {
          if (descendants(pid).length === 0) throw new Error("no cell yet");
        });
      // Starting, bundling, its first cell warm, a reload under way: all of it lies within these moments.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 900));
      if (round % 3 === 0) await writeFile(join(root, "controllers", "hello", "note.txt"), String(round));
      const family = descendants(pid);
      cells += family.length;
      process.kill(pid, "SIGKILL");
      dev.kill("SIGKILL");
      await Promise.all([gone(pid), ended]);
      const next = await project.magic(["logs", "--json", "--limit", "5"]);
      expect([round, next.code, next.stderr]).toEqual([round, 0, expect.any(String)]);
      for (const child of family) await gone(child);
      await project.magic(["daemon", "stop"]);
    }
    // Else this test would look after nothing.
    expect(cells).toBeGreaterThanOrEqual(ROUNDS / 2);
    const database = new DatabaseSync(join(root, ".magic", "magic.db"), { readOnly: true });
    expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    database.close();
    const healthy = await project.magic(["doctor", "--json"]);
    expect([healthy.code, healthy.stdout]).toEqual([0, expect.stringContaining('"healthy": true')]);
  } finally {
    await project.remove();
  }
});

/** All processes below one, at this moment. */
function descendants(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, "latin1");
      parents.set(Number(name), Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // It ended while we looked.
    }
  }
  const found: number[] = [];
  for (let layer = [pid]; layer.length > 0; ) {
    layer = [...parents].filter(([, parent]) => layer.includes(parent)).map(([child]) => child);
    found.push(...layer);
  }
  return found;
}
