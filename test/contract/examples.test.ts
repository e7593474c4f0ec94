// What `magic dev` reads of contracts by itself, beside the daemon that serves them.
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exampleInput, refreshTypesIn } from "#scaffold/examples.ts";
import { scaffold } from "#scaffold/scaffold.ts";
import { temporaryFolder } from "#test/temporary.ts";

function project(names: readonly string[]): { readonly folder: string; types(name: string): string } {
  const root = temporaryFolder();
  for (const name of names) scaffold({ name, template: "minimal", lang: "ts", root, force: false });
  const folder = join(root, "controllers");
  return { folder, types: (name) => join(folder, name, "contract.types.ts") };
}

test("a contract that cannot be read keeps no other controller from its types and its example", () => {
  const { folder, types } = project(["broken", "sound"]);
  const contract = join(folder, "broken", "contract.yaml");
  rmSync(contract);
  // Whoever reads it, root too, gets an error.
  symlinkSync("/proc/self/mem", contract);
  writeFileSync(types("sound"), "stale");
  refreshTypesIn(folder);
  expect(readFileSync(types("sound"), "utf8")).toContain("name");
  expect(exampleInput(folder, "sound")).toMatchObject({ name: expect.any(String) });
  expect(exampleInput(folder, "broken")).toEqual({});
});

test("after a save of one of many controllers its contract is read, not all", () => {
  const names = Array.from({ length: 40 }, (_, at) => `many-${at}`);
  const { folder, types } = project(names);
  const costs = (name?: string): number => {
    const before = process.threadCpuUsage();
    refreshTypesIn(folder, name);
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  const all = costs();
  writeFileSync(types("many-9"), "stale");
  expect(costs("many-9")).toBeLessThan(all / 3);
  expect(readFileSync(types("many-9"), "utf8")).not.toBe("stale");
});

test("a controller whose folder has another name is found by the name of its contract", () => {
  const { folder, types } = project(["folder"]);
  const contract = join(folder, "folder", "contract.yaml");
  writeFileSync(contract, readFileSync(contract, "utf8").replace("name: folder", "name: other"));
  writeFileSync(types("folder"), "stale");
  refreshTypesIn(folder, "other");
  expect(readFileSync(types("folder"), "utf8")).not.toBe("stale");
});
