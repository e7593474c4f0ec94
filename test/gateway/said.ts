// What an answer says, in one form for OpenAI's documents and for the AI SDK's, so that the two can be compared.
import type { ChatCompletionChunk } from "openai/resources";
import type { ChatOutcome } from "#daemon/gateway/providers/adapter.ts";
import { specification } from "./specification.ts";
import { collect } from "./upstream.ts";

export interface Said {
  text: string;
  reasoning: string;
  /** Ids are to be compared only where the wire has some. */
  tools: { id?: string; name: string; args: unknown }[];
  finish: string;
  usage: { prompt: number; cached: number; completion: number; reasoning: number };
}

type Fields = Record<string, unknown>;

interface SdkUsage {
  inputTokens: { total: number | undefined; cacheRead: number | undefined };
  outputTokens: { total: number | undefined; reasoning: number | undefined };
}

/** The AI SDK's language models, as far as they are needed here: its packages bring several versions of the type along. */
export interface SdkModel {
  doGenerate(call: object): PromiseLike<{ content: unknown[]; finishReason: { unified: string }; usage: SdkUsage }>;
  doStream(call: object): PromiseLike<{ stream: AsyncIterable<Fields> }>;
}

interface WireMessage {
  content?: string | null;
  reasoning_content?: string;
  tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

const finishes: Record<string, string> = { "tool-calls": "tool_calls", "content-filter": "content_filter" };

/** Of an answer, whole or streamed, that came to its end and is as OpenAI's specification has it. */
export async function saidByOutcome(outcome: ChatOutcome): Promise<Said> {
  if (outcome.kind === "stream") {
    const { events, done, end } = await collect(outcome);
    if (!done || end.result !== "completed") throw new Error(JSON.stringify(end));
    for (const event of events) specification()?.chunk(event);
    return saidByGatewayStream(events);
  }
  if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
  const completion = JSON.parse(outcome.body.toString());
  specification()?.completion(completion);
  return saidByGateway(completion);
}

/** The text and the usages of a stream that OpenAI's client reads. */
export async function heardByClient(chunks: AsyncIterable<ChatCompletionChunk>) {
  let text = "";
  const usages: unknown[] = [];
  for await (const chunk of chunks) {
    specification()?.chunk(chunk);
    text += chunk.choices[0]?.delta.content ?? "";
    if (chunk.usage) usages.push(chunk.usage);
  }
  return { text, usages };
}

export function saidByGateway(completion: Fields): Said {
  const choice = (completion["choices"] as { message: WireMessage; finish_reason: string }[])[0];
  const { content, reasoning_content: reasoning, tool_calls: calls } = choice?.message ?? {};
  return {
    text: content ?? "",
    reasoning: reasoning ?? "",
    tools: (calls ?? []).map((call) => ({
      id: call.id ?? "",
      name: call.function?.name ?? "",
      args: JSON.parse(call.function?.arguments ?? "null"),
    })),
    finish: choice?.finish_reason ?? "",
    usage: wireUsage(completion["usage"] as Fields),
  };
}

export function saidByGatewayStream(events: readonly unknown[]): Said {
  const said: Said & { raw: string[] } = {
    text: "",
    reasoning: "",
    tools: [],
    finish: "",
    usage: { prompt: 0, cached: 0, completion: 0, reasoning: 0 },
    raw: [],
  };
  for (const event of events as { choices: { delta: WireMessage; finish_reason: string | null }[]; usage?: Fields }[]) {
    if (event.usage) said.usage = wireUsage(event.usage);
    for (const { delta, finish_reason: reason } of event.choices) {
      said.text += delta.content ?? "";
      said.reasoning += delta.reasoning_content ?? "";
      for (const call of delta.tool_calls ?? []) {
        const index = call.index ?? 0;
        said.raw[index] = (said.raw[index] ?? "") + (call.function?.arguments ?? "");
        if (call.function?.name) said.tools[index] = { id: call.id ?? "", name: call.function.name, args: null };
      }
      if (reason) said.finish = reason;
    }
  }
  for (const [index, tool] of said.tools.entries()) tool.args = JSON.parse(said.raw[index] || "null");
  const { raw: _raw, ...rest } = said;
  return rest;
}

function wireUsage(usage: Fields): Said["usage"] {
  const prompt = usage["prompt_tokens_details"] as Fields | undefined;
  const completion = usage["completion_tokens_details"] as Fields | undefined;
  return {
    prompt: usage["prompt_tokens"] as number,
    cached: (prompt?.["cached_tokens"] as number) ?? 0,
    completion: usage["completion_tokens"] as number,
    reasoning: (completion?.["reasoning_tokens"] as number) ?? 0,
  };
}

const call = {
  prompt: [{ role: "user" as const, content: [{ type: "text" as const, text: "x" }] }],
  tools: [
    {
      type: "function" as const,
      name: "weather",
      inputSchema: { type: "object" as const, properties: { location: { type: "string" as const } } },
    },
  ],
};

export async function saidBySdk(model: SdkModel, more: object = {}): Promise<Said> {
  const result = await model.doGenerate({ ...call, ...more });
  const said = fromParts(result.content as Fields[]);
  return { ...said, finish: finishOf(result.finishReason.unified), usage: sdkUsage(result.usage) };
}

export async function saidBySdkStream(model: SdkModel, more: object = {}): Promise<Said> {
  const { stream } = await model.doStream({ ...call, ...more });
  const parts: Fields[] = [];
  let finish = "";
  let usage: SdkUsage | null = null;
  for await (const part of stream) {
    if (part["type"] === "text-delta") parts.push({ type: "text", text: part["delta"] });
    if (part["type"] === "reasoning-delta") parts.push({ type: "reasoning", text: part["delta"] });
    if (part["type"] === "tool-call") parts.push(part);
    if (part["type"] === "finish") {
      finish = finishOf((part["finishReason"] as { unified: string }).unified);
      usage = part["usage"] as SdkUsage;
    }
  }
  if (!usage) throw new Error("the stream had no end");
  return { ...fromParts(parts), finish, usage: sdkUsage(usage) };
}

function fromParts(parts: readonly Fields[]): Pick<Said, "text" | "reasoning" | "tools"> {
  const text = (type: string) =>
    parts
      .filter((part) => part["type"] === type)
      .map((part) => part["text"])
      .join("");
  const tools = parts
    .filter((part) => part["type"] === "tool-call" && !part["providerExecuted"])
    .map((part) => ({
      id: String(part["toolCallId"]),
      name: String(part["toolName"]),
      args: JSON.parse(String(part["input"])),
    }));
  return { text: text("text"), reasoning: text("reasoning"), tools };
}

function finishOf(unified: string): string {
  return finishes[unified] ?? (unified === "other" ? "stop" : unified);
}

function sdkUsage(usage: SdkUsage): Said["usage"] {
  return {
    // NaN: the provider has not counted.
    prompt: usage.inputTokens.total ?? Number.NaN,
    cached: usage.inputTokens.cacheRead ?? 0,
    completion: usage.outputTokens.total ?? 0,
    reasoning: usage.outputTokens.reasoning ?? 0,
  };
}
