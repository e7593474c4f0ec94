// States: those that Airbyte kept, those that all partitions share, and what is left of partitions that there are no more.
import { expect, test } from "vitest";
import { stateOf } from "#commands/connector/state.ts";
import { readState, stateTracker } from "#daemon/integrations/connectors/declarative/read/state.ts";
import { systemClock } from "#shared/clock.ts";
import { json, manifest, read, vendor } from "./one-stream.ts";

const option = (field_name: string) => ({ type: "RequestOption", inject_into: "request_parameter", field_name });
const day = (at: number): string => `2024-06-${String(at).padStart(2, "0")}T00:00:00Z`;
const sync = {
  ...{ type: "DatetimeBasedCursor", cursor_field: "at", datetime_format: "%Y-%m-%dT%H:%M:%SZ" },
  ...{ start_datetime: day(1), end_datetime: day(20), start_time_option: option("since") },
};
const partition_router = {
  type: "ListPartitionRouter",
  values: ["1e5", "b"],
  cursor_field: "p",
  request_option: option("p"),
};

/** Which days each partition was asked from, and the state then. */
async function asked(
  state: unknown,
  more: { sync?: object; retriever?: Record<string, unknown>; stream?: object } = {},
): Promise<{ since: Record<string, string>; state: unknown }> {
  const since: Record<string, string> = {};
  const origin = await vendor(({ at }, response) => {
    since[at.searchParams.get("p") ?? at.searchParams.get("ids") ?? ""] = at.searchParams.get("since") ?? "";
    json(response, { items: [{ id: 1, at: day(at.searchParams.get("p") === "b" ? 12 : 10) }] });
  });
  const retriever = more.retriever ?? { partition_router };
  const written = JSON.parse(
    manifest(origin, {
      retriever,
      sync: { ...sync, ...more.sync },
      requester: { request_parameters: { ids: "{{ stream_partition.ids | join(',') }}" } },
    }),
  );
  Object.assign(written.streams[0], more.stream);
  return { since, state: (await read(JSON.stringify(written), { state, concurrency: 1 })).state };
}

const both = (a: number, b: number) => ({ "1e5": day(a), b: day(b) });
const states = [
  { partition: { p: "1e5" }, cursor: { at: day(3) } },
  { partition: { p: "b" }, cursor: { at: day(4) } },
];
const legacy = { state_migrations: [{ type: "LegacyToPerPartitionStateMigration" }] };

test.each([
  ["one cursor a partition", { use_global_cursor: false, states, state: { at: day(4) }, parent_state: {} }, both(3, 4)],
  ["one for all", { use_global_cursor: true, state: { at: day(4) }, lookback_window: 86_400 }, both(3, 3)],
  ["that of a stream without partitions", { at: day(5) }, both(5, 5)],
  ["that of another stream", { other: day(5) }, both(1, 1)],
])("a state of Airbyte's is read on from: %s", async (_name, state, expected) => {
  expect((await asked(state)).since).toEqual(expected);
});

test("Airbyte's messages are states too, those of other streams beside", async () => {
  const of = (name: string, stream_state: object) => ({ stream_descriptor: { name }, stream_state });
  const stream = { type: "STREAM", stream: of("items", { at: day(5) }) };
  const other = { type: "STREAM", stream: of("others", { at: day(9) }) };
  const global = { shared_state: {}, stream_states: [other.stream, stream.stream] };
  const forms = [
    stream,
    [stream, other],
    { type: "STATE", state: stream },
    { type: "GLOBAL", global },
    [{ type: "LEGACY", data: { others: { at: day(9) }, items: { at: day(5) } } }],
    [{ type: "state", state: { at: day(5) } }],
  ];
  for (const form of forms) expect((await asked(stateOf(form, "items"))).since).toEqual(both(5, 5));
  for (const form of [[other], [], null]) expect(stateOf(form, "items")).toBeUndefined();
  for (const form of [[1], "now"]) expect(() => stateOf(form, "items")).toThrow("--state takes an object");
});

test("states of Airbyte's from before there were partitions, and of ranges, are read on from", async () => {
  const before = { "1e5": { at: day(3) }, b: { at: day(4) } };
  expect((await asked(before, { stream: legacy })).since).toEqual(both(3, 4));
  expect((await asked(before)).since).toEqual(both(1, 1));
  const ranges = { state_type: "date-range", slices: [{ start: day(1), end: day(6) }] };
  expect((await asked(ranges, { retriever: {} })).since).toEqual({ "": day(6) });
});

test("a global substream cursor is one for all, less what the read took; partitions that had their own begin there", async () => {
  const together = { sync: { global_substream_cursor: true } };
  const first = await asked(undefined, together);
  expect(first.state).toEqual({ cursor: day(12), lookback_s: 1 });
  const again = await asked({ cursor: day(12), lookback_s: 86_400 }, together);
  expect(again.since).toEqual(both(11, 11));
  const own = { cursor: day(12), partitions: [{ partition: { p: "b" }, cursor: day(12) }] };
  expect((await asked(own, together)).since).toEqual(both(1, 12));
});

test("groups of partitions share a cursor: one more parent makes other groups of all", async () => {
  const inner = { type: "ListPartitionRouter", values: [1, 2, 3], cursor_field: "ids" };
  const retriever = {
    partition_router: { type: "GroupingPartitionRouter", group_size: 2, underlying_partition_router: inner },
  };
  const first = await asked(undefined, { retriever });
  expect(Object.keys(first.since).sort()).toEqual(["1,2", "3"]);
  expect((await asked({ cursor: day(9) }, { retriever })).since).toEqual({ "1,2": day(9), "3": day(9) });
});

test("of more than ten thousand partitions those that are no more are let go, once all were read", () => {
  const kept = Array.from({ length: 10_001 }, (_, at) => ({ partition: { p: at }, cursor: day(1) }));
  const known = readState({ cursor: day(1), partitions: kept }, { cursorField: "at", together: false, legacy: false });
  const left = (allSeen: boolean): unknown[] => {
    const stream = { partitioned: true, together: false, cursor: undefined, allSeen: () => allSeen };
    const tracker = stateTracker(known, stream, systemClock);
    expect(tracker.cursorOf({ p: 7 })).toBe(day(1));
    expect(tracker.snapshot().partitions).toHaveLength(10_001);
    return [...(tracker.snapshot(true).partitions ?? [])];
  };
  expect(left(true)).toEqual([{ partition: { p: 7 }, cursor: day(1) }]);
  expect(left(false)).toHaveLength(10_001);
});

test("an end that lies ahead is asked for, and the last interval ends with it", async () => {
  const urls: string[] = [];
  const origin = await vendor(({ url }, response) => {
    urls.push(url ?? "");
    json(response, { items: [] });
  });
  const ahead = {
    ...{ ...sync, datetime_format: "%Y-%m-%d", start_datetime: "2999-01-01", end_datetime: "2999-01-03" },
    ...{ step: "P1D", cursor_granularity: "P1D", end_time_option: option("until") },
  };
  await read(manifest(origin, { sync: ahead }));
  expect(urls).toEqual(["/items?since=2999-01-01&until=2999-01-01", "/items?since=2999-01-02&until=2999-01-03"]);
});

test.each([
  ["by a format of their own", ["%Y-%m-%dT%H:%M:%S%z"]],
  ["by the same", []],
])("a format with an offset in it says the same times in it, and reads on from them, read %s", async (_by, formats) => {
  const kept = {
    ...sync,
    cursor_datetime_formats: formats,
    datetime_format: "%Y-%m-%dT%H:%M:%S-12:00",
  };
  const first = await asked(undefined, { sync: kept, retriever: {} });
  expect(first).toEqual({ since: { "": "2024-05-31T12:00:00-12:00" }, state: { cursor: "2024-06-09T12:00:00-12:00" } });
  expect((await asked(first.state, { sync: kept, retriever: {} })).since).toEqual({ "": "2024-06-09T12:00:00-12:00" });
});

test("of two parents a state of Airbyte's names where the first was read", async () => {
  const parent = (name: string) => ({
    type: "DeclarativeStream",
    name,
    retriever: {
      ...{ type: "SimpleRetriever", requester: { type: "HttpRequester", url_base: "{{ config.at }}", path: name } },
      record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
    },
  });
  const router = (name: string, field: string, more = {}) => ({
    type: "SubstreamPartitionRouter",
    parent_stream_configs: [
      { type: "ParentStreamConfig", parent_key: "id", partition_field: field, stream: { ...parent(name), ...more } },
    ],
  });
  const since: string[] = [];
  const origin = await vendor(({ at }, response) => {
    if (at.pathname === "/items") since.push(at.searchParams.get("since") ?? "");
    json(response, { items: [{ id: 1, at: day(10) }] });
  });
  const b = parent("b");
  const below = { retriever: { ...b.retriever, partition_router: router("a", "above") } };
  const source = manifest(origin, {
    sync,
    retriever: { partition_router: [router("a", "p"), router("b", "q", below)] },
  });
  const partition = { p: 1, q: 1, parent_slice: {} };
  const state = { use_global_cursor: false, states: [{ partition, cursor: { at: day(7) } }] };
  await read(source, { state, config: { at: origin } });
  expect(since).toEqual([day(7)]);
});
