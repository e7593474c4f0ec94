// Values from files: pipes are read to their end, what has none is not.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import addConnector from "#commands/connector/add.ts";
import { readJsonInput, readTextInput } from "#commands/json-input.ts";
import { wholeNumbers } from "#shared/json-text.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { createSandbox, program } from "./magic.ts";

test("a file without an end is refused, not waited for", { timeout: 60_000 }, async () => {
  await expect(readTextInput("@/dev/zero", "--config")).rejects.toMatchObject({
    code: "usage",
    message: expect.stringMatching(/--config: \/dev\/zero cannot be read: it has more than \d+ bytes/),
  });
  const call = { args: ["/dev/zero"], options: {}, cwd: "/", signal: new AbortController().signal };
  await expect(addConnector.run(call as unknown as Parameters<typeof addConnector.run>[0])).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining("more than"),
  });
});

test("a pipe that nobody writes into is waited for, but not past an interruption; what comes late is read", async () => {
  const box = createSandbox();
  const pipe = join(box.folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const read = ["connector", "read", pipe, "customers"];
  for (const [signal, args] of [
    ["SIGTERM", ["invoke", "hello", "--input", `@${pipe}`]],
    ["SIGTERM", read],
    ["SIGHUP", read],
  ] as const) {
    const child = spawn(process.execPath, [program, ...args], { env: box.env, stdio: "ignore" });
    // There is a writer, who writes nothing, as soon as there is a reader.
    const writer = await vi.waitFor(() => openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK), 60_000);
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([130, null]);
    closeSync(writer);
  }
  const late = readJsonInput(`@${pipe}`, "--input");
  await setTimeout(50);
  await promisify(execFile)("sh", ["-c", `(echo '{"late":'; sleep 0.1; echo 1}) > ${pipe}`]);
  expect(await late).toEqual({ late: 1 });
  await box.dispose();
});

test("what cannot be read is said with the flag", async () => {
  await expect(readJsonInput("@/nonexistent", "--input")).rejects.toThrow(
    /--input: \/nonexistent cannot be read: ENOENT/,
  );
  await expect(readJsonInput("@/", "--input")).rejects.toThrow(/--input: \/ cannot be read: EISDIR/);
});

test("a file in another encoding is refused: its letters would not be those that it holds", async () => {
  const file = join(temporaryFolder(), "input.json");
  writeFileSync(file, Buffer.from('{"name":"Zoë"}', "latin1"));
  await expect(readJsonInput(`@${file}`, "--input")).rejects.toMatchObject({
    code: "usage",
    message: `--input: ${file} cannot be read: it is not UTF-8 text.`,
  });
});

test("an id of twenty digits keeps them in a configuration", async () => {
  const given = '{"id":12345678901234567890,"deep":[{"n":-9007199254740993}],"fits":9007199254740991,"far":1e300}';
  expect(await readJsonInput(given, "--config", wholeNumbers)).toEqual({
    ...{ id: "12345678901234567890", deep: [{ n: "-9007199254740993" }], fits: 9007199254740991, far: 1e300 },
  });
});
