import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { naming } from "#shared/write-error.ts";

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
