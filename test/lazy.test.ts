import { expect, test } from "vitest";
import { lazy } from "#shared/lazy.ts";

test("what is made when it is first needed is made once, and what could not be made is tried again", async () => {
  let tries = 0;
  const made = lazy(async () => {
    if (++tries === 1) throw new Error("no descriptor left");
    return tries;
  });
  const first = [made(), made()];
  for (const one of first) await expect(one).rejects.toThrow("no descriptor left");
  expect(await Promise.all([made(), made()])).toEqual([2, 2]);
  expect(await made()).toBe(2);
});
