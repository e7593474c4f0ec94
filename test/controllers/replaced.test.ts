// A daemon whose program is exchanged under it: an upgrade, or a build beside it.
import { existsSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { cellEntries } from "#daemon/controllers/cell/entries.ts";
import { cellStarter } from "#daemon/controllers/isolation.ts";

test("a cell that does not start says so where its program is another one now", { timeout: 60_000 }, async () => {
  const starter = cellStarter(true);
  const cell = await starter.start();
  cell.kill("killed", "the test is over");
  await cell.gone;
  const { stageZero, zygote } = await cellEntries();
  expect(existsSync(stageZero) && existsSync(zygote)).toBe(true);
  for (const file of [stageZero, zygote]) writeFileSync(file, "process.exit(1);");
  await expect(starter.start()).rejects.toMatchObject({ code: "program_replaced" });
});
