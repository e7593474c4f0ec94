// Requests of ordinary size that a translation could be made to work on for minutes, to break at, or to fill the memory with.
import { expect, test } from "vitest";
import { textReader } from "#daemon/gateway/format/exact-json.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import { anthropicMessages } from "#daemon/gateway/providers/anthropic/messages.ts";
import { schemaKeeper } from "#daemon/gateway/providers/anthropic/schema.ts";
import { converseMessages } from "#daemon/gateway/providers/bedrock/messages.ts";
import { imageUrl } from "#daemon/gateway/providers/content.ts";
import { geminiMessages } from "#daemon/gateway/providers/google/messages.ts";
import { inlined } from "#daemon/gateway/providers/json-schema.ts";
import { supportOf } from "#daemon/gateway/providers/support.ts";
import { thoughtMemory } from "#daemon/gateway/providers/thoughts/memory.ts";
import { readBody } from "#daemon/http/read-body.ts";
import { within } from "../patience.ts";
import { called, PIXEL, result, user } from "./sent.ts";

const io = { fetchImage: () => Promise.reject(new Error("unused")) };
const asConverse = { thoughts: null, idOf: (id: string) => id, markOf: () => null, mixesResults: true };
const asGemini = { signatures: thoughtMemory(), caller: "a", signed: false, nameOf: (own: string) => own, io };
const of = (messages: object[]) => ({ messages }) as unknown as ChatRequest;
const times = <Item>(count: number, item: Item) => Array.from({ length: count }, () => item);

test("references that multiply are followed no further than a schema is worth", () => {
  const names = [..."abcdefghij"];
  const fanned = (levels: number) => {
    const object = (next: object) => ({
      type: "object",
      properties: Object.fromEntries(names.map((name) => [name, next])),
      required: names,
      additionalProperties: false,
    });
    const levelled = Array.from({ length: levels }, (_, at) => [
      `d${at}`,
      object(at + 1 < levels ? { $ref: `#/$defs/d${at + 1}` } : { type: "string" }),
    ]);
    return { $ref: "#/$defs/d0", $defs: Object.fromEntries(levelled) };
  };
  expect(schemaKeeper()(fanned(2))).toBe(true);
  expect(schemaKeeper()(fanned(15))).toBe(false);
  const many = Array.from({ length: 60_000 }, (_, at) => `p${at}`);
  const properties = Object.fromEntries(many.map((name) => [name, {}]));
  const started = performance.now();
  schemaKeeper()({ type: "object", properties, required: many.toReversed() });
  expect(performance.now() - started).toBeLessThan(within(1_000));
});

test("what is wide and stands in many places is looked at a few times, and copied a few", () => {
  const everywhere = (wide: object) => {
    const names = Array.from({ length: 400 }, (_, at) => `p${at}`);
    const properties = Object.fromEntries(names.map((name) => [name, { $ref: "#/$defs/wide" }]));
    return { type: "object", properties, required: names, additionalProperties: false, $defs: { wide } };
  };
  const properties = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`p${at}`, 1]));
  const started = performance.now();
  expect(schemaKeeper()(everywhere({ type: "object", properties, additionalProperties: false }))).toBe(false);
  expect(performance.now() - started).toBeLessThan(within(1_000));
  const listed = everywhere({ enum: times(20_000, "a") });
  expect(JSON.stringify(inlined(listed)).length).toBeLessThan(10 * JSON.stringify(listed).length);
  const few = everywhere({ enum: times(20, "a") });
  expect(JSON.stringify(inlined(few)).match(/"enum"/g)).toHaveLength(400);
});

test("results among texts, texts alone, and documents of one name take no longer than their number", async () => {
  const started = performance.now();
  const turns = times(30_000, [user("x"), result("a", "y")]).flat();
  const content = anthropicMessages(of([user("go"), called("a"), ...turns]), null, false).turns[2]?.content as object[];
  const isResult = content.map((block) => "tool_use_id" in block);
  expect([isResult.length, isResult.indexOf(false), isResult.lastIndexOf(true)]).toEqual([60_000, 30_000, 29_999]);
  const apart = { ...asConverse, mixesResults: false };
  const texts = (await converseMessages(of(times(100_000, user("x"))), io, apart)).turns;
  expect([texts.length, texts[0]?.content.length]).toEqual([1, 100_000]);
  const documents = times(8_000, { type: "file", file: { file_data: "QQ==" } });
  const named = (await converseMessages(of([user(documents)]), io, asConverse)).turns[0]?.content ?? [];
  expect(new Set(named.map(({ document }) => (document as { name?: string })?.name)).size).toBe(8_001);
  expect(performance.now() - started).toBeLessThan(within(4_000));
});

test("a data URL is looked at no further than its beginning", () => {
  const url = (parameters: number) => `data:image/png;${"a=b;".repeat(parameters)}base64,${PIXEL}`;
  expect(imageUrl(url(10), "url")).toEqual({ mediaType: "image/png", data: PIXEL });
  expect(() => imageUrl(url(1_000), "url")).toThrow(/without a media type/);
});

test("any number of parts is added to a turn, and of what a provider lacks", async () => {
  const parts = times(150_000, { type: "text", text: "x" });
  const request = of([user("go"), user(parts)]);
  expect((await converseMessages(request, io, asConverse)).turns[0]?.content).toHaveLength(150_001);
  expect((await geminiMessages(request, asGemini)).contents[0]?.parts).toHaveLength(150_001);
  const audio = times(150_000, { type: "input_audio", input_audio: { data: "QQ==", format: "wav" } });
  expect(supportOf("anthropic", of([user(audio)]))).toHaveLength(150_000);
});

test("JSON in texts that is more than a body may hold stays a text", () => {
  const wide = `[${"{},".repeat(260_000)}{}]`;
  const deep = `${"[".repeat(129)}${"]".repeat(129)}`;
  const keys = `{${Array.from({ length: 300_000 }, (_, at) => `"k${at}":1`).join()}}`;
  const read = textReader();
  expect(read('{"a":[1]}')).toEqual({ a: [1] });
  expect(read(deep)).toBe(deep);
  expect(read(wide)).toHaveLength(260_001);
  // Together they are too many.
  expect(read(wide)).toBe(wide);
  expect(textReader()(keys)).toBe(keys);
});

test("what is no JSON is seen through as fast: a log, colons behind one string", () => {
  const started = performance.now();
  const log = "2026-11-23T06:57:39 INFO 200 in 12 ms\n".repeat(20_000);
  expect(textReader()(log)).toBe(log);
  const colons = `{"${"a".repeat(100_000)}"${":".repeat(400_000)}`;
  expect(() => readBody(Buffer.from(colons))).toThrow("not valid JSON");
  expect(performance.now() - started).toBeLessThan(within(1_000));
});
