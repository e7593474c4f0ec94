// What is said of a state folder that cannot be used: who named it.
import { mkdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { reportFailure } from "#output/failure.ts";
import { userStateFolder } from "#shared/paths.ts";
import { createSandbox, type Sandbox } from "./magic.ts";

let box: Sandbox;
beforeAll(() => {
  box = createSandbox();
});
afterAll(() => box.dispose());

test("a state folder that MAGIC_HOME names is mended there", { timeout: 120_000 }, async () => {
  const { code, stderr } = await box.magic(["connector", "list", "--json"], { env: { MAGIC_HOME: "/dev/null/home" } });
  expect(code).toBe(1);
  expect(JSON.parse(stderr.trim().split("\n").at(-1) ?? "")).toMatchObject({
    code: "state_unusable",
    detail: expect.stringContaining("/dev/null/home"),
    next: expect.stringContaining("MAGIC_HOME"),
  });
});

test("a home that is empty or relative is not taken from where the command runs", () => {
  const { HOME } = process.env;
  const without = userStateFolder({});
  try {
    process.env["HOME"] = "";
    expect(userStateFolder({})).toBe(join(userInfo().homedir, ".local", "state", "magic"));
  } finally {
    process.env["HOME"] = HOME;
  }
  expect(userStateFolder({ XDG_STATE_HOME: "relative" })).toBe(without);
  expect(userStateFolder({ XDG_STATE_HOME: "/x" })).toBe("/x/magic");
});

test("a user configuration that cannot be written is the state folder's fault", async () => {
  const damaged = join(box.folder, "home");
  mkdirSync(damaged);
  writeFileSync(join(damaged, "config.json"), "{oops");
  for (const MAGIC_HOME of ["/dev/null/home", damaged]) {
    const { code, stderr } = await box.magic(["config", "set", "output", "text", "--json"], { env: { MAGIC_HOME } });
    expect([code, JSON.parse(stderr).code], MAGIC_HOME).toEqual([1, "state_unusable"]);
  }
});

test.each([
  ["another folder", "/project/.magic", { MAGIC_HOME: "/home/me" }],
  ["the folder that nobody named", "/home/me/.local/state/magic", { XDG_STATE_HOME: "/home/me/.local/state" }],
])("%s is not said to be MAGIC_HOME's", (_what, folder, env) => {
  let written = "";
  const write = (text: string): boolean => {
    written += text;
    return true;
  };
  const stream = { write } as unknown as NodeJS.WriteStream;
  reportFailure(new MagicError("state_unusable", `${folder} is full`), "json", { stdout: stream, stderr: stream }, env);
  expect(JSON.parse(written).next).not.toContain("MAGIC_HOME");
});
