// Claude's thinking on its way through OpenAI's format and back, on the Messages API and on Bedrock alike. A turn that calls tools must
// come back with its thinking, signed and unchanged. It goes to the client as `reasoning_details` (OpenRouter's form, which others took
// over); what a client does not send back is recalled by the id of the turn's tool call.
import { fields, list, string } from "#contract/json-object.ts";
import type { ReasoningDetail } from "#daemon/gateway/format/completion.ts";
import type { AssistantMessage } from "#daemon/gateway/format/request.ts";
import type { ThoughtMemory } from "./memory.ts";

export const CLAUDE = "anthropic-claude-v1";
/** OpenAI's models on Bedrock: encrypted from beginning to end. */
export const CONVERSE = "amazon-converse-v1";

/** A thinking block that was signed. `index`: its place among the blocks of its turn. */
export function signedThought(text: string, signature: string, index: number, format = CLAUDE): ReasoningDetail {
  return { type: "reasoning.text", text, signature, format, index };
}

/** A thinking block that the service has encrypted. */
export function redactedThought(data: string, index: number, format = CLAUDE): ReasoningDetail {
  return { type: "reasoning.encrypted", data, format, index };
}

export interface ClaudeThoughts {
  /** Of one turn, in order; none where neither the client nor the memory has them. */
  of(message: AssistantMessage): readonly ReasoningDetail[];
}

export function claudeThoughts(memory: ThoughtMemory, caller: string, format = CLAUDE): ClaudeThoughts {
  return {
    of(message) {
      // The memory first: it has all of them, whatever the client made of the stream.
      for (const { id } of message.tool_calls ?? []) {
        const known = memory.recall(caller, id);
        if (known !== undefined) return detailsIn(JSON.parse(known), format);
      }
      return detailsIn(message.reasoning_details, format);
    },
  };
}

/** Remembers a turn's thinking by each of its calls. A call without any has none, whatever an earlier one of its id had. */
export function keepThoughts(
  memory: ThoughtMemory,
  caller: string,
  ids: readonly string[],
  details: readonly ReasoningDetail[],
): void {
  const text = JSON.stringify(details);
  for (const id of ids)
    if (details.length > 0 || memory.recall(caller, id) !== undefined) memory.keep(caller, id, text);
}

// A client's word: other vendors' reasoning and what is not whole is left out.
function detailsIn(value: unknown, format: string): ReasoningDetail[] {
  return list(value).flatMap((one, place): ReasoningDetail[] => {
    const detail = fields(one);
    if (detail["format"] !== format) return [];
    const index = Number.isSafeInteger(detail["index"]) ? Number(detail["index"]) : place;
    const signature = string(detail["signature"]);
    if (detail["type"] === "reasoning.text" && signature !== "") {
      return [signedThought(string(detail["text"]), signature, index, format)];
    }
    const data = string(detail["data"]);
    return detail["type"] === "reasoning.encrypted" && data !== "" ? [redactedThought(data, index, format)] : [];
  });
}

/** A turn's blocks with its thinking at the places where it stood; never last, since a turn may not end in thinking. */
export function woven<Block>(
  blocks: readonly Block[],
  details: readonly ReasoningDetail[],
  blockOf: (detail: ReasoningDetail) => Block,
): Block[] {
  if (blocks.length === 0) return [];
  const last = blocks.length - 1;
  const sorted = details.toSorted((a, b) => a.index - b.index);
  let next = 0;
  const made: Block[] = [];
  for (const [at, block] of blocks.entries()) {
    for (let detail = sorted[next]; detail && (detail.index <= made.length || at === last); detail = sorted[++next])
      made.push(blockOf(detail));
    made.push(block);
  }
  return made;
}

/** One turn of a conversation, as far as its thinking matters. */
export interface TurnKind {
  readonly role: "user" | "assistant" | "system";
  /** For each block: thinking, a call, a call's result, or anything else. */
  readonly blocks: readonly ("thinking" | "call" | "result" | "other")[];
}

/** True where the request goes on with calls or an answer that began without thinking: a model that thinks on a budget refuses that. */
export function lacksThinking(turns: readonly TurnKind[]): boolean {
  let at = turns.findLastIndex(({ role }) => role === "assistant");
  const begun = at >= 0 && at === turns.length - 1;
  if (!begun && !turns[at]?.blocks.includes("call")) return false;
  while (turns[at - 1]?.blocks.includes("result") && turns[at - 2]) at -= 2;
  return turns[at]?.blocks[0] !== "thinking";
}
