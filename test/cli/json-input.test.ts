// Values from files: pipes are read to their end, what has none is not.
import { expect, test } from "vitest";
import addConnector from "#commands/connector/add.ts";
import { readJsonInput, readTextInput } from "#commands/json-input.ts";
import { wholeNumbers } from "#shared/json-text.ts";

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

test("what cannot be read is said with the flag", async () => {
  await expect(readJsonInput("@/nonexistent", "--input")).rejects.toThrow(
    /--input: \/nonexistent cannot be read: ENOENT/,
  );
  await expect(readJsonInput("@/", "--input")).rejects.toThrow(/--input: \/ cannot be read: EISDIR/);
});

test("an id of twenty digits keeps them in a configuration", async () => {
  const given = '{"id":12345678901234567890,"deep":[{"n":-9007199254740993}],"fits":9007199254740991,"far":1e300}';
  expect(await readJsonInput(given, "--config", wholeNumbers)).toEqual({
    ...{ id: "12345678901234567890", deep: [{ n: "-9007199254740993" }], fits: 9007199254740991, far: 1e300 },
  });
});
