import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { literalEval } from "#daemon/integrations/connectors/declarative/jinja/literal.ts";
import { manifestNames } from "#daemon/integrations/connectors/declarative/jinja/names.ts";
import { sharedPath } from "#test/shared.ts";

const noon = Date.UTC(2024, 1, 29, 12, 0, 0, 123);
const jinja = createInterpolator(() => noon);

interface Case {
  readonly template: string;
  readonly context: Record<string, unknown>;
  readonly rendered: string;
  readonly literal_eval: unknown;
}

const recorded = sharedPath("airbyte-manifests/jinja-cases.json");
test.skipIf(!recorded)("every recorded case of the reference gives the same text and the same value", () => {
  const cases = JSON.parse(readFileSync(recorded ?? "", "utf8")) as Case[];
  const wrong = cases.filter((each) => {
    const value = jinja.evaluate(each.template, each.context);
    return (
      jinja.render(each.template, each.context) !== each.rendered ||
      JSON.stringify(value) !== JSON.stringify(each.literal_eval)
    );
  });
  expect(wrong).toEqual([]);
  expect(cases.length).toBeGreaterThan(500);
});

const context = {
  config: {
    n: 5,
    list: [3, 1, 2],
    text: "x y Z",
    dict: { a: 1, none: null },
    rows: [
      { id: 1, g: "a" },
      { id: 2, g: "b" },
    ],
    mixed: [
      { id: 1, g: "a", n: { v: 1 } },
      { id: 2, g: "b" },
      { id: 3, g: "c" },
      { id: 4, g: "A" },
    ],
  },
};

test.each([
  ["{{ config.n / 5 }}", "1.0"],
  ["{{ 7 % -3 }} {{ -7 // 2 }} {{ -2 ** 2 }}", "-2 -4 4"],
  ["{{ 1704164645123 % 0.1 }} {{ -7.0 % 7 }} {{ 1 // 0.1 }}", "0.09990539985866162 0.0 9.0"],
  ["{{ 'Camel' | int(0, 16) }} {{ '0xFf' | int(0, 16) }}", "0 255"],
  [
    "{{ '0x' | int(9, 16) }} {{ 'a0b1' | int(9, 16) }} {{ '0b11' | int(9, 16) }} {{ '0x1' | int(9, 2) }}",
    "9 41137 2833 9",
  ],
  [
    "{{ '-0X_ff' | int(9, 0) }} {{ '0b1_1' | int(9, 2) }} {{ '0o17' | int(9, 8) }} {{ 'z_z' | int(9, 36) }}",
    "-255 3 15 1295",
  ],
  ["{{ '0x__1' | int(9, 16) }} {{ '0x-1' | int(9, 16) }} {{ '12.7' | int(9, 16) }} {{ '1e999' | int(9) }}", "9 9 12 9"],
  ["{{ 'ffffffffffffffffffff' | int(9, 16) }}", "1208925819614629174706175"],
  ["{{ 'id:key' | base64binascii_decode }}", "aWQ6a2V5"],
  ["{{ config.dict }}", "{'a': 1, 'none': None}"],
  ["{{ config.list[::-1] }} {{ config.text[1:3] }}|", "[2, 1, 3]  y|"],
  ["{{ 'a' ~ none ~ true }}", "aNoneTrue"],
  ["{{ config.missing }}|{{ config.missing is defined }}", "|False"],
  ["{{ '{:05.1f}/{x}'.format(2.345, x='q') }}", "002.3/q"],
  ["{{ config.rows | selectattr('g', 'equalto', 'b') | map(attribute='id') | first | default(0) }}", "2"],
  ["{% for r in config.rows %}{{ loop.index }}{{ r.g }}{{ ',' if not loop.last }}{% endfor %}", "1a,2b"],
  ["{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6"],
  ["{% for g, all in config.rows | groupby('g') %}{{ g }}{{ all | length }}{% endfor %}", "a1b1"],
  [
    "{{ config.rows | groupby('g') | map(attribute='grouper') | list }} {{ (config.rows | groupby('g'))[0].list }}",
    "['a', 'b'] [{'id': 1, 'g': 'a'}]",
  ],
  [
    "{{ 'a\\nb\\r\\n\\nc'.splitlines() }} {{ 'a\\r\\nb'.splitlines(true) }} {{ ''.splitlines() }}",
    "['a', 'b', '', 'c'] ['a\\r\\n', 'b'] []",
  ],
  [
    "{{ 1.115 | round(2) }} {{ 2.675 | round(2) }} {{ 0.125 | round(2) }} {{ 15 | round }} {{ 25.0 | round(-1) }}",
    "1.11 2.67 0.12 15 20.0",
  ],
  [
    "{{ 57 | round(-1) }} {{ 25 | round(-1) }} {{ -35 | round(-1) }} {{ 4 | round(-1) }} {{ true | round }} {{ 9 | round(-9999) }}",
    "60 20 -40 0 1 0",
  ],
  ["{{ '%.2f %.0f %.1f' % (0.125, 2.5, 0.25) }} {{ '{:.0f} {:.1%}'.format(0.5, 0.0125) }}", "0.12 2 0.2 0 1.2%"],
  [
    "{{ '%g %G %E %r %c % d %#x|' % (1e16, 1e-5, 1, 'a', 65, 3, 255) }}{{ '%s' % config.missing }}",
    "1e+16 1E-05 1.000000E+00 'a' A  3 0xff|",
  ],
  ["{{ '{!r} {:g} {:#x} {: d} {:>4}'.format('a', 123456789.0, 255, 3, 7) }}", "'a' 1.23457e+08 0xff  3    7"],
  [
    "{{ 'ab' | center(5) }}|{{ 'a'.center(4, '-') }} {{ 'a-b-c'.rindex('-') }} {{ 'é'.isascii() }}",
    "  ab |-a-- 3 False",
  ],
  ["{{ 'abc'.replace('', '-', 2) }} {{ '😀b' | replace('', '-') }} {{ 'a' | pprint }}", "-a-bc -😀-b- 'a'"],
  [
    "{{ 1 | filesizeformat }} {{ '999' | filesizeformat }} {{ 1e9 | filesizeformat }} {{ 1536 | filesizeformat(true) }}",
    "1 Byte 999 Bytes 1.0 GB 1.5 KiB",
  ],
  ["{{ [1, 2, 3] | slice(2, 0) | list }}", "[[1, 2], [3, 0]]"],
  ["{{ now_utc() }}", "2024-02-29 12:00:00.123000+00:00"],
  ["{{ now_utc().strftime('%Y-%m-%dT%H:%M:%SZ') }}", "2024-02-29T12:00:00Z"],
  ["{{ today_utc() }}", "2024-02-29"],
  [
    "{{ now_utc().isocalendar() }} {{ today_utc().isocalendar().week }} {{ today_utc().replace(year=2021, month=1, day=1).isocalendar()[0] }}",
    "(2024, 9, 4) 9 2020",
  ],
  [
    "{% set leap = str_to_datetime('2024-02-29T12:30:00Z') %}{{ leap.replace(tzinfo=none).isoformat() }} {{ leap.replace(month=1, day=31, hour=0) }}",
    "2024-02-29T12:30:00 2024-01-31 00:30:00+00:00",
  ],
  ["{{ today_with_timezone('Pacific/Apia') }} {{ today_with_timezone('Pacific/Pago_Pago') }}", "2024-03-01 2024-02-29"],
  [
    "{{ now_utc().isoformat(timespec='milliseconds') }} {{ now_utc().isoformat(' ', 'minutes') }}",
    "2024-02-29T12:00:00.123+00:00 2024-02-29 12:00+00:00",
  ],
  [
    "{{ dict([('a', 1)], b=2) }} {% set d = {} %}{% set _ = d.update([('c', 3)]) %}{{ d }}",
    "{'a': 1, 'b': 2} {'c': 3}",
  ],
  ["{{ day_delta(-1, format='%Y-%m-%d') }}", "2024-02-28"],
  ["{{ duration('P6DT23H') }}", "6 days, 23:00:00"],
  ["{{ (now_utc() - duration('P1D')).strftime('%d') }}", "28"],
  ["{{ timestamp('2022-02-28T00:00:00-08:00') }} {{ timestamp(7.9) }}", "1646035200.0 7"],
  ["{{ format_datetime('2021-05-06', '%s') }}", "1620259200"],
  [
    "{{ format_datetime('Thu, 06 May 2021 10:00:00 +0200', '%Y-%m-%dT%H:%M:%S.%fZ', '%a, %d %b %Y %H:%M:%S %z') }}",
    "2021-05-06T10:00:00.000000Z",
  ],
  ["{{ 'Test client_secret' | hash('md5', salt='salt') }}", "5011a0168579c2d94cbbe1c6ad14327c"],
  ['{{ "goodbye, cruel world" | regex_search("goodbye,\\\\s(.*)$") }}', "cruel world"],
  ["{{ 'abc' | regex_search('b') }}", ""],
  ['{{ "hello-world_foo" | regex_replace("[_-]", " ") }}', "hello world foo"],
  [
    "{{ 'ab' | regex_replace('(a)(b)', '$1-\\\\2') }} {{ 'ab' | regex_replace('(?P<x>a)(b)', '\\\\g<2>\\\\g<x>$&') }}",
    "$1-b ba$&",
  ],
  [
    "{{ 'a.b' | regex_replace('[.]', '\\\\\\\\') }} {{ 'ab' | regex_replace('b', '<\\\\g<0>>\\\\t') }}|",
    "a\\b a<b>\t|",
  ],
  ["a\n{% if true +%}\n b{% endif +%}\n{% raw %}{{ x }}{% endraw +%}\n|", "a\n\n b\n{{ x }}\n|"],
  ["{% for x in 'aab' %}{{ x if loop.changed(x) }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}", "a10 10 b10 "],
  ["{{ config.mixed | groupby('g') | map('last') | map('length') | list }}", "[2, 1, 1]"],
  ["{{ config.mixed | groupby('g', case_sensitive=true) | map('first') | list }}", "['A', 'a', 'b', 'c']"],
  ["{{ config.mixed | groupby('n.v', default=9) | map('first') | list }}", "[1, 9]"],
  ["{{ config.mixed | sort(attribute='g,id') | map(attribute='id') | list }}", "[1, 4, 2, 3]"],
  [
    "{{ config.n is lower }} {{ 1e-7 is lower }} {{ config.list is upper }} {{ ['A'] is upper }}",
    "False True False True",
  ],
  [
    "{{ duration('P1D') / 2 }} {{ duration('P1D') // 7 }} {{ duration('P2D') // duration('PT7H') }}",
    "12:00:00 3:25:42.857142 6",
  ],
  ["{{ 'a\\tbcd\\n\\te'.expandtabs(4) }}", "a   bcd\n    e"],
  [
    "{{ '😀'.zfill(3) }} {{ '😀' | center(4) }}| {{ '😀b'.find('b') }} {{ '{:>3}'.format('😀') }}",
    "00😀  😀  | 1   😀",
  ],
  ["{{ 'a😀bcdefghij' | truncate(5, true, '', 0) }}", "a😀bcd"],
  ["{{ format_datetime('2024-01-01T13:00:00', '%I %P') }}", "01 pm"],
  ["{{ format_datetime('2024-02-29t10:11:12z', '%H', '%Y-%m-%dT%H:%M:%SZ') }}", "10"],
  [
    "{{ 9007199254740993 is odd }} {{ 12345678901234567890123 is even }} {{ 9007199254740993 is divisibleby(3) }}",
    "True False True",
  ],
])("%s renders as Jinja2 3.1.6 does", (template, expected) => {
  expect(jinja.render(template, context)).toBe(expected);
});

test("what `string` makes is text where a condition chooses it, too", () => {
  expect(jinja.evaluate("{{ config.list | string if config.n else '' }}", context)).toBe("[3, 1, 2]");
});

test.each(["12J", "...", "b'x'", "{1, 2}", "12e4567", "-1e999"])(
  "%s, which JSON has no form for, stays the text that it is",
  (id) => {
    expect(jinja.evaluate("{{ config.id }}", { config: { id } }, "")).toBe(id);
  },
);

test.each([
  "{{ format_datetime(config.missing, '%Y') }}",
  "{{ str_to_datetime(config.missing) }}",
  "{{ timestamp(config.missing) }}",
  "{{ max(config.missing, 3) }}",
  "{{ day_delta(config.missing) }}",
  "{{ config.mixed | map(attribute='n.v') | list }}",
])("%s is missing, not wrong, where its argument is missing", (template) => {
  expect(jinja.text(template, context)).toBe("");
  expect(jinja.evaluate(template, context, "")).toBe("");
});

test.each(["{{ respone.next }}", "{{ len(config.list) }}", "{% if true %}{{ int('5') }}{% endif %}"])(
  "a name that no manifest's template has, as in %s, is no missing value",
  (template) => {
    const strict = createInterpolator(() => noon, manifestNames);
    expect(() => strict.evaluate(template, context, "")).toThrow(/templates have no '(respone|len|int)'/);
    expect(strict.text("{% if false %}{% set mine = 1 %}{% endif %}{{ mine }}{{ record }}", context)).toBe("");
  },
);

test("what is no text in base64 is refused, and not made noise of", () => {
  expect(jinja.render("{{ 'aGVsbG8=' | base64decode }}", context)).toBe("hello");
  expect(() => jinja.render("{{ 'Hello World' | base64decode }}", context)).toThrow("needs text in base64");
});

describe("literal_eval", () => {
  test.each<[string, unknown]>([
    ["007", "007"],
    ["00", 0],
    ["0x10", 16],
    ["1_000", 1000],
    ["2024-11-12", "2024-11-12"],
    ["--1", "--1"],
    [" 1", 1],
    ["\n \n# of two\n[1]\n", [1]],
    ["\n 1", "\n 1"],
    ["1\n ", "1\n "],
    ["1\n \n", 1],
    ["'a' 'b'", "ab"],
    ["[1, None, True]", [1, null, true]],
    ['{"a": true}', '{"a": true}'],
    ["1 + 2", "1 + 2"],
    ["[1,", "[1,"],
    ["nan", "nan"],
  ])("%s", (text, expected) => {
    expect(literalEval(text)).toEqual(expected);
  });
  test("an integer beyond 2^53 keeps its digits", () => {
    expect(literalEval("12345678901234567890")).toBe(12345678901234567890n);
  });
});

describe("a hostile template", () => {
  test.each([
    "{{ ''.__class__ }}",
    "{{ config.constructor }}",
    "{{ config.__proto__ }}",
    "{{ config.list.constructor }}",
    "{{ config['__proto__'] }}",
    "{{ config.text['constructor'] }}",
  ])("%s reaches nothing", (template) => {
    expect(jinja.render(template, context)).toBe("");
  });
  test.each([
    "{{ ''.constructor.constructor('return process')() }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ config.toString() }}",
    "{{ 'x' * 10**12 }}",
    "{{ range(10**9) | list }}",
    "{% for a in range(90000) %}{% for b in range(90000) %}x{% endfor %}{% endfor %}",
    `{{ ${"(".repeat(101)}1${")".repeat(101)} }}`,
    "{{ 2 ** 1000000 }}",
    "{{ (9 ** 9999) ** 9999 }}",
    "{% set n = namespace(x=3) %}{% for i in range(40) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "{{ ('a\\n' * 200000) | indent(5000) }}",
    "{{ ['a'] | tojson(indent=100000) }}",
    "{{ ('a' * 100000).split('a') | join('b' * 1000) }}",
    "{% include 'etc/passwd' %}",
    "{{ 'a' | regex_search('(?=a)') }}",
  ])("%s is refused in bounded time", (template) => {
    const started = performance.now();
    expect(() => jinja.render(template, context)).toThrow(
      /undefined|not callable|too large|too many|too big|steps|nesting|unsupported|not supported/i,
    );
    expect(performance.now() - started).toBeLessThan(30_000);
  });
  test("a day or an hour that there is not is an error, not another day", () => {
    for (const change of ["day=30", "month=13", "hour=24", "minute=-1"])
      expect(() => jinja.render(`{{ now_utc().replace(${change}) }}`, {})).toThrow(/out of range/);
  });
  test("ten million digits in a row stay the text that they are", () => {
    const digits = "1".repeat(9_999_999);
    expect(jinja.evaluate("{{ digits }}", { digits })).toBe(digits);
  });
  test("a pattern that makes backtracking engines explode takes linear time", () => {
    expect(jinja.render(`{{ '${"a".repeat(5000)}!' | regex_search('^(a+)+$') }}`, {})).toBe("");
  });
  test("a text of beginnings of tags is looked through once", () => {
    const started = performance.now();
    const [tags, comments] = ["<".repeat(500_000), "<!--".repeat(200_000)];
    const context = { text: `${comments}<p>a <!-- <b> -->b</p>${tags}` };
    expect(jinja.render("{{ text | striptags }}", context)).toBe(`b${tags}`);
    expect(performance.now() - started).toBeLessThan(30_000);
  });
  test("a record with the key __proto__ stays data", () => {
    const record = JSON.parse('{"__proto__": {"polluted": 1}}');
    expect(jinja.evaluate("{{ record }}", { record })).toEqual(record);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
