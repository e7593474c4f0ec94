// The ring of log lines: what its readers get, whatever the lines are made of.
import { expect, test } from "vitest";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createLogStream } from "#daemon/telemetry/log-stream.ts";

const fillers = ["plain", "é 🎉 \u2028 \u009b2J \u202e", "x".repeat(60_000), "漢".repeat(40_000), "\ud800", ""];

function filled(lines: number, limits = { lines: 1_000, bytes: 64 * 1024 * 1024 }) {
  const stream = createLogStream(limits);
  const written: string[] = [];
  const logger = createLogger({ sinks: [({ text }) => void written.push(text), stream.sink] });
  for (let n = 0; n < lines; n++) logger.info("n", { n, filler: fillers[n % fillers.length] });
  return { stream, written };
}

test("lines come back as they were written, one by one and as bytes", () => {
  const { stream, written } = filled(300);
  expect(stream.bounds()).toEqual({ first: 0, next: 300 });
  const { lines, next, missed } = stream.read(0, 1_000);
  expect(lines.map(({ text }) => text)).toEqual(written);
  expect(written[1]).toContain("\\u2028 \\u009b2J \\u202e");
  expect({ next, missed }).toEqual({ next: 300, missed: 0 });
  expect(lines.every(({ cursor, text }) => JSON.parse(text).cursor === cursor)).toBe(true);
  for (const from of [0, 1, 7, 150, 299, 300]) {
    const { bytes } = stream.tail(from);
    expect(Buffer.concat(bytes).toString()).toBe(
      written
        .slice(from)
        .map((text) => `${text}\n`)
        .join(""),
    );
  }
});

test("the ring keeps so many lines, and so many bytes, and counts what a reader missed", () => {
  const few = filled(300, { lines: 10, bytes: 64 * 1024 * 1024 });
  expect(few.stream.bounds()).toEqual({ first: 290, next: 300 });
  expect(few.stream.read(5, 3)).toMatchObject({ next: 293, missed: 285 });
  expect(few.stream.tail(5)).toMatchObject({ next: 300, missed: 285 });
  const small = filled(300, { lines: 1_000, bytes: 300_000 });
  const { first } = small.stream.bounds();
  const held = Buffer.concat(small.stream.tail(0).bytes).length;
  expect(held).toBeLessThanOrEqual(300_000);
  expect(held + Buffer.byteLength(small.written[first - 1] ?? "")).toBeGreaterThan(299_000);
});

test("a cursor finds the line behind it, unless lines between may be gone", () => {
  const { stream, written } = filled(300, { lines: 100, bytes: 64 * 1024 * 1024 });
  const cursor = (n: number) => (JSON.parse(written[n] ?? "") as { cursor: string }).cursor;
  expect(stream.after(cursor(250))).toBe(251);
  expect(stream.after(cursor(299))).toBe(300);
  expect(stream.after(cursor(200))).toBe(201);
  expect(stream.after(cursor(100))).toBeUndefined();
});
