import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { magicIn } from "#commands/demo/run.ts";

const folder = mkdtempSync(join(tmpdir(), "magic-demo-test-"));
const [, program = ""] = process.argv;
afterEach(() => {
  process.argv[1] = program;
  rmSync(folder, { recursive: true, force: true });
});

test("an interrupted demo waits for the command under way, which may still write into the project", async () => {
  const [begun, ended] = [join(folder, "begun"), join(folder, "ended")];
  process.argv[1] = join(folder, "slow.mjs");
  writeFileSync(
    process.argv[1],
    `import { writeFileSync } from "node:fs";
process.on("SIGTERM", () => setTimeout(() => { writeFileSync(${JSON.stringify(ended)}, ""); process.exit(); }, 100));
setInterval(() => {}, 1_000);
writeFileSync(${JSON.stringify(begun)}, "");`,
  );
  const interruption = new AbortController();
  const command = magicIn(folder, process.env, interruption.signal).json("scaffold");
  const outcome = expect(command).rejects.toMatchObject({ code: "interrupted" });
  await expect.poll(() => existsSync(begun), { timeout: 20_000 }).toBe(true);
  interruption.abort();
  await outcome;
  expect(existsSync(ended)).toBe(true);
});
