// The whole figure: 10,000 rotations under load.
import { expect, onTestFinished, test } from "vitest";
import { startDaemon } from "./daemon.ts";
import { rotateUnderLoad } from "./rotate-under-load.ts";

test("10,000 rotations under load: no refusal in an overlap, the old secrets dead at their end", async () => {
  const daemon = await startDaemon();
  onTestFinished(() => daemon.close());
  const outcome = await rotateUnderLoad(daemon, { rotations: 10_000, callers: 8 });
  expect(outcome).toMatchObject({ rotations: 10_000, spurious: 0, zombies: 0 });
});
