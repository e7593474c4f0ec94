// What becomes of an answer's values: none is changed that nobody asked to be changed.
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { parseIso, strptime } from "#daemon/integrations/connectors/declarative/jinja/date-text.ts";
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { runConnectorJob } from "#daemon/integrations/connectors/declarative/job.ts";
import { rowsOf, tableOf } from "#daemon/integrations/connectors/declarative/rows.ts";
import { unpackNumbers } from "#shared/exact-number.ts";
import { within } from "../../patience.ts";
import { manifest, read, vendor } from "./one-stream.ts";

/** The records of one answer. */
async function recordsOf(
  body: string | Buffer,
  headers: Record<string, string> = {},
  options: Parameters<typeof manifest>[1] = {},
): Promise<Record<string, unknown>[]> {
  const origin = await vendor((_request, response) => {
    response.writeHead(200, { "content-type": "application/json", ...headers });
    response.end(body);
  });
  return (await read(manifest(origin, options))).records;
}

const transformed = async (record: object, ...transformations: Record<string, unknown>[]): Promise<unknown> =>
  (await recordsOf(JSON.stringify({ items: [record] }), {}, { transformations }))[0];

const LONG =
  '{"id":1,"price":0.12345678901234567890,"deep":{"at":[-1.5e-400,10000000000000000.25]},"near":0.10000000000000001,"same":1.50e1}';

test("fractions keep every digit: in columns, in JSON, and on their way to the command line", async () => {
  const origin = await vendor((_request, response) => response.end(`{"items":[${LONG}]}`));
  const source = manifest(origin);
  const { records } = await read(source);
  expect(JSON.stringify(records[0])).toBe(LONG.replace("1.50e1", "15"));
  const properties = { id: { type: "integer" }, price: { type: "number" }, near: { type: "string" }, deep: {} };
  const table = tableOf({ properties }, { primaryKey: [["id"]], cursorField: undefined });
  expect(rowsOf(records, table, table).rows).toEqual([
    ["1", "0.12345678901234567890", "0.10000000000000001", '{"at":[-1.5e-400,10000000000000000.25]}', '{"same":15}'],
  ]);
  const sent: unknown[] = [];
  await runConnectorJob(
    { type: "read", manifest: source, config: { origin }, stream: "items" },
    {
      signal: AbortSignal.timeout(5000),
      env: {},
      send: async (reply) =>
        void (reply.type === "records" && sent.push(...unpackNumbers(structuredClone(reply.records)))),
      room: async () => {},
    },
  );
  expect(JSON.stringify(sent)).toBe(`[${LONG.replace("1.50e1", "15")}]`);
});

test("templates count with such a fraction as with any other", async () => {
  const half = { type: "AddFields", fields: [{ path: ["half"], value: "{{ record.price / 2 }}" }] };
  const [record] = await recordsOf(`{"items":[${LONG}]}`, {}, { transformations: [half] });
  expect(record?.["half"]).toBeCloseTo(0.0617, 4);
});

test("what Python writes for no number is null, in texts it stays", async () => {
  expect(await recordsOf('{"items":[{"a":NaN,"b":[-Infinity],"c":"NaN, \\" Infinity"}]}')).toEqual([
    { a: null, b: [null], c: 'NaN, " Infinity' },
  ]);
});

test("how long an answer, a number or a text is read grows with its length alone", async () => {
  const n = 100_000;
  const began = performance.now();
  await expect(recordsOf(`{"items":[NaN,"${'\\"'.repeat(n)}`)).rejects.toMatchObject({ code: "upstream_error" });
  const [record] = await recordsOf(`{"items":[{"id":1,"long":1.${"0".repeat(n)}1}]}`);
  expect(JSON.stringify(record)).toHaveLength(n + 19);
  const jinja = createInterpolator(() => 0);
  const digits = `${"0".repeat(n)}x`;
  expect(jinja.render("{{ a | int }} {{ a | float }}", { a: digits })).toBe("0 0.0");
  expect(strptime(`2024-01-01T12${" ".repeat(n)}x`, "%Y")).toBeUndefined();
  expect(() => parseIso(`2024-01-01T12${" ".repeat(n)}x`)).toThrow("is not a date");
  expect(jinja.render("{{ a | truncate(90000) }}", { a: `x y${"\t".repeat(n)}` })).toBe("x...");
  const ids = Array.from({ length: n }, (_, id) => (id % 2 ? id : `${id}`));
  expect(jinja.render("{{ (a + a) | unique | list | length }}", { a: ids })).toBe(`${n}`);
  expect(jinja.render("{{ [1, 1.0, true, '1', 1.5, 1.5, 'A', 'a', [1], [1.0]] | unique | list }}", {})).toBe(
    "[1, '1', 1.5, 'A', [1]]",
  );
  expect(performance.now() - began).toBeLessThan(within(3_000));
});

test("an answer is opened however it was compressed, and read in the character set that it is in", async () => {
  const json = '{"items":[{"id":"é"}]}';
  const codings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
  for (const [coding, compress] of Object.entries(codings))
    expect(await recordsOf(compress(json), { "content-encoding": coding })).toEqual([{ id: "é" }]);
  expect(await recordsOf(deflateRawSync(json), { "content-encoding": "deflate" })).toEqual([{ id: "é" }]);
  const latin = { "content-type": "application/json; charset=ISO-8859-1" };
  expect(await recordsOf(Buffer.from(json, "latin1"), latin)).toEqual([{ id: "é" }]);
  expect(await recordsOf(json, latin)).toEqual([{ id: "é" }]);
  const wide = Buffer.from(`\ufeff${json}`, "utf16le");
  expect(await recordsOf(wide)).toEqual([{ id: "é" }]);
  expect(await recordsOf(Buffer.from(wide).swap16(), latin)).toEqual([{ id: "é" }]);
});

test("XML, CSV and lines are read as Python reads them", async () => {
  const decoded = (type: string, body: string | Buffer, field_path: string[] = [], more: object = {}) => {
    const record_selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path } };
    return recordsOf(body, {}, { retriever: { decoder: { type, ...more }, record_selector } });
  };
  const xml =
    '<?xml version="1.0" encoding="ISO-8859-1"?><r><i a="&#233;"><t>é&#xE9;&amp;#65;</t><c><![CDATA[&#65;]]></c></i></r>';
  expect(await decoded("XmlDecoder", Buffer.from(xml, "latin1"), ["r", "i"])).toEqual([
    { "@a": "é", t: "éé&#65;", c: "&#65;" },
  ]);
  expect(await decoded("CsvDecoder", '\ufeffid,n\n1,5" pipe\n', [], { encoding: "utf-8-sig" })).toEqual([
    { id: "1", n: '5" pipe' },
  ]);
  // Cells beyond the last column are kept, whether a column is called __proto__ or not.
  expect(await decoded("CsvDecoder", "id,__proto__\n1,a,b,\n2,,x\n\n3\n", [], { set_values_to_none: [""] })).toEqual([
    { id: "1", ["__proto__"]: "a", null: ["b", ""] },
    { id: "2", ["__proto__"]: null, null: ["x"] },
    { id: "3", ["__proto__"]: null },
  ]);
  const instructed = '<?xml version="1.0"?><?xml-stylesheet href="a.xsl"?><r><i>1</i></r>';
  expect(await decoded("XmlDecoder", instructed, [])).toEqual([{ r: { i: "1" } }]);
  await expect(decoded("XmlDecoder", "<r><i><id>1</id></i><i>", ["r", "i"])).rejects.toThrow("is not XML");
  expect(await decoded("IterableDecoder", "a\n\nb\n")).toEqual(["a", "", "b"].map((record) => ({ record })));
});

test("an answer that would take gigabytes once it is read is refused", async () => {
  const refused = (body: string, type = "JsonDecoder") => {
    const record_selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: [] } };
    const zipped = gzipSync(body, { level: 1 });
    return expect(
      recordsOf(zipped, { "content-encoding": "gzip" }, { retriever: { decoder: { type }, record_selector } }),
    ).rejects;
  };
  const text = JSON.stringify({ quoted: '["\\"['.repeat(600_000) });
  await refused(`[${text},${"[".repeat(4_000_000)}`).toThrow("nests too deeply");
  await refused("<".repeat(10_000_001), "XmlDecoder").toThrow("more than 10000000 tags");
  expect(await recordsOf(`{"items":[{"id":1,"t":${text}}]}`)).toHaveLength(1);
});

test("a scroll keeps its token while its pages go on", async () => {
  let page = 0;
  const origin = await vendor((_request, response) =>
    response.end(JSON.stringify({ items: page < 5 ? [{ id: page++ }] : [], scroll: "s" })),
  );
  const paginator = {
    page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "scroll" },
    pagination_strategy: {
      type: "CursorPagination",
      cursor_value: "{{ response.scroll }}",
      stop_condition: "{{ last_page_size == 0 }}",
    },
  };
  expect((await read(manifest(origin, { paginator }))).records).toHaveLength(5);
});

test("pages of XML lead on by what stands in them, and pages end by the length that the vendor says", async () => {
  const option = { type: "RequestOption", inject_into: "request_parameter", field_name: "after" };
  const record_selector = {
    type: "RecordSelector",
    extractor: { type: "DpathExtractor", field_path: ["page", "item"] },
  };
  let page = 0;
  const xml = await vendor((_request, response) => {
    page++;
    response.end(`<page><item><id>${page}</id></item>${page < 3 ? `<next>n${page}</next>` : ""}</page>`);
  });
  const pagination_strategy = { type: "CursorPagination", cursor_value: "{{ response.page.next }}" };
  const retriever = { decoder: { type: "XmlDecoder" }, record_selector };
  const pages = { page_token_option: option, pagination_strategy };
  expect((await read(manifest(xml, { retriever, paginator: pages }))).records).toHaveLength(3);
  let asked = 0;
  const said = await vendor((_request, response) =>
    response.end(JSON.stringify({ limit: 2, items: asked++ === 0 ? [{ id: 1 }, { id: 2 }] : [{ id: 3 }] })),
  );
  const offsets = { type: "OffsetIncrement", page_size: "{{ response['limit'] }}" };
  await read(manifest(said, { paginator: { page_token_option: option, pagination_strategy: offsets } }));
  expect(asked).toBe(2);
});

test.each([
  ["integer", "{{ record.half }}", "1.5"],
  ["integer", "{{ record.name }}", "ab"],
  ["integer", "{{ record.id }}", 7],
  ["number", "{{ record.name }}", "ab"],
  ["boolean", "{{ record.id }}", "7"],
  ["boolean", "{{ record.id > 1 }}", true],
])("a field of type %s that %s does not fit is the text of it", async (value_type, value, expected) => {
  const fields = [{ path: ["made"], value, value_type }];
  const made = await transformed({ id: 7, half: 1.5, name: "ab" }, { type: "AddFields", fields });
  expect(made).toHaveProperty("made", expected);
});

test("a field's path makes lists where it goes on with a place, and fills them up to it", async () => {
  const paths = [
    ["made", "1", "a"],
    ["tags", "0"],
    ["tags", "3"],
    ["tags", "name"],
    ["far", "999999999"],
  ];
  const fields = paths.map((path) => ({ path, value: "new" }));
  const made = await transformed({ tags: ["old", "kept"] }, { type: "AddFields", fields });
  expect(made).toEqual({
    made: [null, { a: "new" }],
    tags: ["new", "kept", null, "new"],
    far: { 999999999: "new" },
  });
});

test("fields are removed at any depth, what follows in a list keeps its place, and what is empty is kept", async () => {
  const record = { id: 1, a: "", b: { c: "", d: [1, "", { e: "" }, ""] }, f: {}, g: [] };
  const remove = { type: "RemoveFields", field_pointers: [["**"]], condition: "{{ not property }}" };
  expect(await transformed(record, remove)).toEqual({ id: 1, b: { d: [1, null, {}] }, f: {}, g: [] });
});

test("names of other scripts stay names in snake case", async () => {
  expect(await transformed({ 名前: 1, Ærlig: 2, UserНомер: 3, "%": 4 }, { type: "KeysToSnakeCase" })).toEqual({
    名前: 1,
    aerlig: 2,
    user_номер: 3,
    "": 4,
  });
});

test("only lists are expanded", async () => {
  const record_selector = {
    type: "RecordSelector",
    extractor: {
      ...{ type: "DpathExtractor", field_path: ["items"] },
      record_expander: { type: "RecordExpander", expand_records_from_field: ["l"], on_no_records: "emit_parent" },
    },
  };
  const body = JSON.stringify({ items: [{ l: [{ id: 1 }] }, { l: { id: 2 } }] });
  expect(await recordsOf(body, {}, { retriever: { record_selector } })).toEqual([{ id: 1 }, { l: { id: 2 } }]);
});

const now = Date.parse("2026-03-31T12:00:00Z");
const jinja = createInterpolator(() => now);

test("now_utc() is another moment each time, within one millisecond too: keys are made of it", () => {
  const template = "{% for _ in range(2) %}{{ now_utc() }} {% endfor %}";
  let at = now;
  const clock = createInterpolator(() => at);
  const told = `${clock.render(template, {})}${clock.render(template, {})}`;
  expect(told).toBe(
    [":00", ...[1, 2, 3].map((us) => `:00.00000${us}`)].map((end) => `2026-03-31 12:00${end}+00:00 `).join(""),
  );
  at++;
  expect(clock.render("{{ now_utc() }}", {})).toBe("2026-03-31 12:00:00.001000+00:00");
});

test.each([
  ["{{ 7 | string }}", "7"],
  ["{{ {'a': true} | string }}", '{"a": true}'],
  ["n-{{ 7 | string }}", "n-7"],
  ["{{ now_utc() - duration('P1M') }}", "2026-02-28 12:00:00+00:00"],
  ["{{ today_utc() + duration('P1Y1D') }}", "2027-04-01"],
  ["{{ now_utc() - duration('PT1H') }}", "2026-03-31 11:00:00+00:00"],
  ["{{ camel_case_to_snake_case('userID') }}", "user_i_d"],
  ["{{ sanitize_url('a b/(c)') }}", "a+b%2F%28c%29"],
  ["{{ {'a b': 'c d'} | urlencode }}", "a+b=c+d"],
  ["{{ format_datetime('2026-01-02T03:04:05+02:00', '%Y-%m-%dT%H:%M:%SZ') }}", "2026-01-02T01:04:05Z"],
  ["{{ str_to_datetime('2026-01-02T03:04:05-05:30') }}", "2026-01-02 08:34:05+00:00"],
  ["{{ format_datetime('2026-02-28T24:00:00Z', '%Y-%m-%d') }}", "2026-03-01"],
])("%s is what the reference makes of it", (template, expected) => {
  expect(createInterpolator(() => now).evaluate(template, {}, "")).toBe(expected);
});

test("a zone's name is an offset where it means one, and no date where it does not", () => {
  const format = "%a, %d %b %Y %H:%M:%S %Z";
  const hour = (zone: string) => strptime(`Tue, 02 Jan 2024 03:04:05 ${zone}`, format)?.us;
  const [gmt, est] = [hour("GMT"), hour("EST")];
  expect(est).toBe((gmt ?? 0n) + 5n * 3_600_000_000n);
  expect(hour("IST")).toBeUndefined();
});

test.each([
  ["text made by the filter string", "{{ id | string }}", "7"],
  ["what the manifest quotes", `{%- set host = 'x' -%} "https://{{ host }}/{{ id }}/"`, "https://x/7/"],
  ["what it quotes in pieces", `'a ' "{{ id }}"\n`, "a 7"],
])("has no quotes where text is wanted: %s", (_name, template, expected) => {
  expect(jinja.text(template, { id: 7 })).toBe(expected);
});

test("quotes that are the data's stay, and those of a part", () => {
  expect(jinja.text("{{ name }}", { name: '"Bob"' })).toBe('"Bob"');
  expect(jinja.text('name eq "{{ name }}"', { name: "Bob" })).toBe('name eq "Bob"');
});
