// When a condition holds, where the reference implementation (airbyte-cdk 7, InterpolatedBoolean) says that it does.
import { expect, test } from "vitest";
import { configFor } from "#daemon/integrations/connectors/declarative/config.ts";
import { type Context, condition } from "#daemon/integrations/connectors/declarative/context.ts";
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { loadManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { json, manifest, read, vendor } from "./one-stream.ts";

const record = { n: null, s: "x", i: 3, l: [1], o: { a: 1 }, t: true, f: 1.5, e: "", word: "none" };
const context = { config: {}, jinja: createInterpolator() } as unknown as Context;
const holds = (template: string): boolean => condition(context, {}, template, { record });

test.each([
  "{{ record.n > 5 }}",
  "{{ record.s > 1 }}",
  "{{ record.f > record.s }}",
  "{{ record.s + 1 }}",
  "{{ record.n * 2 }}",
  "{{ -record.s }}",
  "{{ record.n | length > 0 }}",
  "{{ 'a' in record.n }}",
  "{{ 1 in record.s }}",
  "{{ record.i() }}",
  "{{ ','.join(record.l) }}",
  "{{ 'a%d' % 'x' }}",
  "{{ record.s.startswith(1) }}",
  "{{ record.n[1:] }}",
  "{{ [3, 'x'] | sort }}",
  "{{ format_datetime(record.n, '%Y') > '2020' }}",
  "{{ timestamp(record.n) > 3 }}",
  "{{ day_delta('x') }}",
  "{{ now_utc() > record.n }}",
  "{{ record.n < 1 or False }}",
  "{% if record.n > 1 %}False{% endif %}",
])("%s raises a TypeError: it holds", (template) => expect(holds(template)).toBe(true));

test.each([
  "{{ record.gone > 5 }}",
  "{{ record.n.x > 1 }}",
  "{{ record.n[0] > 1 }}",
  "{{ record.s.nope(1) }}",
  "{{ False and record.n < 1 }}",
  "{{ record.n is not none and record.n > 1 }}",
  "{{ record.n }}",
  "{{ 0.0 }}",
  "{{ {} }}",
  "false",
])("%s does not hold", (template) => expect(holds(template)).toBe(false));

test.each(["{{ record.word }}", "FALSE", "{{ record.l }}"])(
  "%s holds: it is text that nobody takes for false",
  (each) => expect(holds(each)).toBe(true),
);

test.each(["{{ record.i / 0 > 1 }}", "{{ format_datetime(record.s, '%Y') }}"])("%s is an error", (template) =>
  expect(() => holds(template)).toThrow(),
);

test("a configuration is changed where a condition holds, by the same rule", () => {
  const fields = (path: string) => [{ type: "AddedFieldDefinition", path: [path], value: "made" }];
  const adding = (path: string, when: string) => ({ type: "ConfigAddFields", fields: fields(path), condition: when });
  const removing = (pointer: string, when: string) => ({
    ...{ type: "ConfigRemoveFields", field_pointers: [[pointer]], condition: when },
  });
  const transformations = [
    ...[adding("a", "{{ config.empty }}"), adding("b", "{{ config.no }}"), adding("c", "{{ config.n > 5 }}")],
    ...[removing("empty", "{{ property }}"), removing("full", "{{ property }}")],
  ];
  const loaded = loadManifest(manifest("http://127.0.0.1", { rules: { transformations } }));
  const changed = configFor(loaded, { empty: {}, full: [1], no: "false", n: null });
  expect(changed).toEqual({ empty: {}, no: "false", n: null, c: "made" });
});

test("a filter keeps what it cannot compare; a field is made where its condition holds, and only there", async () => {
  const origin = await vendor((_request, response) =>
    json(response, {
      items: [
        { id: 1, n: null },
        { id: 2, n: 1 },
        { id: 3, n: 7 },
      ],
    }),
  );
  const selector = {
    type: "RecordSelector",
    extractor: { type: "DpathExtractor", field_path: ["items"] },
    record_filter: { type: "RecordFilter", condition: "{{ record.n > 5 }}" },
  };
  const twice = {
    type: "AddFields",
    fields: [{ type: "AddedFieldDefinition", path: ["twice"], value: "{{ record.n * 2 }}" }],
    condition: "{{ record.n is not none }}",
  };
  const source = manifest(origin, { retriever: { record_selector: selector }, transformations: [twice] });
  expect((await read(source)).records).toEqual([
    { id: 1, n: null },
    { id: 3, n: 7, twice: 14 },
  ]);
  // A value has no such meaning: the template itself is no record's.
  const always = { ...twice, condition: "" };
  await expect(read(manifest(origin, { transformations: [always] }))).rejects.toThrow("unsupported operand");
  const looking = { ...twice, condition: "{{ value > 5 }}" };
  const some = { ...selector, record_filter: { type: "RecordFilter", condition: "{{ record.n is not none }}" } };
  const { records } = await read(
    manifest(origin, { retriever: { record_selector: some }, transformations: [looking] }),
  );
  expect(records).toEqual([
    { id: 2, n: 1 },
    { id: 3, n: 7, twice: 14 },
  ]);
});
