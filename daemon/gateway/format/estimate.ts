// Token counts where no provider has counted: for reservations before dispatch, for the sandbox, and for streams that broke off.
// About four characters make a token of English; text beyond Latin scripts takes more, so those characters count whole.
import type { ChatRequest, Content } from "./request.ts";
import type { TokenUsage } from "./usage.ts";

/** Tokens of a text, rounded up; 0 for none. */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2fff) wide++;
  return wide + Math.ceil((text.length - wide) / 4);
}

/** Tokens of a prompt: its texts, tool definitions, and OpenAI's constant for each message and image. */
export function estimatePrompt(request: ChatRequest): number {
  let tokens = 3;
  for (const message of request.messages) {
    tokens += 4 + contentTokens(message.content);
    if (message.role === "assistant" && message.tool_calls)
      tokens += estimateTokens(JSON.stringify(message.tool_calls));
  }
  for (const definitions of [request.tools, request.functions, request.response_format]) {
    if (definitions) tokens += estimateTokens(JSON.stringify(definitions));
  }
  return tokens;
}

/** Of an answer that nobody counted, by its characters: the same whole and streamed. */
export function estimateUsage(request: ChatRequest, said: number, thought = 0): TokenUsage {
  return {
    input: estimatePrompt(request),
    cached: 0,
    cache_write: 0,
    output: Math.ceil(said / 4),
    reasoning: Math.ceil(thought / 4),
    estimated: true,
  };
}

function contentTokens(content: Content | null | undefined): number {
  if (typeof content === "string") return estimateTokens(content);
  if (!Array.isArray(content)) return 0;
  let tokens = 0;
  for (const part of content) {
    if (typeof part?.text === "string") tokens += estimateTokens(part.text);
    else if (part?.type === "image_url") tokens += part.image_url?.detail === "low" ? 85 : 765;
    else tokens += 256;
  }
  return tokens;
}
