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

export default defineConfig({
  test: {
    include: process.env["MAGIC_TEST_DEEP"] ? ["test/**/*.deep.test.ts"] : ["test/**/*.test.ts"],
    exclude: process.env["MAGIC_TEST_DEEP"] ? [] : ["test/**/*.deep.test.ts"],
    env: { MAGIC_HOME: join(folder, "home"), TMPDIR: folder },
    globalSetup: ["test/global-setup.ts"],
    // Processes, not threads: tests change the working directory and load node:sqlite.
    pool: "forks",
    // A test waits for its child processes most of the time: on two cores three at a time take a fifth less than two. The long ones measure.
    maxWorkers: process.env["MAGIC_TEST_DEEP"]
      ? Math.max(2, availableParallelism() - 1)
      : Math.max(3, availableParallelism()),
    testTimeout: process.env["MAGIC_TEST_DEEP"] ? 3_600_000 : 90_000,
    hookTimeout: 60_000,
  },
});
