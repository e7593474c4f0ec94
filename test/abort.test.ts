// Abort notices: what is told to stop hears of it, also where it was told before anybody listened.
import { expect, test } from "vitest";
import { abortSource, onAbort, pause } from "#shared/abort.ts";

test.each([
  ["an AbortController", () => new AbortController()],
  ["the lighter source", abortSource],
])("a listener of %s is told once: later, at once where it is late, or never when it forgot", (_name, make) => {
  const told: string[] = [];
  const source = make();
  onAbort(source.signal, () => told.push("early"));
  onAbort(source.signal, () => told.push("forgotten"))();
  expect(told).toEqual([]);
  source.abort();
  source.abort();
  expect(told).toEqual(["early"]);
  onAbort(source.signal, () => told.push("late"))();
  expect(told).toEqual(["early", "late"]);
});

test("a pause rests for its time, or ends as soon as it is told to", async () => {
  const source = abortSource();
  await expect(pause(1, source.signal)).resolves.toBe(true);
  const long = pause(1_000_000, source.signal);
  source.abort();
  await expect(long).resolves.toBe(false);
  await expect(pause(1_000_000, source.signal)).resolves.toBe(false);
});
