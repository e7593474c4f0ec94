// How many tokens a prompt may have, before any provider counted it: four bytes of UTF-8 a token (four letters, or one and a third of a
// script that takes more), a few for each message's frame.
// Only reservations, limits and the choice of a candidate rest on it; what is charged is what the provider counted.
import { fields } from "#contract/json-object.ts";

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 4;
/** An image of ordinary size at OpenAI's and Anthropic's tile counts. */
const TOKENS_PER_IMAGE = 1_000;
/** What a wide image comes to where images are dear (Claude, GPT-5), and a page of a PDF where its text goes with its image. */
const MOST_PER_IMAGE = 5_000;
/** GPT-4o mini counts an image 33 times, and takes a thirty-third for a token. */
const MOST_PER_IMAGE_OF_4O_MINI = 50_000;
/** A page of a scan or with fonts has more; only a text without either has less. */
const BYTES_PER_PAGE = 8_000;
/** What OpenAI reads of a file that it keeps. */
const PAGES_OF_KEPT_FILE = 100;
/** Speech at 32 kbit/s, of which a second has ten tokens. */
const BYTES_PER_AUDIO_TOKEN = 400;
/** The same, uncompressed: 16 bits, 16,000 times a second. */
const BYTES_PER_WAV_TOKEN = 3_200;
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

/** The longest of its texts: each has to fit into a model's context by itself. */
export function longestEmbeddingTokens(input: unknown): number {
  if (!Array.isArray(input) || typeof input[0] === "number") return estimateEmbeddingTokens(input);
  return input.reduce((longest: number, text) => Math.max(longest, estimateEmbeddingTokens(text)), 0);
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
    tokens += typeof text === "string" ? textTokens(text) : estimateAttachment(part);
  }
  return tokens;
}

function estimateAttachment(part: Readonly<Record<string, unknown>>): number {
  const { file_data: file } = fields(part?.["file"]);
  if (typeof file === "string" && isText(file)) return bytesOf(file) / BYTES_PER_TOKEN;
  const audio = fields(part?.["input_audio"]);
  return audioTokens(audio, audio["format"] === "wav" ? BYTES_PER_WAV_TOKEN : BYTES_PER_AUDIO_TOKEN);
}

function audioTokens({ data }: Readonly<Record<string, unknown>>, bytesPerToken: number): number {
  return Math.max(TOKENS_PER_IMAGE, typeof data === "string" ? bytesOf(data) / bytesPerToken : 0);
}

/**
 * How many tokens more than `estimateChatTokens` says the images, PDFs and speech of a request may have: services differ by an order of magnitude in
 * what they make of one. For reservations; a request is not taken for too long for it.
 */
export function attachmentsAtMost(messages: unknown, model: string): number {
  const mostPerImage = /gpt-4o-mini/i.test(model) ? MOST_PER_IMAGE_OF_4O_MINI : MOST_PER_IMAGE;
  let tokens = 0;
  for (const message of Array.isArray(messages) ? messages : []) {
    const { content } = fields(message);
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      const { type, file, input_audio } = fields(part);
      const { file_data: data, file_id: id } = fields(file);
      if (type === "image_url") tokens += mostPerImage - TOKENS_PER_IMAGE;
      else if (type === "input_audio")
        tokens += audioTokens(fields(input_audio), BYTES_PER_AUDIO_TOKEN) - estimateAttachment(fields(part));
      else if (typeof data === "string" && !isText(data)) tokens += pagesOf(data) * MOST_PER_IMAGE;
      else if (id) tokens += PAGES_OF_KEPT_FILE * MOST_PER_IMAGE;
    }
  }
  return tokens;
}

// A data URL or bare base64.
function bytesOf(data: string): number {
  return (data.length - data.indexOf(",") - 1) * 0.75;
}

function pagesOf(data: string): number {
  return Math.ceil(bytesOf(data) / BYTES_PER_PAGE);
}

function isText(data: string): boolean {
  return data.startsWith("data:text/");
}

function characters(value: unknown, depth: number): number {
  if (typeof value === "string") return Buffer.byteLength(value) + 2;
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return 4;
  let sum = 2;
  for (const key in value) sum += key.length + 3 + characters((value as Record<string, unknown>)[key], depth + 1);
  return sum;
}
