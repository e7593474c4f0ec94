import { expect, test } from "vitest";
import { Deadline } from "#shared/deadline.ts";

test("limits pass in their order, each once, and those that were taken back never", async () => {
  const passed: string[] = [];
  const begun = performance.now();
  const limit = (name: string, ms: number) => new Deadline(performance.now() + ms, () => void passed.push(name));
  // Later than a busy machine may be with all the others.
  limit("late", 1000);
  const second = limit("second", 20);
  limit("first", 5);
  const never = limit("never", 10);
  never.clear();
  never.clear();
  // One that passes may take back another that is due as well, and set a new one.
  const other = limit("other", 1);
  new Deadline(0, () => {
    other.clear();
    limit("new", 30);
  });
  await new Promise<void>((resolve) => void new Deadline(begun + 1100, resolve));
  expect(performance.now() - begun).toBeGreaterThanOrEqual(1100);
  expect(passed).toEqual(["first", "second", "new", "late"]);
  second.clear();
});
