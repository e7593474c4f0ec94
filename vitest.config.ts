import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: process.env["MAGIC_TEST_DEEP"] ? ["test/**/*.deep.test.ts"] : ["test/**/*.test.ts"],
    exclude: process.env["MAGIC_TEST_DEEP"] ? [] : ["test/**/*.deep.test.ts"],
    globalSetup: ["test/global-setup.ts"],
    // Processes, not threads: tests change the working directory and load node:sqlite.
    pool: "forks",
    testTimeout: process.env["MAGIC_TEST_DEEP"] ? 3_600_000 : 30_000,
    hookTimeout: 60_000,
  },
});
