// Log probabilities where servers of OpenAI's format leave its specification: TGI and Ollama give a token no bytes, others no alternatives,
// or neither of the two lists.
import { fields, isObject, list, string } from "#contract/json-object.ts";

/** OpenAI's word for a token that is very unlikely: how much, nobody says. */
export const UNLIKELY = -9999;

export function soundLogprobs(logprobs: unknown): boolean {
  if (logprobs === null) return true;
  const { content, refusal } = fields(logprobs);
  return areSound(content) && areSound(refusal);
}

function areSound(entries: unknown): boolean {
  return entries === null || (Array.isArray(entries) && entries.every(isSoundEntry));
}

function isSoundEntry(entry: unknown): boolean {
  const { top_logprobs: alternatives } = fields(entry);
  return isSoundToken(entry) && Array.isArray(alternatives) && alternatives.every(isSoundToken);
}

function isSoundToken(given: unknown): boolean {
  const { token, logprob, bytes } = fields(given);
  return typeof token === "string" && typeof logprob === "number" && (bytes === null || areBytes(bytes));
}

function areBytes(bytes: unknown): boolean {
  return Array.isArray(bytes) && bytes.every(Number.isInteger);
}

export function mendedLogprobs(logprobs: unknown): unknown {
  if (!isObject(logprobs)) return null;
  const { content, refusal } = logprobs;
  return { ...logprobs, content: mendedEntries(content), refusal: mendedEntries(refusal) };
}

function mendedEntries(entries: unknown): unknown {
  if (!Array.isArray(entries)) return null;
  return entries.map((entry) => ({
    ...mendedToken(entry),
    top_logprobs: list(fields(entry)["top_logprobs"]).map(mendedToken),
  }));
}

function mendedToken(given: unknown): object {
  const { token, logprob, bytes } = fields(given);
  return {
    ...fields(given),
    token: string(token),
    logprob: typeof logprob === "number" ? logprob : UNLIKELY,
    bytes: areBytes(bytes) ? bytes : null,
  };
}
