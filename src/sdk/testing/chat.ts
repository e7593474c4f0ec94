// request.llm: the contract's models, answered by the test or as the sandbox provider would.
import { modelPattern } from "#contract/model-pattern.ts";
import { HandlerError } from "#sdk/errors.ts";
import type { ChatChunk, ChatCompletion, ChatRequest, Llm } from "#sdk/request.ts";
import type { TestContract } from "./contract.ts";
import { sampleOf } from "./sample.ts";

/** Answers a chat request: with the assistant's text, or with a whole completion. */
export type ChatFake = (request: ChatRequest) => string | ChatCompletion | Promise<string | ChatCompletion>;

export function fakeLlm(contract: TestContract, fake: ChatFake | undefined): Llm {
  const chat = async (asked: ChatRequest): Promise<ChatCompletion | AsyncIterable<ChatChunk>> => {
    contract.need({ capability: "llm:chat" });
    const { messages, stream } = asked ?? {};
    if (!Array.isArray(messages) || messages.length === 0)
      throw new HandlerError("invalid_request", "messages: must be a list of at least one message");
    const models = contract.contract.scopes?.llm?.models;
    const model = asked.model ?? models?.find((one) => !one.includes("*")) ?? "sandbox/echo";
    if (asked.model && models && !isListed(models, String(asked.model)))
      throw new HandlerError("capability_denied", `scopes.llm.models does not list ${asked.model}`);
    const answer = await (fake ?? likeTheSandbox)(asked);
    const completion = typeof answer === "string" ? completionOf(model, answer) : answer;
    return stream ? chunksOf(completion, asked) : completion;
  };
  return { chat: chat as Llm["chat"] };
}

function isListed(models: readonly string[], model: string): boolean {
  const [, provider = "", id = model] = /^([^/]*)\/(.*)$/s.exec(model) ?? [];
  return models.some((one) => modelPattern(one).fits(provider, id));
}

function likeTheSandbox(asked: ChatRequest): string {
  const format = asked["response_format"] as { json_schema?: { schema?: unknown } } | undefined;
  if (format?.json_schema?.schema) return JSON.stringify(sampleOf(format.json_schema.schema));
  const last = asked.messages.findLast((message) => message.role === "user");
  return typeof last?.content === "string" ? last.content : "";
}

function completionOf(model: string, content: string): ChatCompletion {
  return {
    id: "chatcmpl-test",
    object: "chat.completion",
    created: 0,
    model,
    choices: [{ index: 0, message: { role: "assistant", content, refusal: null }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost_usd: 0 },
  };
}

async function* chunksOf(completion: ChatCompletion, asked: ChatRequest): AsyncGenerator<ChatChunk> {
  const { id, created, model } = completion;
  const base = { id, object: "chat.completion.chunk" as const, created, model };
  const choice = completion.choices[0];
  for (const word of choice?.message.content?.split(/(?<= )/) ?? [])
    yield { ...base, choices: [{ index: 0, delta: { content: word }, finish_reason: null }] };
  for (const [index, call] of (choice?.message.tool_calls ?? []).entries()) {
    const delta = { tool_calls: [{ index, ...call }] };
    yield { ...base, choices: [{ index: 0, delta, finish_reason: null }] };
  }
  yield { ...base, choices: [{ index: 0, delta: {}, finish_reason: choice?.finish_reason ?? "stop" }] };
  const options = asked["stream_options"] as { include_usage?: boolean } | undefined;
  if (options?.include_usage === true && completion.usage) yield { ...base, choices: [], usage: completion.usage };
}
