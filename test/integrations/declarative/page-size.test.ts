// Pages that are too much for one answer are asked for again, smaller; so are windows of time.
import { expect, test } from "vitest";
import { json, manifest, read, vendor } from "./one-stream.ts";

/** A vendor of ten records that gives up on pages of more than `most`. What was asked: `offset+size`. */
async function weak(most: (asked: number) => number, reduction: object = {}) {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    const [offset, size] = ["offset", "size"].map((name) => Number(request.at.searchParams.get(name) ?? 0));
    asked.push(`${offset}+${size}`);
    const [from = 0, count = 0] = [offset, size];
    if (count > most(asked.length)) return json(response, { message: "too expensive" }, 502);
    const ids = Array.from({ length: Math.min(count, 10 - from) }, (_, at) => from + at + 1);
    json(response, { items: ids.map((id) => ({ id })) });
  });
  const option = (field_name: string) => ({ type: "RequestOption", inject_into: "request_parameter", field_name });
  const filter = { type: "HttpResponseFilter", http_codes: [502], action: "REDUCE_PAGE_SIZE" };
  const source = (strategy: object = { type: "OffsetIncrement" }) =>
    manifest(origin, {
      retriever: { page_size_reduction: { type: "PageSizeReduction", ...reduction } },
      requester: { error_handler: { type: "DefaultErrorHandler", response_filters: [filter] } },
      paginator: {
        ...{ page_token_option: option("offset"), page_size_option: option("size") },
        pagination_strategy: { page_size: 8, ...strategy },
      },
    });
  return { source, asked };
}
const all = Array.from({ length: 10 }, (_, at) => ({ id: at + 1 }));

test("a page is asked for again with half the records, and a full smaller page is not the last", async () => {
  const { source, asked } = await weak(() => 4);
  const waits: number[] = [];
  expect((await read(source(), { waits })).records).toEqual(all);
  expect(asked).toEqual(["0+8", "0+4", "4+4", "8+4"]);
  expect(waits).toEqual([0.5]);
  const cursor = { type: "CursorPagination", cursor_value: "{{ last_record['id'] }}" };
  const { source: cursors, asked: asCursor } = await weak(() => 3, { reduction_factor: 4 });
  const stop_condition = "{{ last_page_size < page_size }}";
  expect((await read(cursors({ ...cursor, stop_condition }), { waits: [] })).records).toEqual(all);
  expect(asCursor).toEqual(["0+8", "0+2", "2+2", "4+2", "6+2", "8+2", "10+2"]);
});

test("the smallest page is asked for as often as the manifest says, then the read fails with its advice", async () => {
  const { source, asked } = await weak(() => 0, {
    ...{ minimum_page_size: 2, retries_at_minimum_page_size: 2, backoff_seconds: 10 },
    failure_message: "Select fewer fields.",
  });
  const waits: number[] = [];
  await expect(read(source(), { waits })).rejects.toThrow(/502.*down to 2 records a page\. Select fewer fields\./);
  expect(asked).toEqual(["0+8", "0+4", "0+2", "0+2", "0+2"]);
  expect(waits).toEqual([10, 20, 10, 20]);
});

test("after a page that came, the next one may be large again; pages by number cannot be smaller", async () => {
  const { source, asked } = await weak((count) => (count === 1 ? 4 : 8), { reset_policy: "AFTER_SUCCESSFUL_PAGE" });
  expect((await read(source(), { waits: [] })).records).toEqual(all);
  expect(asked).toEqual(["0+8", "0+4", "4+8"]);
  await expect(read(source({ type: "PageIncrement" }))).rejects.toThrow("page_size_reduction");
});

/** A vendor of one record a day that answers for at most `most` days; from the 1st to the 8th. What was asked: `1-8`. */
async function narrow(most: number, { splitting, cursor }: { splitting?: object; cursor?: object } = {}) {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    const [from = 0, to = 0] = ["from", "to"].map((name) => Number(request.at.searchParams.get(name)?.slice(8, 10)));
    const page = Number(request.at.searchParams.get("page") ?? 0);
    asked.push(`${from}-${to}${page ? `p${page}` : ""}`);
    // Only the second page shows that it is too much.
    if (page > 0 && to - from >= most) return json(response, { message: "too wide" }, 400);
    const days = Array.from({ length: to - from + 1 }, (_, at) => `2026-01-0${to - at}`);
    json(response, { items: days.map((day) => ({ id: day, day })).slice(page * 2, page * 2 + 2) });
  });
  const option = (field_name: string) => ({ type: "RequestOption", inject_into: "request_parameter", field_name });
  const filter = { type: "HttpResponseFilter", http_codes: [400], action: "SPLIT_REQUEST_WINDOW" };
  const source = manifest(origin, {
    retriever: splitting ? { request_window_splitting: { type: "RequestWindowSplitting", ...splitting } } : {},
    requester: { error_handler: { type: "DefaultErrorHandler", response_filters: [filter] } },
    paginator: {
      page_token_option: option("page"),
      pagination_strategy: { type: "PageIncrement", page_size: 2 },
    },
    sync: {
      ...{ type: "DatetimeBasedCursor", cursor_field: "day", datetime_format: "%Y-%m-%d", cursor_granularity: "P1D" },
      ...{ start_datetime: "2026-01-01", end_datetime: "2026-01-08" },
      ...{ start_time_option: option("from"), end_time_option: option("to") },
      ...cursor,
    },
  });
  return { source, asked };
}

test("a window that the vendor refuses is read in halves, and what it gave before does not count as read", async () => {
  const { source, asked } = await narrow(2, { splitting: {} });
  const states: unknown[] = [];
  const { records } = await read(source, { onState: (state) => states.push((state as { cursor: unknown }).cursor) });
  expect(asked).toEqual(
    ["1-8", "1-8p1", "1-4", "1-4p1", ...["1-2", "1-2p1", "3-4", "3-4p1"], "5-8", "5-8p1"].concat([
      "5-6",
      "5-6p1",
      "7-8",
      "7-8p1",
    ]),
  );
  expect(new Set(records.map(({ id }) => id)).size).toBe(8);
  expect(states).toEqual(["02", "04", "06", "08", "08"].map((day) => `2026-01-${day}`));
});

test("halves have the offset that stands in the format", async () => {
  const formats = {
    datetime_format: "%Y-%m-%dT%H:%M:%S+01:00",
    cursor_datetime_formats: ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d"],
  };
  const { source, asked } = await narrow(4, { splitting: {}, cursor: formats });
  expect((await read(source)).state).toMatchObject({ cursor: expect.stringContaining("2026-01-08T01:00:00+01:00") });
  expect(asked.filter((window) => !window.includes("p"))).toEqual(["1-8", "1-4", "5-8"]);
});

test("a window is not split below its least, nor where the manifest does not say how", async () => {
  const least = await narrow(2, { splitting: { min_split_window: "P4D", failure_message: "Select less." } });
  await expect(read(least.source)).rejects.toThrow(
    /too wide.*2026-01-01 to 2026-01-04 is not split further\. Select less\./,
  );
  await expect(read((await narrow(2)).source)).rejects.toThrow(
    "too wide: the manifest has no request_window_splitting",
  );
  const none = await narrow(2, { splitting: {}, cursor: { cursor_granularity: undefined } });
  await expect(read(none.source)).rejects.toThrow("cursor_granularity");
});
