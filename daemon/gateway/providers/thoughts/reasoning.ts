// The reasoning of servers of OpenAI's format that want it back beside the calls that it led to: DeepSeek and Moonshot refuse a tool loop
// without it, and most clients do not send it. Their ids (`call_0`, `functions.search:1`) are used again in the next conversation, so it is
// found by all that was said before: no conversation is given what another one thought.
import { createHash } from "node:crypto";
import type { AssistantMessage, Message } from "#daemon/gateway/format/request.ts";
import type { Target } from "../adapter.ts";
import type { ReadContext } from "../wire.ts";
import type { ThoughtMemory } from "./memory.ts";

/** Characters; more is no reasoning that a loop could go on with. */
const LONGEST = 1024 * 1024;
const MOST_CALLS = 1000;

/** Remembers what a server thought before it made these calls. */
export function keepReasoning(memory: ThoughtMemory, context: ReadContext, ids: readonly string[], said: string): void {
  if (said === "" || said.length > LONGEST || ids.length === 0) return;
  const { request, caller, target } = context;
  const conversation = conversationOf();
  for (const message of request.messages) conversation.add(message);
  memory.keep(caller, keyOf(target), "");
  memory.keep(caller, keyOf(target, conversation.with(ids)), said);
}

/** What one choice of a stream thinks, and the calls that it then makes. */
export interface StreamedReasoning {
  add(said: string): void;
  called(ids: readonly string[]): void;
  /** At the stream's end. */
  keep(memory: ThoughtMemory, context: ReadContext): void;
}

export function streamedReasoning(): StreamedReasoning {
  let thought = "";
  const calls = new Set<string>();
  return {
    add(said) {
      if (thought.length <= LONGEST) thought += said;
    },
    called(ids) {
      for (const id of ids) if (calls.size < MOST_CALLS) calls.add(id);
    },
    keep: (memory, context) => keepReasoning(memory, context, [...calls], thought),
  };
}

/** The messages with the reasoning that this server gave and the client left out; the same array where there is none. */
export function withReasoning(
  memory: ThoughtMemory,
  caller: string,
  target: Target,
  messages: readonly Message[],
): readonly Message[] {
  if (memory.recall(caller, keyOf(target)) === undefined) return messages;
  const conversation = conversationOf();
  let changed = false;
  const made = messages.map((message) => {
    const ids = isBare(message) ? callIds(message) : [];
    const said = ids.length > 0 ? memory.recall(caller, keyOf(target, conversation.with(ids))) : undefined;
    conversation.add(message);
    if (said === undefined) return message;
    changed = true;
    return { ...message, reasoning_content: said } as Message;
  });
  return changed ? made : messages;
}

/** An assistant's calls without what was thought before them. Takes anything: nobody has checked what goes to these wires. */
function isBare(message: Message): message is AssistantMessage {
  return lacksContent(message) && !message.reasoning;
}

/** Whatever another server may have called it. */
export function lacksContent(message: Message): message is AssistantMessage {
  return message.role === "assistant" && callIds(message).length > 0 && !message.reasoning_content;
}

export function callIds(message: { readonly tool_calls?: unknown }): string[] {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  return calls.flatMap((call) => (typeof call?.id === "string" && call.id !== "" ? [call.id] : []));
}

function keyOf({ provider }: Target, place = ""): string {
  return `${provider}\0${place}`;
}

function conversationOf() {
  const hash = createHash("sha256");
  return {
    add(message: Message): void {
      const { role, content, tool_call_id: answers } = message as Message & { readonly tool_call_id?: unknown };
      hash.update(JSON.stringify([role, content || null, answers ?? null, callIds(message as AssistantMessage)]));
    },
    with: (ids: readonly string[]) => hash.copy().update(JSON.stringify(ids)).digest("base64url"),
  };
}
