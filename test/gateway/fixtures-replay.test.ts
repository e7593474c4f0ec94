// Every recorded provider answer, replayed over real HTTP through the gateway's provider and, from the same bytes, through the vendor's own
// parser in the Vercel AI SDK: text, tool calls, reasoning, finish reason and usage must be the same.
import { readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { describe, expect, test } from "vitest";
import type { Provider, Target } from "#daemon/gateway/providers/adapter.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { sharedPath } from "#test/shared.ts";
import { eventStreamBytes } from "./event-stream.ts";
import { type SdkModel, saidByOutcome, saidBySdk, saidBySdkStream } from "./said.ts";
import { agent, callOf, optionsOf, targetOf, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();

type Kind = Exclude<Target["kind"], "sandbox" | "azure">;
const folders: Record<string, Kind> = {
  anthropic: "anthropic",
  google: "google",
  "amazon-bedrock": "bedrock",
  openai: "openai",
  "openai-compatible": "openai",
};

const root = sharedPath("provider-fixtures");
const fixtures = root
  ? Object.keys(folders).flatMap((folder) => readdirSync(`${root}/${folder}`).map((file) => `${folder}/${file}`))
  : [];

// Models of the recordings, so that emulated JSON is recognised as such where the recording has it.
function modelOf(kind: Kind, name: string): string {
  if (kind === "anthropic") return name.includes("json-tool") ? "claude-3-5-sonnet-latest" : "claude-sonnet-4-5";
  if (kind === "google") return "gemini-3-pro-preview";
  if (kind === "bedrock") return "anthropic.claude-3-haiku-20240307-v1:0";
  return "gpt-4.1-nano";
}

function sdkModel(kind: Kind, model: string): SdkModel {
  return vendorModel(kind, model) as unknown as SdkModel;
}

function vendorModel(kind: Kind, model: string) {
  const apiKey = "test";
  if (kind === "anthropic") return createAnthropic({ apiKey, baseURL: `${upstream.url}/v1` })(model);
  if (kind === "google") return createGoogleGenerativeAI({ apiKey, baseURL: `${upstream.url}/v1beta` })(model);
  if (kind === "bedrock") {
    return createAmazonBedrock({
      region: "us-east-1",
      accessKeyId: "a",
      secretAccessKey: "b",
      apiKey,
      baseURL: upstream.url,
    })(model);
  }
  return createOpenAI({ apiKey, baseURL: `${upstream.url}/v1` }).chat(model);
}

const tool = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: { location: { type: "string" } } } },
};

const jsonSchema = { type: "object", properties: { result: { type: "number" } } };
// Once more as answers to a request that wants JSON where no model keeps schemas by itself.
const asJson = fixtures.filter((fixture) => /json-(other-)?tool/.test(fixture));

function replay(response: ServerResponse, kind: Kind, text: string, streamed: boolean): void {
  if (!streamed) return void response.writeHead(200, { "content-type": "application/json" }).end(text);
  const events = text.trim().split("\n");
  if (kind === "bedrock") {
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    return void response.end(eventStreamBytes(events));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`data: ${event}\n\n`);
  response.end(kind === "openai" ? "data: [DONE]\n\n" : "");
}

/** What a vendor may add any day: a member of every object but those that hold a tool's own input. */
function withNewMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNewMembers);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, one]) => [name, INPUTS.has(name) ? one : withNewMembers(one)]);
  return { ...Object.fromEntries(entries), newest: { type: "newest", list: [null, 1, "text"] } };
}

const INPUTS = new Set(["input", "args", "partialArgs", "arguments"]);

/** And events that nobody knows yet, between all others. */
const newEvents: Record<Kind, readonly object[]> = {
  anthropic: [
    { type: "newest", text: "no", delta: { text: "no" } },
    { type: "content_block_start", index: 77, content_block: { type: "newest_block", name: "no", text: "no" } },
    { type: "content_block_delta", index: 77, delta: { type: "newest_delta", text: "no", partial_json: "no" } },
    { type: "content_block_stop", index: 77 },
  ],
  google: [{ newest: { text: "no" } }],
  bedrock: [
    { newest: "no object" },
    { contentBlockStart: { contentBlockIndex: 77, start: { newest: { text: "no" } } } },
    { contentBlockDelta: { contentBlockIndex: 77, delta: { newest: { text: "no" } } } },
    { contentBlockStop: { contentBlockIndex: 77 } },
  ],
  openai: [],
};

describe.skipIf(!root)("recorded answers", () => {
  test.each(fixtures)("%s: what a vendor may add any day changes nothing", async (fixture) => {
    const kind = folders[fixture.split("/")[0] ?? ""] as Kind;
    const provider = createProviders(agent)[kind] as Provider;
    const recorded = readFileSync(`${root}/${fixture}`, "utf8");
    const streamed = fixture.endsWith(".chunks.txt");
    const lines = streamed ? recorded.trim().split("\n") : [recorded];
    const news = streamed ? newEvents[kind].map((event) => JSON.stringify(event)) : [];
    const grown = lines.flatMap((line, at) => {
      const text = JSON.stringify(withNewMembers(JSON.parse(line)));
      return at + 1 < lines.length ? [text, ...news] : [text];
    });
    const said = async (text: string) => {
      upstream.answer = (response) => replay(response, kind, text, streamed);
      const model = modelOf(kind, fixture);
      const request = { model, messages: [{ role: "user", content: "x" }], tools: [tool], stream: streamed };
      const asked = callOf({ ...request, ...(streamed ? { stream_options: { include_usage: true } } : {}) });
      const found = await saidByOutcome(
        await provider.chat(asked, targetOf(kind, upstream, model), optionsOf({ cost: () => null })),
      );
      // Where the wire has no ids, each call gets one of its own.
      if (kind === "google") for (const called of found.tools) called.id = "";
      return found;
    };
    expect(await said(grown.join("\n"))).toEqual(await said(recorded));
  });

  test.each([
    ...fixtures.map((fixture) => [fixture, false] as const),
    ...asJson.map((fixture) => [fixture, true] as const),
  ])("%s, JSON wanted: %s", async (fixture, wantsJson) => {
    const kind = folders[fixture.split("/")[0] ?? ""] as Kind;
    const provider = createProviders(agent)[kind] as Provider | undefined;
    if (!provider) throw new Error(`no provider ${kind}`);
    const text = readFileSync(`${root}/${fixture}`, "utf8");
    const streamed = fixture.endsWith(".chunks.txt");
    upstream.answer = (response) => replay(response, kind, text, streamed);

    const model = modelOf(kind, fixture);
    const request = {
      model,
      messages: [{ role: "user", content: "x" }],
      tools: [tool],
      ...(wantsJson
        ? { response_format: { type: "json_schema", json_schema: { name: "answer", schema: jsonSchema } } }
        : {}),
      ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    };
    const outcome = await provider.chat(
      callOf(request),
      targetOf(kind, upstream, model),
      optionsOf({ cost: () => null }),
    );
    const ours = await saidByOutcome(outcome);
    const more = wantsJson ? { responseFormat: { type: "json", schema: jsonSchema } } : {};
    const theirs = streamed
      ? await saidBySdkStream(sdkModel(kind, model), more)
      : await saidBySdk(sdkModel(kind, model), more);
    // The SDK shows Bedrock's prose as parts of their own before the JSON; in one string it would break it.
    if (wantsJson) theirs.text = theirs.text.slice(Math.max(0, theirs.text.indexOf("{")));
    // None of these recordings of Gemini has ids.
    if (kind === "google") for (const called of [...ours.tools, ...theirs.tools]) called.id = "";
    // OpenAI's parser knows no reasoning_content, which its imitators send.
    if (Number.isNaN(theirs.usage.prompt)) ours.usage = theirs.usage;
    expect(ours).toEqual(kind === "openai" ? { ...theirs, reasoning: ours.reasoning } : theirs);
  });
});
