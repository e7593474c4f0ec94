// Newer models of several vendors go on with no answer that is begun for them (a prefill): they refuse a conversation that ends with the
// assistant's turn. OpenAI's answer it with another turn.
import type { ChatRequest, Message } from "#daemon/gateway/format/request.ts";
import type { Unsupported } from "./adapter.ts";
import { partsOf } from "./content.ts";

/** The turn that such a model refuses, if the request ends with one. */
export function begunAnswer({ messages }: ChatRequest): Unsupported[] {
  const last = messages.findLastIndex((one) => one.role !== "system" && one.role !== "developer" && !isBlank(one));
  if (messages[last]?.role !== "assistant") return [];
  const reason = "this model goes on with no answer that is begun for it: a conversation ends with a user's turn";
  return [{ param: `messages[${last}]`, reason, droppable: false }];
}

function isBlank(message: Message): boolean {
  if (message.role === "tool" || message.role === "function") return false;
  if (message.role === "assistant" && (message.tool_calls?.length || message.function_call || message.refusal)) {
    return false;
  }
  return partsOf(message.content).every((part) => part.type === "text" && part.text.trim() === "");
}
