// Gemini's function calls as OpenAI's: the wire's id where it has one, else one of ours that carries the thought signature.
import { fields, string } from "#contract/json-object.ts";
import type { ExtraContent } from "#daemon/gateway/format/completion.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { freshId, signedId } from "../tool-id.ts";
import type { ReadContext } from "../wire.ts";

/** `part` is the content part around the call: the signature stands beside it. `extra` where the id does not carry it. */
export function callId(
  part: Record<string, unknown>,
  call: Record<string, unknown>,
  context: ReadContext,
  signatures: ThoughtMemory,
): { readonly id: string; readonly extra?: ExtraContent } {
  const signature = signatureIn(part);
  const id = string(call["id"]);
  if (id === "") return { id: signature === "" ? freshId() : signedId(signature) };
  // One without a signature has none, whatever an earlier call of its id had.
  if (signature !== "" || signatures.recall(context.caller, id)) signatures.keep(context.caller, id, signature);
  if (signature === "") return { id };
  return { id, extra: signed(signature) };
}

/** Empty where the part has none. */
export function signatureIn(part: Record<string, unknown>): string {
  return string(part["thoughtSignature"]);
}

export function signed(signature: string): ExtraContent {
  return { google: { thought_signature: signature } };
}

/** What a client sent back in `extra_content`. */
export function signatureBack(extra: unknown): string | undefined {
  return string(fields(fields(extra)["google"])["thought_signature"]) || undefined;
}

/** The name that the caller knows the called function by. */
export function calledName(name: unknown, { prepared }: ReadContext): string {
  const said = string(name);
  return prepared.toolNames?.get(said) ?? said;
}

/** The arguments as JSON text. */
export function callArguments(args: unknown): string {
  return typeof args === "string" ? args : JSON.stringify(args ?? {});
}
