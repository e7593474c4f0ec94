// How many tokens a prompt may have, before any provider counted it: four bytes of UTF-8 a token (four letters, or one and a third of a
// script that takes more), a few for each message's frame.
// Only reservations, limits and the choice of a candidate rest on it; what is charged is what the provider counted.

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 4;
/** An image of ordinary size at OpenAI's and Anthropic's tile counts. */
const TOKENS_PER_IMAGE = 1_000;
const MAX_DEPTH = 40;

/** Estimated prompt tokens of a chat completion request. */
export function estimateChatTokens(body: Readonly<Record<string, unknown>>): number {
  const messages = Array.isArray(body["messages"]) ? body["messages"] : [];
  let tokens = 3;
  for (const message of messages) tokens += TOKENS_PER_MESSAGE + estimateMessage(message);
  for (const key of ["tools", "functions", "response_format", "prediction"]) {
    if (body[key]) tokens += characters(body[key], 0) / BYTES_PER_TOKEN;
  }
  return Math.ceil(tokens);
}

/** Estimated tokens of an embeddings request's `input`. */
export function estimateEmbeddingTokens(input: unknown): number {
  if (typeof input === "string") return Math.ceil(textTokens(input));
  if (!Array.isArray(input)) return 0;
  let tokens = 0;
  for (const part of input) tokens += typeof part === "number" ? 1 : estimateEmbeddingTokens(part);
  return tokens;
}

function textTokens(text: string): number {
  return Buffer.byteLength(text) / BYTES_PER_TOKEN;
}

function estimateMessage(message: unknown): number {
  if (typeof message !== "object" || message === null) return 0;
  const { content, tool_calls, function_call, refusal, reasoning_content } = message as Record<string, unknown>;
  let tokens = tool_calls ? characters(tool_calls, 0) / BYTES_PER_TOKEN : 0;
  if (function_call) tokens += characters(function_call, 0) / BYTES_PER_TOKEN;
  if (typeof refusal === "string") tokens += textTokens(refusal);
  if (typeof reasoning_content === "string") tokens += textTokens(reasoning_content);
  if (typeof content === "string") return tokens + textTokens(content);
  if (!Array.isArray(content)) return tokens;
  for (const part of content as readonly Record<string, unknown>[]) {
    const text = part?.["text"] ?? part?.["refusal"];
    tokens += typeof text === "string" ? textTokens(text) : TOKENS_PER_IMAGE;
  }
  return tokens;
}

function characters(value: unknown, depth: number): number {
  if (typeof value === "string") return Buffer.byteLength(value) + 2;
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return 4;
  let sum = 2;
  for (const key in value) sum += key.length + 3 + characters((value as Record<string, unknown>)[key], depth + 1);
  return sum;
}
