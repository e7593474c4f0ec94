// What a person at a terminal is asked and shown, without a terminal.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { configInvalid } from "#contract/problem.ts";
import { printChart } from "#output/chart.ts";
import { failureText } from "#output/failure.ts";
import { createPaint, printable, printableJson } from "#output/paint.ts";
import { problemsText } from "#output/problems.ts";
import { askLine } from "#output/prompt.ts";
import { table } from "#output/table.ts";
import { letters, width } from "#output/width.ts";
import { temporaryFolder } from "#test/temporary.ts";

test("an empty line is an answer, Ctrl-D is none, Ctrl-C an interruption", async () => {
  const asked = (typed: string) => {
    const input = new PassThrough();
    const line = askLine("you: ", input, new PassThrough());
    input.write(typed);
    return line;
  };
  expect(await asked("hé llo\r")).toBe("hé llo");
  expect(await asked("\r")).toBe("");
  expect(await asked("\x04")).toBeNull();
  expect(await asked("last\r\x04")).toBe("last");
  await expect(asked("half\x03")).rejects.toMatchObject({ code: "interrupted" });
});

test("a paste of several lines is one thing said", async () => {
  const input = new PassThrough();
  const all = askLine("you: ", input, new PassThrough());
  input.write("one\r\rtwo\rthr");
  await new Promise((resolve) => setTimeout(resolve, 60));
  input.write("ee\r");
  expect(await all).toBe("one\n\ntwo\nthree");
  const told = askLine("you: ", input, new PassThrough());
  input.write("\x1b[200~one\r");
  await new Promise((resolve) => setTimeout(resolve, 60));
  input.write("two\r\x1b[201~");
  await new Promise((resolve) => setTimeout(resolve, 60));
  input.write("\r");
  expect(await told).toBe("one\ntwo\n");
});

test("bars give way where a terminal is narrow", () => {
  const bars = [
    { label: "one", size: 2, text: "twelve bytes" },
    { label: "three", size: 1, text: "x" },
  ];
  expect(printChart([{ label: "a\nb", size: 1, text: "x" }], createPaint(false), 40)).toMatch(/^a b {2}/);
  const widths = (columns: number) =>
    printChart(bars, createPaint(false), columns)
      .split("\n")
      .map((line) => line.length);
  expect(widths(Number.POSITIVE_INFINITY)).toEqual([5 + 2 + 32 + 2 + 12, 5 + 2 + 32 + 2 + 1]);
  expect(widths(40)[0]).toBe(40);
  expect(widths(10)[0]).toBe(5 + 2 + 4 + 2 + 12);
});

test("columns stay columns beside letters that take two, and such as take none", () => {
  const sizes = {
    plain: 5,
    日本語ー: 8,
    ｱｲｳ: 3,
    a·b: 3,
    "✔ ok": 4,
    "❤️": 2,
    "🎉": 2,
    "👨‍👩‍👧": 2,
    "e\u0301": 1,
    "a\u200bb": 2,
    한국어: 6,
  };
  for (const [text, columns] of Object.entries(sizes)) expect(width(text), text).toBe(columns);
  expect(letters("e\u0301👨‍👩‍👧x")).toHaveLength(3);
  const plain = createPaint(false);
  const columns = [
    { title: "NAME", value: (name: string) => name },
    { title: "SIZE", value: () => 1 },
  ];
  const [head = "", ...rows] = table(Object.keys(sizes), columns, plain).split("\n");
  for (const row of rows) expect(width(row.slice(0, -1))).toBe(head.indexOf("SIZE"));
  const labels = ["日".repeat(30), "a".repeat(50)].map((label) => ({ label, size: 1, text: "." }));
  for (const bar of printChart(labels, plain, 80).split("\n")) expect(width(bar)).toBe(40 + 2 + 32 + 2 + 1);
});

test("columns stay columns beside names whose escapes no terminal gets", () => {
  const plain = createPaint(false);
  const names = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "four"];
  const columns = [
    { title: "N", value: (name: string) => name },
    { title: "S", value: () => 1 },
  ];
  expect(printable(table(names, columns, plain), false).split("\n")[1]).toBe(`red${" ".repeat(7)}  1`);
  const bars = printChart(
    names.map((label) => ({ label, size: 1, text: "." })),
    plain,
    80,
  );
  expect(printable(bars, false)).toMatch(/^red {7} {2}█/);
});

test("the mark stands under what is wrong", () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "a.yaml"), "name: 日本語, x");
  const place = { file: "a.yaml", line: 1, column: 12, pointer: "", code: "c", message: "m", fix: "f" };
  const lines = problemsText([place], createPaint(false), folder).split("\n");
  const [line = "", mark = ""] = lines.slice(1);
  expect(mark.indexOf("^")).toBe(width(line.slice(0, line.indexOf("x"))));
});

test("a file's problems are said once each, with their lines", () => {
  const problem = (line: number, message: string) =>
    ({ file: "magic.yaml", line, column: 1, pointer: "/a", code: "c", message, fix: "f" }) as const;
  const text = failureText(configInvalid([problem(1, "The first."), problem(2, "The second.")]), false);
  expect(text).toMatch(/^error: magic\.yaml is not valid\.\n✖ magic\.yaml:1:1/);
  for (const message of ["The first.", "The second."]) expect(text.split(message)).toHaveLength(2);
});

test("fields that are wrong are said once each, and what is said besides them stays", () => {
  const problems = ["/a", "/b"].map((pointer) => ({ pointer, code: "unknown", detail: "is not there" }));
  const of = (message: string) => failureText(new MagicError("validation_failed", message, { problems }), false);
  const below = "  /a  is not there\n  /b  is not there\n";
  expect(of("/a: is not there; /b: is not there")).toContain(`error: The request does not fit its schema.\n${below}`);
  expect(of("the second is missing")).toContain(`error: the second is missing\n${below}`);
});

test("a document that nests by the thousand is printed all the same", () => {
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  for (const indent of [0, 2]) expect(printableJson(JSON.parse(deep), indent)).toBe(deep);
});
