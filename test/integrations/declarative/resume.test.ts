// A read that ends anywhere and goes on from its last state: no record is lost, whatever the order of pages, partitions and days.
import { expect, test } from "vitest";
import { cursor, json, manifest, day as midnight, read, vendor } from "./one-stream.ts";

const day = (at: number): string => `2024-0${at < 28 ? 2 : 3}-${String(at < 28 ? at + 1 : at - 27).padStart(2, "0")}`;

test("a read that ends at any request goes on without losing a record", async () => {
  // Ten days around a leap day, in offsets and fractions; equal times across page borders, the newest first.
  const all = ["a", "b", "c"].flatMap((p) =>
    Array.from({ length: 30 }, (_, at) => ({
      id: `${p}${at}`,
      p,
      day: day(23 + Math.floor(at / 3)),
      at: [
        `${day(23 + Math.floor(at / 3))}T12:00:00Z`,
        `${day(23 + Math.floor(at / 3))}T14:00:00.000000+02:00`,
        `${day(23 + Math.floor(at / 3))}T13:30:00.123456Z`,
      ][at % 3],
    })),
  );
  let left = Number.POSITIVE_INFINITY;
  let asked = 0;
  const origin = await vendor(({ at }, response) => {
    asked++;
    if (left-- <= 0) {
      json(response, {}, 400);
      return;
    }
    if (at.pathname === "/parents") {
      json(response, { items: [{ id: "c" }, { id: "a" }, { id: "b" }] });
      return;
    }
    const [from, to] = ["from", "to"].map((name) => Date.parse(at.searchParams.get(name) ?? ""));
    const offset = Number(at.searchParams.get("offset") ?? 0);
    const found = all
      .filter(({ p, at: time }) => p === at.searchParams.get("p") && Date.parse(time ?? "") >= (from ?? 0))
      .filter(({ at: time }) => Date.parse(time ?? "") <= (to ?? 0))
      .reverse();
    json(response, { items: found.slice(offset, offset + 2) });
  });
  const option = (field_name: string) => ({ type: "RequestOption", inject_into: "request_parameter", field_name });
  const parents = JSON.parse(manifest(origin, { requester: { path: "/parents" } })).streams[0];
  const source = manifest(origin, {
    retriever: {
      partition_router: {
        type: "SubstreamPartitionRouter",
        parent_stream_configs: [
          {
            type: "ParentStreamConfig",
            parent_key: "id",
            partition_field: "p",
            request_option: option("p"),
            stream: { ...parents, name: "parents" },
          },
        ],
      },
    },
    paginator: {
      page_token_option: option("offset"),
      pagination_strategy: { type: "OffsetIncrement", page_size: 2 },
    },
    sync: {
      type: "DatetimeBasedCursor",
      cursor_field: "at",
      datetime_format: "%Y-%m-%dT%H:%M:%SZ",
      cursor_datetime_formats: ["%Y-%m-%dT%H:%M:%S.%f%z"],
      start_datetime: "2024-02-20T00:00:00Z",
      end_datetime: "2024-03-10T00:00:00Z",
      step: "P3D",
      cursor_granularity: "PT1S",
      start_time_option: option("from"),
      end_time_option: option("to"),
    },
  });
  expect((await read(source)).records).toHaveLength(all.length);
  const whole = asked;
  for (let end = 2; end < whole; end += 5) {
    const concurrency = end % 2 ? 3 : 1;
    const ids = new Set<unknown>();
    const onRecords = (some: readonly Record<string, unknown>[]): void => {
      for (const { id } of some) ids.add(id);
    };
    let state: unknown;
    const onState = (now: unknown): void => {
      state = JSON.parse(JSON.stringify(now));
    };
    left = end;
    await expect(read(source, { concurrency, onState, onRecords })).rejects.toThrow("answered 400");
    left = Number.POSITIVE_INFINITY;
    await read(source, { state, concurrency, onRecords });
    expect(ids.size, `${end} ${concurrency} ${JSON.stringify(state)}`).toBe(all.length);
  }
});

test("ids that count on beyond 2^53 are kept to the last digit: none is hidden by the one before it", async () => {
  const since: (string | null)[] = [];
  const origin = await vendor(({ at }, response) => {
    since.push(at.searchParams.get("since_id"));
    response.end('{"items":[{"id":9007199254740993},{"id":9007199254740995},{"id":7}]}');
  });
  const option = { type: "RequestOption", inject_into: "request_parameter", field_name: "since_id" };
  const sync = { type: "IncrementingCountCursor", cursor_field: "id", start_value: 5, start_value_option: option };
  const { state } = await read(manifest(origin, { sync }));
  expect(state).toEqual({ cursor: "9007199254740995" });
  expect((await read(manifest(origin, { sync }), { state })).state).toEqual(state);
  expect((await read(manifest(origin, { sync }), { state: { cursor: "nonsense" } })).state).toEqual(state);
  expect(since).toEqual(["5", "9007199254740995", "5"]);
});

test("a stream that has no partitions any more is read from its beginning; a time before all years is none", async () => {
  const from: (string | null)[] = [];
  const origin = await vendor(({ at }, response) => {
    from.push(at.searchParams.get("from"));
    json(response, { items: [{ id: 1, at: -99_999_999_999_999 }] });
  });
  const option = { type: "RequestOption", inject_into: "request_parameter", field_name: "from" };
  const source = manifest(origin, {
    sync: {
      ...{ type: "DatetimeBasedCursor", cursor_field: "at", datetime_format: "%Y-%m-%d", start_time_option: option },
      ...{ cursor_datetime_formats: ["%s"], start_datetime: "2024-01-01" },
    },
  });
  const partitions = [{ partition: { p: "a" }, cursor: "2024-05-01" }];
  expect((await read(source, { state: { cursor: "2024-05-01", partitions } })).state).toEqual({ cursor: null });
  await read(source, { state: { cursor: "2024-05-01" } });
  expect(from).toEqual(["2024-01-01", "2024-05-01"]);
});

test("records that came after the read began move the cursor to its beginning, those of the future not at all", async () => {
  const since: (string | null)[] = [];
  const origin = await vendor(({ at }, response) => {
    since.push(at.searchParams.get("since"));
    if (since.length % 2 === 1) return json(response, {}, 429, { "retry-after": "60" });
    json(response, { items: [{ id: 1, planned: "2999-01-01T00:00:00Z" }] });
  });
  const readBy = (value: string, state?: unknown) => {
    const { end_datetime: _open, ...sync } = cursor;
    const fields = [{ type: "AddedFieldDefinition", path: ["at"], value }];
    const source = manifest(origin, { sync, transformations: [{ type: "AddFields", fields }] });
    return read(source, { waits: [], state });
  };
  const stamp = "{{ now_utc().strftime('%Y-%m-%dT%H:%M:%SZ') }}";
  const { records, state } = await readBy(stamp);
  const reached = (state as { cursor: string }).cursor;
  expect(Date.parse(String(records[0]?.["at"])) - Date.parse(reached)).toBeGreaterThanOrEqual(59_000);
  await readBy(stamp, state);
  expect(since).toEqual([midnight("2026-01-01"), midnight("2026-01-01"), reached, reached]);
  expect((await readBy("{{ record.planned }}")).state).toEqual({ cursor: null });
});

test("where one cursor stands for all partitions, not every one of them ends in a checkpoint", async () => {
  const origin = await vendor((request, response) =>
    json(response, { items: [{ id: request.at.searchParams.get("p"), at: day(1) }] }),
  );
  const values = Array.from({ length: 200 }, (_, at) => `p${at}`);
  const request_option = { type: "RequestOption", inject_into: "request_parameter", field_name: "p" };
  let states = 0;
  const { records } = await read(
    manifest(origin, {
      sync: {
        ...{ type: "DatetimeBasedCursor", cursor_field: "at", datetime_format: "%Y-%m-%d" },
        ...{ start_datetime: day(0), end_datetime: day(30), global_substream_cursor: true },
      },
      retriever: { partition_router: { type: "ListPartitionRouter", cursor_field: "p", values, request_option } },
    }),
    { onState: () => void states++ },
  );
  expect(records).toHaveLength(values.length);
  // One a second, however slow the machine.
  expect(states).toBeLessThan(50);
});

test("a partition that is refused keeps nobody from the others; the read fails, and goes on from what was read", async () => {
  let refused = ["/2", "/5"];
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(`${request.at.pathname} ${request.at.searchParams.get("since")}`);
    const down = refused.includes(request.at.pathname);
    json(response, { items: [{ id: request.at.pathname, at: midnight("2026-02-01") }] }, down ? 404 : 200);
  });
  const values = Array.from({ length: 20 }, (_, at) => `${at + 1}`);
  const source = manifest(origin, {
    retriever: { partition_router: { type: "ListPartitionRouter", values, cursor_field: "part" } },
    requester: { path: "/{{ stream_partition.part }}" },
    sync: cursor,
  });
  const records: unknown[] = [];
  let state: unknown;
  const options = {
    onRecords: (page: Record<string, unknown>[]) => void records.push(...page.map(({ id }) => id)),
    onState: (each: unknown) => {
      state = each;
    },
  };
  await expect(read(source, options)).rejects.toThrow("/2 answered 404");
  expect(new Set(records)).toEqual(
    new Set(values.map((value) => `/${value}`).filter((path) => !refused.includes(path))),
  );
  refused = [];
  asked.length = 0;
  await read(source, { state });
  expect(asked.filter((each) => each.endsWith(midnight("2026-01-01"))).sort()).toEqual(
    ["/2", "/5"].map((path) => `${path} ${midnight("2026-01-01")}`),
  );
  // A vendor that refuses all of them is not asked for each.
  refused = values.map((value) => `/${value}`);
  asked.length = 0;
  await expect(read(source, { concurrency: 1 })).rejects.toThrow("/1 answered 404");
  expect(asked).toHaveLength(10);
});
