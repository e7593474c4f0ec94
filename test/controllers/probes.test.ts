import { expect, test } from "vitest";
import { columns, harmless, openTargets, runProbes } from "./probes/run.ts";

test.skipIf(process.platform !== "linux" || process.arch !== "x64")(
  "of every third probe that gains access in an ordinary process, none gains any in a cell",
  async () => {
    const targets = await openTargets();
    try {
      const pick = (_name: string, at: number): boolean => at % 3 === 0;
      const control = await runProbes(targets, columns["none"] as never, pick);
      const cell = await runProbes(targets, columns["all"] as never, pick);
      const valid = [...control.values()].filter((one) => one.gained && !harmless.has(one.probe));
      expect(valid.length).toBeGreaterThan(50);
      expect(valid.filter(({ probe }) => cell.get(probe)?.gained).map(({ probe }) => cell.get(probe))).toEqual([]);
    } finally {
      targets.close();
    }
  },
);

test.skipIf(process.platform !== "linux" || process.arch !== "x64")(
  "the kernel's layers alone keep another process's clock, and memory that no limit counts, from a cell",
  async () => {
    const targets = await openTargets();
    try {
      const pick = (name: string): boolean => /^syscall (clock_|mmap beyond)/.test(name);
      const gained = async (column: string): Promise<boolean[]> =>
        [...(await runProbes(targets, columns[column] as never, pick)).values()].map((verdict) => verdict.gained);
      expect(await gained("none")).toEqual([true, true, true, true, true]);
      expect(await gained("kernel alone")).toEqual([false, false, false, false, false]);
    } finally {
      targets.close();
    }
  },
);
