import { expect, test } from "vitest";
import { wholeLines } from "#daemon/integrations/connectors/postgres/copy-text.ts";
import { countOf, joined } from "#daemon/integrations/engine/batches.ts";
import type { Batch } from "#daemon/integrations/engine/source.ts";

const packed = (bytes: number): Batch => ({
  rows: [],
  bytes,
  packed: { tuples: [Buffer.alloc(bytes)], count: 10, rows: () => [], done: () => {} },
});

test("rows of a source that gives little at a time go on without the next ones", async () => {
  let more = () => {};
  async function* slow() {
    yield packed(10);
    await new Promise((resolve) => setTimeout(resolve, 300));
    yield packed(10);
    await new Promise<void>((resolve) => {
      more = resolve;
    });
    yield packed(10);
  }
  const batches = joined(slow());
  const first = await batches.next();
  expect(first.done ? 0 : countOf(first.value)).toBe(20);
  const second = batches.next();
  more();
  const { value } = await second;
  expect(value && countOf(value)).toBe(10);
});

test("packed rows are joined to batches of two megabytes, others to one", async () => {
  const sizes = async (of: Batch) => {
    const counts: number[] = [];
    for await (const batch of joined(
      (async function* () {
        for (let i = 0; i < 5; i++) yield of;
      })(),
    ))
      counts.push(countOf(batch));
    return counts;
  };
  expect(await sizes(packed(1 << 20))).toEqual([20, 20, 10]);
  expect(await sizes({ rows: [["a"]], bytes: 1 << 20 })).toEqual([1, 1, 1, 1, 1]);
});

test("a line that is too long comes without its text, and is not held, however its bytes arrive", async () => {
  const text = `a\nbb\n${"x".repeat(25)}\n${"y".repeat(9)}\nc\n\n${"z".repeat(12)}\nd\n`;
  const wanted = ["a", "bb", 26, "yyyyyyyyy", "c", "", 13, "d"];
  for (const size of [1, 2, 3, 7, 11, 26, 40, 1000]) {
    const read: (string | number)[] = [];
    async function* chunks() {
      for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
    }
    for await (const { lines, bytes } of wholeLines(chunks(), 10)) read.push(...(lines.length > 0 ? lines : [bytes]));
    expect(read, `chunks of ${size}`).toEqual(wanted);
  }
});
