// Work that is ended from outside when its time is over.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { OutOfTime, within } from "#contract/time-limit.ts";

test("work has its time, and no more", () => {
  expect(within(1_000, () => within(1_000, () => 5))).toBe(5);
  expect(() => within(10, () => /^((((a?){8}){8}){8}){8}$/.test("aaaa!"))).toThrow(OutOfTime);
});

test.skipIf(process.platform === "win32")(
  "without descriptors for the clock the work is refused, and the process goes on",
  () => {
    const program = `
    import { closeSync, openSync } from "node:fs";
    import { within } from "#contract/time-limit.ts";
    const opened = [], refused = new Set();
    try { for (;;) opened.push(openSync("/dev/null", "r")); } catch {}
    for (let free = 0; free < 12; free++) {
      try { within(1_000, () => 5); } catch (error) { refused.add(error.code); }
      closeSync(opened.pop());
    }
    console.log([...refused].join(), within(1_000, () => 5));`;
    const limited = ["-c", 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', process.execPath, program];
    expect(execFileSync("sh", limited, { encoding: "utf8" })).toBe("overloaded 5\n");
  },
);
