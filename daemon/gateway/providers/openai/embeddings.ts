// OpenAI's embeddings: the client's bytes go on with the model's name exchanged, the vendor's come back with `cost_usd` put into the usage;
// written anew only where an imitation left out what the specification requires.
import { fields, list, string } from "#contract/json-object.ts";
import { forwardBody } from "#daemon/gateway/format/forward.ts";
import { noUsage, promptTokens, type TokenUsage, usageFromWire } from "#daemon/gateway/format/usage.ts";
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import type { AttemptOptions, EmbeddingCall, Target, WholeBody } from "../adapter.ts";
import { readAnswer, spliceCost } from "../cost.ts";
import { noAnswer, UpstreamError } from "../failure.ts";
import { secretsOf } from "../secrets.ts";
import type { Additions } from "./additions.ts";
import { type Fields, isWhole } from "./conform.ts";
import { streamFailure } from "./errors.ts";
import { serviceOf } from "./services.ts";

export function embeddingBody(call: EmbeddingCall, target: Target, given: Additions): Buffer | string {
  const { request, user, raw } = call;
  const changes: Record<string, unknown> = {};
  if (request.model !== target.model) changes["model"] = target.model;
  const { mistral, bytes } = serviceOf(target);
  if (bytes && request.encoding_format) changes["encoding_format"] = undefined;
  if (mistral) changes["user"] = undefined;
  else if (user !== null && request.user !== user) changes["user"] = given.user ? user : undefined;
  if (request.drop_unsupported !== undefined) changes["drop_unsupported"] = undefined;
  return forwardBody(raw, request, changes);
}

/** Throws UpstreamError for what are no embeddings. */
export function readEmbeddings(
  body: Buffer,
  { request }: EmbeddingCall,
  target: Target,
  costOf: AttemptOptions["cost"],
): { readonly body: WholeBody; readonly usage: TokenUsage } {
  const parsed = readAnswer(body);
  const { error, data: given, usage: shown } = parsed.answer;
  if (error) throw new UpstreamError(streamFailure(error, secretsOf(target)));
  if (!Array.isArray(given) || given.length === 0 || !given.every(isEmbedding)) throw noAnswer("has no embeddings");
  const counted = usageFromWire({ completion_tokens: 0, ...fields(shown) });
  const usage = counted ?? { ...noUsage, input: estimateEmbeddingTokens(request.input), estimated: true };
  const cost = costOf(usage);
  const encoded = request.encoding_format === "base64";
  const { bytes } = serviceOf(target);
  const data = bytes ? given.map(unpacked) : given;
  const sound = counted && !bytes && hasSoundHead(parsed.answer) && data.every((one, at) => isSound(one, at, encoded));
  const spliced = sound ? spliceCost(parsed, cost) : null;
  if (spliced) return { body: spliced, usage };
  const vectors = inOrder(data.map((one) => mended(one, encoded)));
  const answer = { ...mendedHead(parsed.answer, target), data: vectors, usage: shownUsage(usage, cost) };
  return { body: Buffer.from(JSON.stringify(answer)), usage };
}

function isEmbedding(one: unknown): one is Fields {
  const { embedding } = fields(one);
  return typeof embedding === "string" || Array.isArray(embedding);
}

function hasSoundHead({ object, model, usage }: Fields): boolean {
  const { prompt_tokens, total_tokens } = fields(usage);
  return object === "list" && typeof model === "string" && isWhole(prompt_tokens) && isWhole(total_tokens);
}

function mendedHead(answer: Fields, target: Target): Fields {
  return { ...answer, object: "list", model: string(answer["model"]) || target.model };
}

// Servers count nothing, or the total alone (Voyage): the specification wants both, and whoever pays wants to know.
function shownUsage(usage: TokenUsage, cost: number | null | undefined): Fields {
  const tokens = promptTokens(usage);
  return { prompt_tokens: tokens, total_tokens: tokens, ...(cost === undefined ? {} : { cost_usd: cost }) };
}

function isSound({ object, index, embedding }: Fields, at: number, encoded: boolean): boolean {
  return object === "embedding" && index === at && typeof embedding === (encoded ? "string" : "object");
}

// Ollama, LM Studio, Mistral and others give numbers to who asks for base64, as OpenAI's own client for Node does by default. For years it
// took a quarter as many zeros out of them. Who asks for numbers decodes nothing.
function mended(one: Fields, encoded: boolean): Fields {
  const { embedding } = one;
  if (encoded === (typeof embedding === "string")) return { ...one, object: "embedding" };
  return { ...one, object: "embedding", embedding: encoded ? base64Of(list(embedding)) : numbersOf(string(embedding)) };
}

function unpacked(one: Fields): Fields {
  const { embedding } = one;
  return typeof embedding === "string"
    ? { ...one, embedding: [...new Int8Array(Buffer.from(embedding, "base64"))] }
    : one;
}

// Clients take the first for the first input's, whatever its index is. Where two have one index (servers are known to say 0 of each), it says nothing.
function inOrder(vectors: readonly Fields[]): Fields[] {
  const indexes = vectors.map(({ index }, at) => (isWhole(index) ? Number(index) : at));
  const places = new Set(indexes).size === vectors.length ? indexes : [...vectors.keys()];
  return vectors
    .map((one, at) => ({ one, index: places[at] ?? at }))
    .sort((a, b) => a.index - b.index)
    .map(({ one, index }) => ({ ...one, index }));
}

/** Floats of 32 bits, the lowest byte first. */
function base64Of(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}

function numbersOf(base64: string): number[] | string {
  const bytes = new Uint8Array(Buffer.from(base64, "base64"));
  return bytes.length % Float32Array.BYTES_PER_ELEMENT === 0 ? [...new Float32Array(bytes.buffer)] : base64;
}
