import { expect, test } from "vitest";
import { stackMapper } from "#daemon/controllers/bundle/stack.ts";
import { startCell } from "#daemon/controllers/cell/cell.ts";
import { allLayers } from "#daemon/controllers/cell/lockdown/boot.ts";
import { loadCell } from "#daemon/controllers/serving/load.ts";
import { contractOf } from "./harness.ts";

test("a module that was overtaken before its cell was there is not loaded", async () => {
  const cell = await startCell(allLayers);
  const loading = {
    artifact: { contract: contractOf("overtaken"), code: "for (;;);", map: "", digest: "" },
    stacks: stackMapper("", ""),
    memoryMb: 128,
    withinMs: 60_000,
    onGone() {},
    onLog() {},
  };
  await expect(loadCell(cell, loading, AbortSignal.abort())).rejects.toThrow();
  expect(await cell.gone).toMatchObject({ reason: "killed", message: expect.stringContaining("newer version") });
}, 30_000);
