import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolder } from "#shared/make-folder.ts";

test("what is missing is made, and the topmost of it named; a folder that refuses is an error, at once", () => {
  const root = mkdtempSync(join(tmpdir(), "magic-folder-"));
  const folder = join(root, "a/b/c");
  expect(makeFolder(folder, 0o700)).toBe(join(root, "a"));
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(makeFolder(folder)).toBeUndefined();
  rmSync(root, { recursive: true });
  if (existsSync("/proc/1")) expect(() => makeFolder("/proc/1/magic/state")).toThrow(/ENOENT|EACCES|EPERM/);
});
