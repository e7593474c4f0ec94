// Translated answers in OpenAI's form, whole. What differs between the wires is read by them; what OpenAI's form demands is here.
import type {
  AnswerMessage,
  ChatCompletion,
  Choice,
  DrawnImage,
  FinishReason,
  Logprobs,
  ReasoningDetail,
  ToolCall,
} from "#daemon/gateway/format/completion.ts";
import { estimateUsage } from "#daemon/gateway/format/estimate.ts";
import { isLegacy } from "#daemon/gateway/format/modern.ts";
import { shownTier, type TokenUsage, wireUsage } from "#daemon/gateway/format/usage.ts";
import type { ReadContext } from "./wire.ts";

export interface AnswerChoice {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: FinishReason;
  readonly logprobs?: Logprobs | null;
  /** Signed thinking, for the client to send back. */
  readonly details?: readonly ReasoningDetail[];
  /** Gemini's, of the text. */
  readonly signature?: string | null;
  readonly images?: readonly DrawnImage[];
  /** Why the model did not answer, in its service's words. */
  readonly refusal?: string;
}

export interface Answer {
  readonly id: string | null;
  readonly model: string | null;
  readonly choices: readonly AnswerChoice[];
  readonly usage: TokenUsage;
  /** The tier that it was served on, by the provider's own name. */
  readonly tier?: unknown;
}

/** What an answer that says nothing of its tokens is charged for, the same as in a stream. */
export function estimatedUsage(choices: readonly AnswerChoice[], { request }: ReadContext): TokenUsage {
  let characters = 0;
  let thought = 0;
  for (const { text, reasoning, toolCalls } of choices) {
    characters += text.length;
    thought += reasoning.length;
    for (const { function: called } of toolCalls) characters += called.name.length + 8 + called.arguments.length;
  }
  return estimateUsage(request, characters, thought);
}

/** The JSON body, and the usage that was priced. */
export function completionBody(answer: Answer, context: ReadContext): { body: Buffer; usage: TokenUsage } {
  const legacy = isLegacy(context.request);
  const tier = shownTier(answer.tier);
  const completion: ChatCompletion = {
    id: answer.id ?? `chatcmpl-${context.requestId}`,
    object: "chat.completion",
    created: context.created,
    model: answer.model ?? context.target.model,
    choices: answer.choices.map((choice, index) => wireChoice(choice, index, legacy)),
    usage: wireUsage(answer.usage, context.cost(answer.usage)),
    ...(tier && { service_tier: tier }),
  };
  return { body: Buffer.from(JSON.stringify(completion)), usage: answer.usage };
}

function wireChoice(choice: AnswerChoice, index: number, legacy: boolean): Choice {
  const calls = choice.toolCalls;
  const message: AnswerMessage = {
    role: "assistant",
    content: choice.text === "" && calls.length > 0 ? null : choice.text,
    refusal: choice.refusal || null,
    ...(choice.reasoning ? { reasoning_content: choice.reasoning } : {}),
    ...(choice.details?.length ? { reasoning_details: choice.details } : {}),
    ...(choice.signature ? { extra_content: { google: { thought_signature: choice.signature } } } : {}),
    ...(choice.images?.length ? { images: choice.images } : {}),
    ...(calls[0] && legacy ? { function_call: calls[0].function } : {}),
    ...(calls.length > 0 && !legacy ? { tool_calls: calls } : {}),
  };
  const finish = legacy && choice.finish === "tool_calls" ? "function_call" : choice.finish;
  return { index, message, logprobs: choice.logprobs ?? null, finish_reason: finish };
}
