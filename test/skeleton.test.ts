// Long texts are decoded by code of our own: whatever a body holds, it is what JSON.parse makes of it.
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { expect, test } from "vitest";
import { forwardBody } from "#daemon/gateway/format/forward.ts";
import { parseBody } from "#daemon/http/read-body.ts";
import { digestOfSource } from "#shared/skeleton/compile.ts";
import { source } from "#shared/skeleton/skim.wasm.ts";

const plain = "a line of a prompt, ";
/** As they stand in a text: what is decoded, what is not, what begins as the skeleton's stand-ins do. */
const pieces = [
  ...["\\n", '\\"', "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", "\\u0000", "\\u0022", "\\u005C", "\\u00e9", "\\u6F22"],
  ...[
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\u0041",
    "\\u12g4",
    "\\x",
    "\n",
    "\\u007f",
    "\u007f",
    "\u007f`bc",
    "é",
    "漢字",
    "😀",
  ],
  ...["{", "}", "[", "]", ":", ",", " ", "'", plain, plain.repeat(3), plain.repeat(20), plain.repeat(200)],
];
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => `"${parts.join("")}"`);
const key = fc.oneof(text, fc.constantFrom('"a"', '"b"', '"10"', '"__proto__"', '"model"', '"mod\\u0065l"'));
const space = fc.constantFrom("", " ", "\n\t", " ".repeat(20));
const { value: json } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    text,
    fc.constantFrom("null", "true", "-1.5e3", "12345678901234567890", "[]", "{}"),
    fc
      .tuple(fc.array(tie("value"), { maxLength: 4 }), space)
      .map(([items, gap]) => `[${gap}${items.join(`,${gap}`)}${gap}]`),
    members(tie("value")),
  ),
}));

function members(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(fc.tuple(key, value), { maxLength: 4 }), space)
    .map(([list, gap]) => `{${gap}${list.map(([name, one]) => `${name}${gap}:${gap}${one}`).join(`${gap},`)}}`);
}

/** Long enough to have its long texts cut out. */
const long = (value: string) => `{"messages":[{"content":"${plain.repeat(450)}"}],"value":${value}}`;
const outcome = (parse: () => unknown): string => {
  try {
    return JSON.stringify(parse());
  } catch {
    return "refused";
  }
};
const parsed = (bytes: Buffer): unknown => parseBody(bytes, 128, JSON.parse);
const runs = { numRuns: 3_000 };

test("is what JSON.parse makes of it", () => {
  fc.assert(
    fc.property(json, (value) => {
      const body = long(value);
      expect(outcome(() => parsed(Buffer.from(body)))).toBe(outcome(() => JSON.parse(body)));
    }),
    runs,
  );
});

test("damaged, it is refused where JSON.parse refuses it, and only there", () => {
  const byte = fc.constantFrom(0x22, 0x5c, 0x7b, 0x5d, 0x2c, 0x3a, 0x00, 0x1f, 0x20, 0x75, 0x7f, 0x80, 0xc3);
  fc.assert(
    fc.property(json, fc.nat(), byte, fc.boolean(), (value, place, damage, cut) => {
      const body = Buffer.from(long(value));
      const at = 8_900 + (place % (body.length - 8_900));
      const damaged = cut
        ? body.subarray(0, at)
        : Buffer.concat([body.subarray(0, at), Buffer.of(damage), body.subarray(at + 1)]);
      const wanted = isUtf8(damaged) ? outcome(() => JSON.parse(damaged.toString())) : "refused";
      expect(outcome(() => parsed(damaged))).toBe(wanted);
    }),
    runs,
  );
});

test("a member that is exchanged in its bytes leaves everything else as it was", () => {
  fc.assert(
    fc.property(members(json), space, fc.constantFrom("old", plain.repeat(20)), (value, gap, old) => {
      const content = plain.repeat(450);
      const body = Buffer.from(
        `{"a":"${content}",${gap}"model" :${gap}"${old}"${gap},"value":${value},"b":"${content}"}`,
      );
      fc.pre(outcome(() => JSON.parse(body.toString())) !== "refused");
      const model = "openai/new";
      const sent = forwardBody(body, parsed(body) as object, { model });
      expect(JSON.parse(sent.toString())).toEqual({ ...JSON.parse(body.toString()), model });
      expect(sent.toString()).toBe(
        body.toString().replace(`:${gap}"${old}"${gap},"value"`, `:${gap}"${model}"${gap},"value"`),
      );
    }),
    runs,
  );
});

test("what is decoded may stand anywhere in a text", () => {
  for (const piece of pieces)
    for (let before = 0; before < 140; before++)
      for (const after of [0, 1, 300]) {
        const body = long(`["${"x".repeat(before)}${piece}${"y".repeat(after)}","${plain.repeat(20)}"]`);
        expect(outcome(() => parsed(Buffer.from(body))) === outcome(() => JSON.parse(body))).toBe(true);
      }
});

test("more texts than a stand-in's letter numbers keep their places, up to the longest body and beyond it", () => {
  for (const count of [33, 1_100, 14_000, 20_000]) {
    const texts = Array.from({ length: count }, (_, index) => `${index} ${plain.repeat(13)}`);
    expect(parsed(Buffer.from(JSON.stringify(texts))) as string[]).toEqual(texts);
  }
});

test("the compiled code is of the source that stands beside it", () => {
  expect(source).toBe(digestOfSource());
});
