// The deprecated `functions`, `function_call` and role `function` in their present form (tools, tool_choice, tool messages), so that only
// one form has to be translated. Answers to such requests go back in the old form: see `isLegacy`.
import type { AssistantMessage, ChatRequest, Message, ToolChoice } from "./request.ts";

/** True where the caller speaks of functions and not of tools: it expects `function_call` in the answer. */
export function isLegacy(request: ChatRequest): boolean {
  return Boolean(request.functions?.length) && !request.tools?.length;
}

/** The request without deprecated forms; the same object where there are none. */
export function modern(request: ChatRequest): ChatRequest {
  const old = request.messages.some(
    (one) => one.role === "function" || (one.role === "assistant" && one.function_call),
  );
  if (!old && !request.functions && !request.function_call) return request;
  const { functions, function_call: call, ...rest } = request;
  const tools = [
    ...(request.tools ?? []),
    ...(functions ?? []).map((definition) => ({ type: "function" as const, function: definition })),
  ];
  const choice: ToolChoice | null | undefined =
    typeof call === "object" && call
      ? { type: "function", function: { name: call.name } }
      : (call ?? request.tool_choice);
  return {
    ...rest,
    messages: old ? modernMessages(request.messages) : request.messages,
    ...(tools.length > 0 ? { tools } : {}),
    ...(tools.length > 0 && choice ? { tool_choice: choice } : {}),
  };
}

// The old form has no ids: a function's result answers the call before it.
function modernMessages(messages: readonly Message[]): Message[] {
  let last = "";
  return messages.map((message, index): Message => {
    if (message.role === "assistant" && message.function_call) {
      last = `call_${index}`;
      const { function_call: call, ...rest } = message;
      const made = { id: last, type: "function" as const, function: call };
      return { ...rest, tool_calls: [...(message.tool_calls ?? []), made] } as AssistantMessage;
    }
    if (message.role === "function") {
      if (last) return { role: "tool", tool_call_id: last, content: message.content ?? "" };
      return { role: "user", content: `${message.name}: ${message.content ?? ""}` };
    }
    return message;
  });
}
