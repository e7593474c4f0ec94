// Chunks of a translated or simulated stream as server-sent events (WHATWG HTML, 9.2). One writer per stream: id, model and time are
// the same in every chunk, so the text around the delta is made once.
import type { ChatChunk, Delta, FinishReason, Logprobs } from "./completion.ts";
import type { ShownTier, WireUsage } from "./usage.ts";

export const DONE = "data: [DONE]\n\n";

/** An error inside a stream that has begun. The stream is closed after it, without `[DONE]`. */
export function errorEvent(body: string): string {
  return `data: ${body}\n\n`;
}

export interface ChunkWriter {
  delta(index: number, delta: Delta, logprobs?: Logprobs | null): string;
  finish(index: number, reason: FinishReason, tier?: ShownTier): string;
  /** The usage chunk: `choices` is empty. */
  usage(usage: WireUsage, tier?: ShownTier): string;
}

/** With `usageField`, every other chunk carries `usage: null`, as OpenAI's do when the client asked for usage. */
export function chunkWriter(head: Pick<ChatChunk, "id" | "created" | "model">, usageField: boolean): ChunkWriter {
  const open = `data: {"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},"choices":[`;
  const close = usageField ? '],"usage":null}\n\n' : "]}\n\n";
  return {
    delta: (index, delta, logprobs) =>
      `${open}{"index":${index},"delta":${JSON.stringify(delta)},"logprobs":${logprobs ? JSON.stringify(logprobs) : "null"},"finish_reason":null}${close}`,
    finish: (index, reason, tier) =>
      `${open}{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${reason}"}]${served(tier)}${close.slice(1)}`,
    usage: (usage, tier) => `${open}]${served(tier)},"usage":${JSON.stringify(usage)}}\n\n`,
  };
}

function served(tier: ShownTier | undefined): string {
  return tier ? `,"service_tier":"${tier}"` : "";
}
