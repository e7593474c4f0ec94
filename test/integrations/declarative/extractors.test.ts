// Where records stand in an answer, and what is made of the lists within them.
import { expect, test } from "vitest";
import { json, manifest, read, vendor } from "./one-stream.ts";

const at = (...field_path: string[]) => ({ type: "DpathExtractor", field_path });

async function extracted(answer: unknown, extractor: object): Promise<Record<string, unknown>[]> {
  const origin = await vendor((_request, response) => json(response, answer));
  const record_selector = { type: "RecordSelector", extractor };
  return (await read(manifest(origin, { retriever: { record_selector } }))).records;
}

test("a list within a record becomes records, with what the manifest takes over from the parent", async () => {
  const answer = {
    items: [
      { id: 1, url: { x: 5 }, lines: { more: false, data: [{ id: 11, url: "own" }, { id: 12 }] } },
      { id: 2, lines: { data: [] } },
    ],
  };
  const expanded = (more: object) =>
    extracted(answer, {
      ...at("items"),
      record_expander: { type: "RecordExpander", expand_records_from_field: ["lines", "data"], ...more },
    });
  const field = (parent_path: string[], record_path: string[]) => ({
    type: "ParentFieldPath",
    parent_path,
    record_path,
  });
  const parent_fields = [field(["id"], ["parent", "id"]), field(["url", "x"], ["url"]), field(["gone"], ["gone"])];
  expect(await expanded({ parent_fields })).toEqual([
    { id: 11, url: 5, parent: { id: 1 }, gone: null },
    { id: 12, url: 5, parent: { id: 1 }, gone: null },
  ]);
  expect(await expanded({ merge_parent: true })).toEqual([
    { id: 11, url: "own", lines: { more: false } },
    { id: 12, url: { x: 5 }, lines: { more: false } },
  ]);
  await expect(expanded({ truncated_list_retriever: {} })).rejects.toThrow("truncated_list_retriever");
});

test("a long list within a record takes no more time for each member than a short one", async () => {
  const lines = Array.from({ length: 20_000 }, (_, line) => ({ line, of: { cents: line } }));
  const record_expander = { type: "RecordExpander", expand_records_from_field: ["lines"], merge_parent: true };
  const records = await extracted({ items: [{ id: 1, lines }] }, { ...at("items"), record_expander });
  expect(records).toHaveLength(20_000);
  expect(records.at(-1)).toEqual({ id: 1, line: 19_999, of: { cents: 19_999 } });
}, 30_000);

test("members that are no objects become records with what is added to them; a list that is cut short is told once", async () => {
  const answer = { items: [1, 2].map((id) => ({ id, tags: { data: ["a", "b"], more: id === 1 } })) };
  const origin = await vendor((_request, response) => json(response, answer));
  const record_expander = {
    ...{ type: "RecordExpander", expand_records_from_field: ["tags", "data"], merge_parent: true },
    truncation_indicator_path: ["tags", "more"],
  };
  const record_selector = { type: "RecordSelector", extractor: { ...at("items"), record_expander } };
  const told: string[] = [];
  const { records } = await read(manifest(origin, { retriever: { record_selector } }), { told });
  expect(records.map(({ id, value }) => `${id}${value}`)).toEqual(["1a", "1b", "2a", "2b"]);
  expect(told).toEqual(["of the list at tags.data the vendor shows 2, and says that there are more"]);
});

test("of lists in lists the members are records", async () => {
  const answer = { a: { x: { items: [{ id: 1 }, { id: 2 }] }, y: { items: [{ id: 3 }] }, z: { items: { id: 4 } } } };
  expect(await extracted(answer, at("a", "*", "items"))).toEqual([1, 2, 3, 4].map((id) => ({ id })));
});

test("brackets in a path are a set of letters, none of them behind `!`, and themselves where they hold nothing or do not end", async () => {
  const answer = { a: [{ id: 1 }], b: [{ id: 2 }], "items[]": [{ id: 3 }], "in[ner": [{ id: 4 }], "^": [{ id: 5 }] };
  const read = async (path: string) => (await extracted(answer, at(path))).map(({ id }) => id);
  expect(await read("[ac]")).toEqual([1]);
  expect(await read("[!a^]")).toEqual([2]);
  expect(await read("items[]")).toEqual([3]);
  expect(await read("in[ner")).toEqual([4]);
  expect(await read("[^b]")).toEqual([2, 5]);
});

test("several places are read together, or the first that has records", async () => {
  const answer = { a: [null, {}], b: { c: [{ id: 2 }] } };
  const both = { type: "CombinedExtractor", extractors: [at("a"), at("b", "c")] };
  expect(await extracted(answer, both)).toEqual([{}, { id: 2 }]);
  expect(await extracted(answer, { ...both, skip_empty_records: true })).toEqual([{ id: 2 }]);
  expect(await extracted(answer, { ...both, mode: "first_match" })).toEqual([{}]);
  expect(await extracted(answer, { ...both, mode: "first_match", skip_empty_records: true })).toEqual([{ id: 2 }]);
});

test("an answer that is a list is as many answers: each has its records, and templates see the list", async () => {
  const pages = [[{ data: [{ id: 1 }], next: 1 }, { data: { id: 2 } }, {}], [{ data: [{ id: 3 }] }], [{ id: 4 }]];
  const asked: string[] = [];
  const origin = await vendor(({ at }, response) => {
    asked.push(at.search);
    json(response, pages[Number(at.searchParams.get("page") ?? 0)]);
  });
  const source = manifest(origin, {
    retriever: { record_selector: { type: "RecordSelector", extractor: at("data") } },
    paginator: {
      page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
      pagination_strategy: {
        type: "CursorPagination",
        cursor_value: "{{ response[0].next }}",
        stop_condition: "{{ not response[0].next }}",
      },
    },
  });
  expect((await read(source)).records).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  expect(asked).toEqual(["", "?page=1"]);
});

test("of an answer that is a list each member is an answer, a list of records too", async () => {
  const lists = [[{ id: 1 }], [{ id: 2 }, { id: 3 }]];
  expect(await extracted(lists, at())).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  expect(await extracted(lists, at("*"))).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  expect(await extracted(lists, at("0"))).toEqual([{ id: 1 }, { id: 2 }]);
  expect(await extracted([{ items: [{ id: 1 }] }, { items: { id: 2 } }], at("items"))).toEqual([{ id: 1 }, { id: 2 }]);
});
