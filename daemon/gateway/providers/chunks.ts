// Translated answers in OpenAI's form, streamed. Keeps what a stream has to remember: which choices have begun, the index of each tool
// call, whether anything has been said yet, and how much, for an estimate should the provider break off.
import type {
  DrawnImage,
  ExtraContent,
  FinishReason,
  Logprobs,
  ReasoningDetail,
} from "#daemon/gateway/format/completion.ts";
import { estimateUsage } from "#daemon/gateway/format/estimate.ts";
import { isLegacy } from "#daemon/gateway/format/modern.ts";
import { type ChunkWriter, chunkWriter, DONE } from "#daemon/gateway/format/sse.ts";
import { shownTier, type TokenUsage, wireUsage } from "#daemon/gateway/format/usage.ts";
import type { Emit, ReadContext } from "./wire.ts";

/** An answer's pieces as OpenAI's chunks, written as they come. `index`: the choice, 0 where a wire has but one. */
export interface ChunkStream {
  /** Id and model as the provider says them; before anything else, or never. */
  identify(id: string | null | undefined, model: string | null | undefined): void;
  text(text: string, index?: number, logprobs?: Logprobs | null): void;
  reasoning(text: string, index?: number): void;
  /** Why the model does not answer. Nothing for none. */
  refusal(text: string): void;
  /** Every block of signed thinking, whole, at once: clients add the pieces of a list up in different ways. Nothing for none. */
  details(details: readonly ReasoningDetail[], index?: number): void;
  /** Gemini's signature of the text. */
  extra(extra: ExtraContent, index?: number): void;
  image(image: DrawnImage, index?: number): void;
  /** Begins a tool call and returns its number among the choice's calls. */
  toolCall(id: string, name: string, index?: number, extra?: ExtraContent): number;
  /** The next piece of a call's arguments; `call` as `toolCall` gave it. */
  toolArguments(call: number, text: string, index?: number): void;
  finish(reason: FinishReason, index?: number): void;
  /** On which tier the provider says that it serves, by its own name: said with each finish reason, and with the usage. */
  served(tier: unknown): void;
  /** The usage chunk, if asked for, and `[DONE]`. */
  end(usage: TokenUsage): void;
  /** True from the first content on: text, reasoning, a tool call, a finish reason. */
  started(): boolean;
  /** True where more than reasoning has come. */
  answered(): boolean;
  /** True once `[DONE]` was written. */
  finished(): boolean;
  /** Tokens by the length of what came. */
  estimate(): TokenUsage;
}

export function chunkStream(context: ReadContext, emit: Emit): ChunkStream {
  const asked = context.request.stream_options?.include_usage === true;
  const legacy = isLegacy(context.request);
  let id = `chatcmpl-${context.requestId}`;
  let model = context.target.model;
  let writer: ChunkWriter | null = null;
  const begun = new Set<number>();
  const calls = new Map<number, number>();
  let started = false;
  let finished = false;
  let characters = 0;
  let thought = 0;
  let drawn = false;
  let tier: ReturnType<typeof shownTier>;

  // The first chunk of a choice says its role.
  function open(index: number): ChunkWriter {
    writer ??= chunkWriter({ id, created: context.created, model }, asked);
    if (!begun.has(index)) {
      begun.add(index);
      emit(writer.delta(index, { role: "assistant", content: "" }));
    }
    started = true;
    return writer;
  }

  return {
    identify(givenId, givenModel) {
      if (writer) return;
      if (givenId) id = givenId;
      if (givenModel) model = givenModel;
    },
    text(text, index = 0, logprobs = null) {
      if (text === "" && !logprobs) return;
      characters += text.length;
      emit(open(index).delta(index, { content: text }, logprobs));
    },
    reasoning(text, index = 0) {
      if (text === "") return;
      thought += text.length;
      emit(open(index).delta(index, { reasoning_content: text }));
    },
    refusal(text) {
      if (text !== "") emit(open(0).delta(0, { refusal: text }));
    },
    details(details, index = 0) {
      if (details.length > 0) emit(open(index).delta(index, { reasoning_details: details }));
    },
    extra: (extra, index = 0) => emit(open(index).delta(index, { extra_content: extra })),
    image(image, index = 0) {
      drawn = true;
      emit(open(index).delta(index, { images: [image] }));
    },
    toolCall(callId, name, index = 0, extra) {
      const call = calls.get(index) ?? 0;
      calls.set(index, call + 1);
      characters += name.length + 8;
      const opening = { index: call, id: callId, type: "function" as const, function: { name, arguments: "" } };
      const delta = legacy
        ? { function_call: { name, arguments: "" } }
        : { tool_calls: [extra ? { ...opening, extra_content: extra } : opening] };
      if (!legacy || call === 0) emit(open(index).delta(index, delta));
      return call;
    },
    toolArguments(call, text, index = 0) {
      characters += text.length;
      if (text === "" || (legacy && call > 0)) return;
      const delta = legacy
        ? { function_call: { arguments: text } }
        : { tool_calls: [{ index: call, function: { arguments: text } }] };
      emit(open(index).delta(index, delta));
    },
    finish(reason, index = 0) {
      emit(open(index).finish(index, legacy && reason === "tool_calls" ? "function_call" : reason, tier));
    },
    served(name) {
      tier = shownTier(name) ?? tier;
    },
    end(usage) {
      if (finished) return;
      finished = true;
      const cost = context.cost(usage);
      writer ??= chunkWriter({ id, created: context.created, model }, asked);
      if (asked) emit(writer.usage(wireUsage(usage, cost), tier));
      emit(DONE);
    },
    started: () => started,
    answered: () => characters > 0 || drawn,
    finished: () => finished,
    estimate: () => estimateUsage(context.request, characters, thought),
  };
}
