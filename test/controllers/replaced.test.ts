// A daemon whose program is exchanged under it: an upgrade, or a build beside it.
import { existsSync, writeFileSync } from "node:fs";
import * as threads from "node:worker_threads";
import { expect, test, vi } from "vitest";
import { cellEntries } from "#daemon/controllers/cell/entries.ts";
import { readContractApart } from "#daemon/controllers/contract-thread.ts";
import { cellStarter } from "#daemon/controllers/isolation.ts";

vi.mock("node:worker_threads", { spy: true });

test("a cell, or the thread for contracts, that does not start says so where its program is another one now", {
  timeout: 60_000,
}, async () => {
  const starter = cellStarter(true);
  const cell = await starter.start();
  cell.kill("killed", "the test is over");
  await cell.gone;
  const { stageZero, zygote } = await cellEntries();
  expect(existsSync(stageZero) && existsSync(zygote)).toBe(true);
  for (const file of [stageZero, zygote]) writeFileSync(file, "process.exit(1);");
  await expect(starter.start()).rejects.toMatchObject({ code: "program_replaced" });
  const missing = class {
    constructor() {
      throw Object.assign(new Error("Cannot find module"), { code: "MODULE_NOT_FOUND" });
    }
  };
  vi.mocked(threads.Worker).mockImplementationOnce(missing as never);
  await expect(readContractApart("{}", "contract.yaml", "a key")).rejects.toMatchObject({ code: "program_replaced" });
  expect((await readContractApart("{}", "contract.yaml", "a key")).problems).not.toEqual([]);
});
