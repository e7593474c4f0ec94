// Recorded answers with single members exchanged for something strange, left out or doubled: whatever a provider sends, every chunk and every
// completion that goes out is valid against OpenAI's specification, nothing but an UpstreamError is thrown, and no failure ends in [DONE].
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { anthropicWire } from "#daemon/gateway/providers/anthropic/wire.ts";
import { type Frame, frameReader } from "#daemon/gateway/providers/bedrock/frames.ts";
import { bedrockWire } from "#daemon/gateway/providers/bedrock/wire.ts";
import { UpstreamError } from "#daemon/gateway/providers/failure.ts";
import { googleWire } from "#daemon/gateway/providers/google/wire.ts";
import { openaiWire } from "#daemon/gateway/providers/openai/wire.ts";
import { type Random, seededRandom } from "#daemon/gateway/providers/sandbox/random.ts";
import { thoughtMemory } from "#daemon/gateway/providers/thoughts/memory.ts";
import type { ReadContext, Wire } from "#daemon/gateway/providers/wire.ts";
import { sharedPath } from "#test/shared.ts";
import { eventStreamBytes, frame } from "./event-stream.ts";
import { specification } from "./specification.ts";
import { callOf, targetOf } from "./upstream.ts";

const SEEDS = process.env["MAGIC_TEST_DEEP"] ? 400 : 8;
const memory = thoughtMemory();
const openai = openaiWire(memory);
const wires: Readonly<Record<string, Wire>> = {
  anthropic: anthropicWire(memory),
  google: googleWire(memory),
  "amazon-bedrock": bedrockWire(memory),
  openai,
  "openai-compatible": openai,
};
const root = sharedPath("provider-fixtures");
const recordings = root
  ? Object.keys(wires).flatMap((folder) => readdirSync(`${root}/${folder}`).map((file) => [folder, file] as const))
  : [];

type Fields = Record<string, unknown>;
const strange: readonly unknown[] = [null, true, -1, 1e308, 0.5, "", "x", [], {}, [null], [[]], { a: 1 }, "\ud800", 5];

function mutate(document: Fields, random: Random): void {
  let at = document;
  for (;;) {
    const keys = Object.keys(at);
    if (keys.length === 0) return;
    const key = random.pick(keys);
    const child = at[key];
    if (typeof child === "object" && child !== null && random.below(4) > 0) at = child as Fields;
    else {
      if (random.below(6) === 0) delete at[key];
      else at[key] = structuredClone(random.pick(strange));
      return;
    }
  }
}

function contextOf(wire: Wire, random: Random): ReadContext {
  const { request, requestId, caller } = callOf({
    messages: [{ role: "user", content: "x" }],
    stream: true,
    stream_options: { include_usage: true },
  });
  const sent = { origin: "", method: "POST", path: "", headers: {}, body: null } as const;
  const prepared = { request: sent, notes: { dropped: [] }, jsonTool: random.below(3) === 0 ? "json" : undefined };
  const target = targetOf(wire.kind, { url: "http://127.0.0.1:1" });
  return { request, requestId, caller, target, prepared, created: 1, cost: () => 0.5 };
}

function whole(wire: Wire, text: string, random: Random): void {
  const document = JSON.parse(text) as Fields;
  for (let n = random.below(4); n >= 0; n--) mutate(document, random);
  const { body } = wire.read(Buffer.from(JSON.stringify(document)), contextOf(wire, random));
  specification()?.completion(JSON.parse(body.toString()));
}

function streamed(wire: Wire, text: string, random: Random): void {
  const lines = text.trim().split("\n");
  const events = [...lines.slice(0, 60), ...lines.slice(60).slice(-3)].map((line) => JSON.parse(line) as Fields);
  for (let n = random.below(4); n >= 0; n--) mutate(random.pick(events), random);
  if (random.below(5) === 0) events.splice(random.below(events.length), 1 + random.below(3));
  if (random.below(5) === 0) events.splice(random.below(events.length), 0, structuredClone(random.pick(events)));
  const said = events.map((event) => JSON.stringify(event));
  const end = wire === openai ? "data: [DONE]\n\n" : "";
  const bytes =
    wire.kind === "bedrock"
      ? eventStreamBytes(said)
      : Buffer.from(said.map((one) => `data: ${one}\n\n`).join("") + end);
  let out = "";
  const decoder = wire.decoder(contextOf(wire, random), (frame) => {
    out += typeof frame === "string" ? frame : Buffer.from(frame).toString();
  });
  let failure: unknown = null;
  try {
    for (let at = 0; at < bytes.length && !decoder.finished(); ) {
      const size = 1 + random.below(3000);
      decoder.push(bytes.subarray(at, at + size));
      at += size;
    }
    if (!decoder.finished()) decoder.end();
  } catch (error) {
    failure = error;
  }
  expect(out.endsWith("data: [DONE]\n\n")).toBe(failure === null);
  for (const event of out.split("\n\n")) {
    if (event !== "" && event !== "data: [DONE]") specification()?.chunk(JSON.parse(event.slice(5)));
  }
  const { input, cached, cache_write, output, reasoning } = decoder.usage();
  for (const count of [input, cached, cache_write, output, reasoning]) {
    expect(Number.isInteger(count) && count >= 0).toBe(true);
  }
  if (failure) throw failure;
}

describe.skipIf(!root)("recorded answers, made strange", () => {
  test.each(recordings)(
    "%s/%s",
    (folder, file) => {
      const wire = wires[folder] as Wire;
      const text = readFileSync(`${root}/${folder}/${file}`, "utf8");
      for (let seed = 0; seed < SEEDS; seed++) {
        const random = seededRandom(`${file}/${seed}`);
        try {
          (file.endsWith(".json") ? whole : streamed)(wire, text, random);
        } catch (error) {
          if (!(error instanceof UpstreamError)) throw new Error(`seed ${seed}`, { cause: error });
        }
      }
    },
    120_000,
  );
});

test("a frame of megabytes in many small pieces costs as much as its bytes, not as their square", () => {
  const payload = JSON.stringify({ text: "x".repeat(4_000_000) });
  const bytes = Buffer.concat([frame("contentBlockDelta", payload), frame("messageStop", "{}")]);
  const got: Frame[] = [];
  const reader = frameReader((one) => got.push(one));
  const before = process.cpuUsage();
  for (let at = 0; at < bytes.length; at += 128) reader.push(bytes.subarray(at, at + 128));
  const { user, system } = process.cpuUsage(before);
  // Microseconds. Were every piece joined with all before it, it would be a quarter of a minute.
  expect(user + system).toBeLessThan(5_000_000);
  expect(got.map(({ type, payload: said }) => [type, said.length])).toEqual([
    ["contentBlockDelta", payload.length],
    ["messageStop", 2],
  ]);
  expect(reader.whole()).toBe(true);
});
