import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Everything that tests write lies in one folder, gone at the end however a test's process ended: their temp folders, and a user's state of
// their own (keys, anchors, configuration). As open as /tmp itself: PostgreSQL and some probes are nobody where tests run as root.
const folder = mkdtempSync(join(tmpdir(), "magic-test-"));
chmodSync(folder, 0o1777);
// Compiled once and not by each of some two hundred test processes and as many daemons: a third of their time.
process.env["NODE_COMPILE_CACHE"] = join(folder, "compile-cache");
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const deep = process.env["MAGIC_TEST_DEEP"] !== undefined;
const tests = deep ? "*.deep.test.ts" : "!(*.deep).test.ts";
const together = "test/{contract,docs,egress,gateway,identity,integrations,jobs,secrets,storage,telemetry}/**";
const test = {
  env: { MAGIC_HOME: join(folder, "home"), TMPDIR: folder },
  // Processes, not threads: tests change the working directory and load node:sqlite.
  pool: "forks",
  testTimeout: deep ? 3_600_000 : 90_000,
  hookTimeout: 60_000,
} as const;

export default defineConfig({
  test: {
    globalSetup: ["test/global-setup.ts"],
    // A test waits for its child processes most of the time: on two cores four at a time take an eighth less than three. The long ones measure.
    maxWorkers: deep ? Math.max(2, availableParallelism() - 1) : Math.max(4, availableParallelism()),
    projects: [
      // These leave a process as they found it: many share one and load the code once, for three fifths of the processor time.
      { test: { ...test, name: "together", isolate: deep, include: [`${together}/${tests}`] } },
      // Of the others each file has a process of its own: they count what is in it, or change its environment.
      { test: { ...test, name: "alone", include: [`test/**/${tests}`], exclude: [together] } },
    ],
  },
});
