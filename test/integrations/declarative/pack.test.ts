// Pages that are packed arrive as they do by way of objects and text: what random, odd and broken pages make of both ways, in a PostgreSQL.
import { expect, onTestFinished, test } from "vitest";
import { decoderOf } from "#daemon/integrations/connectors/declarative/http/decode.ts";
import { packerOf } from "#daemon/integrations/connectors/declarative/read/pack.ts";
import { rowsOf, tableOf } from "#daemon/integrations/connectors/declarative/rows.ts";
import { connectPostgres } from "#daemon/integrations/connectors/postgres/connect.ts";
import { nativeOf } from "#daemon/integrations/connectors/postgres/types.ts";
import { copyTuples } from "#daemon/integrations/connectors/postgres/write-packed.ts";
import { writeRows } from "#daemon/integrations/connectors/postgres/write-rows.ts";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { connect } from "../syncs/harness.ts";

const schema = {
  properties: {
    id: { type: "integer" },
    amount: { type: "number" },
    ok: { type: "boolean" },
    at: { type: "string", format: "date-time" },
    day: { type: "string", format: "date" },
    tags: { type: "array" },
    name: { type: "string" },
  },
};
const table = tableOf(schema, { primaryKey: [["id"]], cursorField: undefined });
const types = table.columns.map(nativeOf);
const pack = () => packerOf(table, table, types);

// What the general way makes of a page: null where it refuses the page or one of its records.
function generally(body: Buffer) {
  try {
    const [value] = decoderOf(undefined)({ body, headers: {}, url: "http://vendor/" });
    const records = (value as { items: Record<string, unknown>[] }).items;
    const { rows, rejects } = rowsOf(records, table, table);
    return rejects.length > 0 ? null : rows;
  } catch {
    return null;
  }
}

/** Repeats for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const common: Readonly<Record<string, readonly string[]>> = {
  id: ["7", "-1", "1000000001", "123456789012345", "0"],
  amount: [
    "0",
    "1234.56",
    "-0.5",
    "10",
    "10000",
    "123456.789",
    "0.0001",
    "100000000.5",
    "12345678",
    "-1",
    "1.50",
    "2.0",
  ],
  ok: ["true", "false"],
  at: [
    '"2026-01-02T03:04:05.678901Z"',
    '"2024-02-29T23:59:59Z"',
    '"1969-12-31T23:59:59.5Z"',
    '"0001-01-01T00:00:00Z"',
    '"9999-12-31T00:00:00.000001Z"',
    '"2000-01-01T00:00:00Z"',
  ],
  day: ['"2024-02-29"', '"1970-01-01"', '"0001-01-01"', '"9999-12-31"', '"1999-12-31"'],
  tags: ['["a", {"b": [1, 2.50, "}]\\""]}]', "[]", "{}", '"text"', "1"],
  name: [
    '"Ada"',
    '""',
    '"tab\\tquote\\" \\u00e9 \\ud83d\\ude00 \\/"',
    '"Zoë 😀"',
    `"${"long ".repeat(60)}"`,
    '"\\\\N"',
    '"line\\nbreak"',
  ],
};
const odd: Readonly<Record<string, readonly string[]>> = {
  id: [
    "9007199254740993",
    "9223372036854775807",
    "-0",
    "1.0",
    "1e3",
    '"12"',
    "12345678901234567890",
    "1.5",
    "01",
    "-",
    "99999999999999999999",
  ],
  amount: [
    "-0.0",
    "0.00",
    "1e-7",
    "1E+2",
    "0.1234567890123456789",
    "123456789012345678",
    '"12.50"',
    '" 7 "',
    "5e-324",
    "1e400",
    ".5",
    "00.5",
    "1.",
    '"NaN"',
    "0.00001000",
  ],
  ok: ['"true"', '"no"', "1", "tru", "TRUE"],
  at: [
    '"2024-05-06T07:08:09+02:00"',
    '"2024-05-06 07:08:09"',
    '""',
    '"2024-02-30T00:00:00Z"',
    '"2024-05-06T07:08:09.1234567Z"',
    '"2024-05-06T24:00:00Z"',
    '"2024-05-06T07:08:60Z"',
    '"0000-01-01T00:00:00Z"',
    '"2024-05-06"',
    "1714979289",
    '"2024-05-06T07:08Z"',
    '"2024-05-06T07:08:09.Z"',
    '"2024-05-06T07:08:09.12aZ"',
    '"+024-05-06T07:08:09Z"',
    '"2024-05-06T07:08:09+00"',
    '"x"',
  ],
  day: [
    '"2023-02-29"',
    '"2024-05-06T00:00:00Z"',
    '""',
    '"06.05.2024"',
    '"2024-13-01"',
    '"2024-00-10"',
    '"0000-01-01"',
    "20240506",
  ],
  tags: ['{"a": 1, "a": 2}', "[1", '{"x": 12345678901234567890}', '"\\u0000"', "[1,]", '["\\ud800"]', "null"],
  name: ['"a\\u0000b"', '"\\ud800"', '"open', "12.50", "true", '{"a": "b"}', '"a\u0001b"', '"\\x"', "'x'"],
};

// The text of a record: mostly what APIs send, now and then something else.
function recordText(pick: (below: number) => number, oddness: number): string {
  const names = Object.keys(common).filter(() => pick(12) > 0);
  if (pick(3) === 0) names.reverse();
  const blank = pick(4) === 0 ? " " : pick(9) === 0 ? "\n\t" : "";
  const of = (from: readonly string[] | undefined) => from?.[pick(from.length)] ?? "null";
  const members = names.map((name) => {
    const value = pick(15) === 0 ? "null" : of(pick(100) < oddness ? odd[name] : common[name]);
    return `${blank}${JSON.stringify(name)}${blank}:${blank}${value}${blank}`;
  });
  if (pick(5) === 0) members.push(`"more":${of(common["tags"])}`, `"2":${of(common["name"])}`);
  if (pick(100) < oddness)
    members.push(of(['"id":5', '"__proto__":{"x":1}', '"i\\u0064":6', '"na.me":1', "", "x:1", '"y"']));
  return `{${members.join(",")}}`;
}

function pageText(pick: (below: number) => number, oddness: number): string {
  const records = Array.from({ length: 1 + pick(4) }, () => recordText(pick, oddness));
  if (pick(100) < oddness) records.push(pick(2) ? "null" : "[1]");
  const array = `[${records.join(pick(3) ? "," : " , ")}]`;
  const around =
    ["", '"items_before":1,', '"x":"\\"items\\":[{}]",', '"y":{"items":[{"id":1}]},'][pick(oddness ? 4 : 2)] ?? "";
  const behind =
    ["", ',"next":"/items?page=2"', ',"items":[{"id":3}]', ',"next":', ',"items_after":[1]'][pick(oddness ? 5 : 2)] ??
    "";
  return `{${around}"items":${array}${behind}}`;
}

// A page with a byte or two of it changed, gone or doubled.
function damaged(pick: (below: number) => number, text: string): Buffer {
  const bytes = [...Buffer.from(text)];
  for (let times = 1 + pick(2); times > 0; times--) {
    const at = pick(bytes.length);
    const byte = pick(2) ? pick(256) : ('{}[]",:0-.e\\ tn'.charCodeAt(pick(15)) as number);
    bytes.splice(at, pick(2), ...(pick(3) ? [byte] : []));
  }
  return Buffer.from(bytes);
}

test.skipIf(postgresMissing())(
  "what is packed is what the general way makes of it, and what that refuses is never packed",
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const url = await server.createDatabase();
    const reader = await connect(url);
    const columns = table.columns.map(({ name }, at) => `"${name}" ${types[at]}`).join(", ");
    await reader.query(`CREATE TABLE packed (${columns}); CREATE TABLE written (${columns})`);
    const pick = random(20_261_121);
    const tuples: Buffer[] = [];
    const rows: ReturnType<typeof rowsOf>["rows"] = [];
    const seen = { plain: 0, packedPlain: 0, odd: 0, packedOdd: 0, damaged: 0, packedDamaged: 0 };
    const examine = (body: Buffer, packPage = pack()): boolean => {
      const page = packPage?.({ body, url: "http://vendor/" }, ["items"]);
      if (!page) return false;
      const packed = page.tuples();
      const other = generally(body);
      if (packed) expect(other, body.toString()).not.toBeNull();
      if (other) {
        expect(page.count, body.toString()).toBe(other.length);
        const records = page.records();
        expect([page.first, page.last]).toEqual([records[0], records.at(-1)]);
      }
      if (!packed) return false;
      // Its memory is another page's after that.
      tuples.push(Buffer.from(packed));
      page.done();
      rows.push(...(other ?? []));
      return true;
    };
    const always = pack();
    for (let at = 0; at < 3000; at++) {
      seen.plain++;
      if (examine(Buffer.from(pageText(pick, 0)), always)) seen.packedPlain++;
      seen.odd++;
      if (examine(Buffer.from(pageText(pick, 12)))) seen.packedOdd++;
      seen.damaged++;
      if (examine(damaged(pick, pageText(pick, 0)))) seen.packedDamaged++;
    }
    // The fast way is taken by what APIs send, and sometimes by what they rarely do.
    expect(seen.packedPlain).toBe(seen.plain);
    expect(seen.packedOdd).toBeGreaterThan(seen.odd / 10);
    expect(seen.packedDamaged).toBeGreaterThan(100);
    const link = await connectPostgres({ url, side: "destination" });
    await link.run("BEGIN");
    expect(await copyTuples(link, "packed", table.columns, tuples)).toBe(true);
    const jsonb = types.map((type) => type === "jsonb");
    const { rejects } = await writeRows(
      { link, table: "written", columns: table.columns, jsonb, keyOf: (_row, at) => String(at) },
      rows,
      (at) => at,
    );
    expect(rejects).toEqual([]);
    await link.run("COMMIT");
    await link.close();
    expect(await reader.lines("packed")).toEqual(await reader.lines("written"));
    await reader.end();
  },
);
