// A conversation on its way to a service of OpenAI's format that did not have it from the beginning.
import type { AssistantMessage, Message, ToolMessage } from "#daemon/gateway/format/request.ts";
import type { Target } from "../adapter.ts";
import { isSigned, portableId, shortId } from "../tool-id.ts";
import { inTurns } from "./mistral-turns.ts";
import { isMistral, serviceOf } from "./services.ts";

/** Characters that OpenAI takes in the id of a tool call. */
const LONGEST_ID = 40;

interface Fit {
  readonly idOf: (id: string) => string;
  readonly narrow: boolean;
  readonly narrowest: boolean;
  /** It takes names of tools alone. */
  readonly nameless: boolean;
  readonly systemOnly: boolean;
  readonly wantsReasoning: boolean;
}

/**
 * A conversation that began at another provider, or passed through here: narrow services refuse its reasoning, every OpenAI wire the long
 * ids that carry Gemini's signatures, Mistral's all ids but its own, some the role `developer`, Mistral's models turns in another order than theirs. The
 * same array where there is nothing to change.
 */
export function portableMessages(messages: readonly Message[], target: Target): readonly Message[] {
  const { mistral, narrow, narrowest, systemOnly, wantsReasoning } = serviceOf(target);
  const strict = isMistral(target);
  const idOf = mistral ? shortId : portable;
  const fit: Fit = { idOf, narrow, narrowest, nameless: mistral, systemOnly: systemOnly || strict, wantsReasoning };
  let changed = false;
  const made = messages.map((message): Message => {
    const fitting =
      message.role === "tool"
        ? portableResult(message, fit)
        : portableAnswer(instructed(unnamed(message, fit), fit), fit);
    if (fitting !== message) changed = true;
    return fitting;
  });
  const taken = changed ? made : messages;
  return strict ? inTurns(taken) : taken;
}

// Takes anything: nobody has checked what goes to these wires.
function portable(id: string): string {
  return isSigned(id) ? portableId(id, LONGEST_ID) : id;
}

function portableResult(message: ToolMessage, { idOf }: Fit): Message {
  if (typeof message.tool_call_id !== "string") return message;
  const id = idOf(message.tool_call_id);
  return id === message.tool_call_id ? message : { ...message, tool_call_id: id };
}

function unnamed(message: Message, { nameless }: Fit): Message {
  if (!nameless || !Object.hasOwn(message, "name")) return message;
  const { name: _name, ...rest } = message as Message & { readonly name?: unknown };
  return rest as Message;
}

function instructed(message: Message, { systemOnly }: Fit): Message {
  return systemOnly && message.role === "developer" ? { ...message, role: "system" } : message;
}

function portableAnswer(message: Message, fit: Fit): Message {
  if (message.role !== "assistant") return message;
  if (fit.narrowest) return plainAnswer(message, fit);
  if (fit.narrow && uncalled.some((name) => isEmpty(message[name]))) {
    const kept = Object.entries(message).filter(
      ([name, value]) => !uncalled.some((one) => one === name && isEmpty(value)),
    );
    return portableAnswer(Object.fromEntries(kept) as unknown as Message, fit);
  }
  const { reasoning, reasoning_content: said, reasoning_details: details, extra_content: extra, images } = message;
  // Given out beside the server's own `reasoning`, and not the server's.
  const doubled = typeof said === "string" && said === reasoning && !fit.wantsReasoning;
  const foreign = doubled || (fit.narrow && [reasoning, said, details, extra, images].some((one) => one !== undefined));
  const given = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  if (given.length === 0 && !foreign) return message;
  const calls = given.map((call) => portableCall(call, fit));
  const strange = calls.some((call, index) => call !== given[index]);
  if (!strange && !foreign) return message;
  const called = strange && { tool_calls: calls };
  const { reasoning_content: _s, ...undoubled } = message;
  if (!fit.narrow) return { ...(doubled ? undoubled : message), ...called };
  const { reasoning: _r, reasoning_details: _d, extra_content: _e, images: _i, refusal, ...rest } = undoubled;
  return { ...rest, ...(refusal ? { refusal } : {}), ...called };
}

/** Members that are refused where they say that nothing was called. */
const uncalled = ["tool_calls", "function_call"] as const;

function isEmpty(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

/** What Groq's and Mistral's know of an assistant's message and of its calls. */
const known = new Set(["role", "content", "name", "refusal", "tool_calls", "function_call", "prefix"]);

function plainAnswer(message: AssistantMessage, fit: Fit): Message {
  const given = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  const calls = given.map((call) => plainCall(call, fit));
  const members = Object.entries(message);
  const kept = members.filter(([name, value]) => known.has(name) && (!isEmpty(value) || name === "content"));
  if (kept.length === members.length && calls.every((call, index) => call === given[index])) return message;
  return { ...Object.fromEntries(kept), ...(calls.length > 0 && { tool_calls: calls }) } as unknown as Message;
}

function plainCall(call: Call, { idOf }: Fit): Call {
  if (typeof call?.id !== "string" || call.type !== "function" || !call.function) return call;
  const { name, arguments: args } = call.function;
  const made = { id: idOf(call.id), type: call.type, function: { name, arguments: args } };
  const plain = Object.keys(call).length === 3 && Object.keys(call.function).length === 2;
  return plain && made.id === call.id ? call : made;
}

type Call = NonNullable<AssistantMessage["tool_calls"]>[number];

function portableCall(call: Call, { idOf, narrow }: Fit): Call {
  if (typeof call?.id !== "string") return call;
  const id = idOf(call.id);
  if (narrow && "extra_content" in call) {
    const { extra_content: _extra, ...rest } = call;
    return { ...rest, id };
  }
  return id === call.id ? call : { ...call, id };
}
