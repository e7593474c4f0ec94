// Pages that are too much for one answer are asked for again, smaller.
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
