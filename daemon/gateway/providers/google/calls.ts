// Gemini's function calls as OpenAI's: the wire's id where it has one, else one of ours that carries the thought signature.
import { freshId, signedId } from "../tool-id.ts";
import type { SignatureStore } from "./signatures.ts";

/** `part` is the content part around the call: the signature stands beside it. */
export function callId(
  part: Record<string, unknown>,
  call: Record<string, unknown>,
  signatures: SignatureStore,
): string {
  const signature = typeof part["thoughtSignature"] === "string" ? part["thoughtSignature"] : "";
  const id = typeof call["id"] === "string" ? call["id"] : "";
  if (id !== "") {
    if (signature !== "") signatures.set(id, signature);
    return id;
  }
  return signature === "" ? freshId() : signedId(signature);
}

/** The arguments as JSON text. */
export function callArguments(args: unknown): string {
  return typeof args === "string" ? args : JSON.stringify(args ?? {});
}
