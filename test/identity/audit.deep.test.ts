// The whole figure: 100,000 mixed calls, one entry each.
import { expect, onTestFinished, test } from "vitest";
import { startDaemon } from "./daemon.ts";
import { mixedCalls } from "./mixed-calls.ts";

test("100,000 mixed calls: one entry each with its status, in a valid chain", async () => {
  const daemon = await startDaemon();
  onTestFinished(() => daemon.close());
  const { sent, recorded, proof } = await mixedCalls(daemon, 100_000);
  expect(sent.size).toBe(100_000);
  expect(proof).toMatchObject({ valid: true, problems: [] });
  expect(recorded).toEqual(sent);
});
