// Embeddings without a model: unit vectors drawn from a hash of the text. The same text has the same vector; different texts are
// nearly orthogonal. Enough to exercise a client and a vector store; means nothing.
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import type { EmbeddingRequest } from "#daemon/gateway/providers/adapter.ts";
import { seededRandom } from "./random.ts";

const DIMENSIONS = 256;
export const MAX_DIMENSIONS = 4096;
/** Of all vectors of an answer: 80 MB of JSON. */
export const MAX_NUMBERS = 4_194_304;

export function sizeOf(request: EmbeddingRequest): { readonly vectors: number; readonly dimensions: number } {
  return { vectors: inputs(request.input).length, dimensions: request.dimensions ?? DIMENSIONS };
}

/** One vector after the other, in OpenAI's form. */
export function* embed(request: EmbeddingRequest, seed: number): Generator<{ embedding: object; tokens: number }> {
  const { dimensions } = sizeOf(request);
  for (const [index, input] of inputs(request.input).entries()) {
    const tokens = estimateEmbeddingTokens(input);
    const vector = unitVector(`${seed}\n${typeof input === "string" ? input : input.join(" ")}`, dimensions);
    const embedding =
      request.encoding_format === "base64" ? Buffer.from(vector.buffer).toString("base64") : [...vector];
    yield { embedding: { object: "embedding", index, embedding }, tokens };
  }
}

function inputs(input: EmbeddingRequest["input"]): readonly (string | readonly number[])[] {
  if (typeof input === "string") return [input];
  return typeof input[0] === "number"
    ? [input as readonly number[]]
    : (input as readonly (string | readonly number[])[]);
}

function unitVector(seed: string, size: number): Float32Array<ArrayBuffer> {
  const random = seededRandom(seed);
  const vector = new Float32Array(size);
  let squares = 0;
  for (let i = 0; i < size; i++) {
    const component = random.below(2_000_001) / 1_000_000 - 1;
    vector[i] = component;
    squares += component * component;
  }
  const length = Math.sqrt(squares) || 1;
  for (let i = 0; i < size; i++) vector[i] = (vector[i] ?? 0) / length;
  return vector;
}
