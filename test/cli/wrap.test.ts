// Sentences at the width of a terminal.
import { execFileSync } from "node:child_process";
import { styleText } from "node:util";
import { expect, test } from "vitest";
import { createOutput } from "#output/create.ts";
import { showLogLine } from "#output/log-line.ts";
import type { Paint } from "#output/paint.ts";
import { shellWord } from "#output/shell-word.ts";
import { columnsOf, wrap } from "#output/wrap.ts";

test("long lines break between words, their rest set in; short ones and what is to be copied stay whole", () => {
  const command = "`magic sync trigger sync_01k --live --wait`";
  const text = `warning: it did not run: ${command} tries it again, now or later\n  next: short\n${"x".repeat(60)} y`;
  expect(wrap(text, 50).split("\n")).toEqual([
    "warning: it did not run:",
    `  ${command}`,
    "  tries it again, now or later",
    "  next: short",
    "x".repeat(60),
    "  y",
  ]);
  expect(wrap(text, Number.POSITIVE_INFINITY)).toBe(text);
  const coloured = `${styleText("red", "error:", { validateStream: false })} ${"word ".repeat(8)}`.trim();
  expect(wrap(coloured, 46)).toBe(coloured);
});

test("only a terminal has columns", () => {
  const stream = (fields: object) => columnsOf(fields as NodeJS.WriteStream);
  expect(stream({ isTTY: true, columns: 80 })).toBe(80);
  for (const fields of [{}, { columns: 80 }, { isTTY: true }, { isTTY: true, columns: 0 }])
    expect(stream(fields)).toBe(Number.POSITIVE_INFINITY);
});

test("NO_COLOR is for the spinner too", () => {
  // Whether there are colours at all its library decides when it is loaded.
  const code = `import { createOutput } from "#output/create.ts";
    const stream = Object.assign(process.stdout, { isTTY: true, columns: 80, clearLine() {}, cursorTo() {}, moveCursor() {} });
    const streams = { stdin: stream, stdout: stream, stderr: stream };
    const progress = createOutput({ format: "text", quiet: false, env: JSON.parse(process.argv[1]), streams }).progress("Working");
    setTimeout(() => progress.done(), 600);`;
  const seen = ["", "1"].map((NO_COLOR) =>
    String(
      execFileSync(process.execPath, ["--input-type=module", "-e", code, JSON.stringify({ NO_COLOR })], {
        env: { FORCE_COLOR: "1", TERM: "xterm" },
      }),
    ),
  );
  expect(seen.map((text) => [text.includes("Working"), text.includes("\x1b[36m")])).toEqual([
    [true, true],
    [true, false],
  ]);
});

test("a terminal without a width shows no progress: its lines could not be counted, and clearing them would not end", async () => {
  const written: string[] = [];
  const clearLine = () => {
    throw new Error("cleared");
  };
  const write = (text: string) => written.push(text) > 0;
  const stream = { isTTY: true, columns: 0, write, clearLine, cursorTo: () => {}, moveCursor: () => {} };
  const streams = { stdin: stream, stdout: stream, stderr: stream } as never;
  const progress = createOutput({ format: "text", quiet: false, env: {}, streams }).progress("Working");
  await new Promise((resolve) => setTimeout(resolve, 200));
  progress.done();
  expect(written).toEqual([]);
});

test("of colours only our own reach a terminal, of directions none, and a message's lines pass for no others", () => {
  const written: string[] = [];
  const stream = { isTTY: true, columns: 200, write: (text: string) => written.push(text) > 0 };
  const streams = { stdin: stream, stdout: stream, stderr: stream } as never;
  const output = createOutput({ format: "text", quiet: false, env: { FORCE_COLOR: "1" }, streams });
  output.result({}, (paint: Paint) => `${paint.bold(`a ${paint.red("b\x1b[8m")}`)} \x1b[8mc \u202ed\u2069\u200e`);
  const entry = { cursor: "c", time: "2026-01-01T10:00:00.000Z", level: "info", event: "said" } as const;
  output.event({}, showLogLine({ ...entry, message: "one\n10:00:00.000 info  two" }));
  expect(written[0]).toBe("\x1b[1ma \x1b[31mb\x1b[39m\x1b[22m c d\u200e\n");
  expect(written[1]).toContain("one\n  10:00:00.000 info  two");
  const progress = output.progress("Working");
  progress.done("orders\x1b]0;owned\x07\x1b[2J\rdone");
  expect(written[2]).toBe("✔ orders\ufffd]0;owned\ufffd\ufffd[2Jdone\n");
});

test("a name in a command that is there to be pasted is one word of it", () => {
  expect(["orders", "a/b.c", "x; rm -rf ~", "it's $(id)", ""].map(shellWord)).toEqual([
    ...["orders", "a/b.c", "'x; rm -rf ~'", "'it'\\''s $(id)'", "''"],
  ]);
});
