import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { naming } from "#shared/write-error.ts";
import { temporaryFolder } from "./temporary.ts";

test.skipIf(!existsSync("/dev/full"))("a device or disk that is full is named, and a named file only once", () => {
  const full = openSync("/dev/full", "w");
  try {
    const write = () => naming("/disk/build.json", () => writeFileSync(full, "text"));
    expect(write).toThrow("ENOSPC: no space left on device, write '/disk/build.json'");
    expect(() => naming("/else", () => readFileSync("/not/there"))).toThrow(/open '\/not\/there'$/);
    expect(() => naming("/else", () => JSON.parse("{"))).toThrow(/^(?!.*\/else)/);
  } finally {
    closeSync(full);
  }
});

test("a file that cannot be replaced is left as it was, with nothing beside it", () => {
  const folder = temporaryFolder();
  const path = join(folder, "state.json");
  writeFileSync(path, "{}");
  const replaced = join(import.meta.dirname, "../src/shared/replace-file.ts");
  const program = `const { replaceFile } = await import(${JSON.stringify(replaced)});
    await replaceFile(${JSON.stringify(path)}, "x".repeat(100_000)).then(() => console.log("done"), ({ message }) => console.log(message));`;
  // The shell's limit on file sizes stands in for a full disk.
  const limited = ["-c", 'ulimit -f 1; exec "$0" --input-type=module -e "$1"', process.execPath, program];
  expect(execFileSync("bash", limited, { encoding: "utf8" })).toContain("EFBIG");
  expect(readdirSync(folder)).toEqual(["state.json"]);
  expect(readFileSync(path, "utf8")).toBe("{}");
});
