// Claude refuses two calls of one id, and some servers give theirs anew in each turn (`call_0`): a conversation that began at such a one goes
// on with ids that differ.
import type { AssistantMessage, Message } from "#daemon/gateway/format/request.ts";

/** The messages with every call's id its own, results following; the same array where they are. */
export function distinctIds(messages: readonly Message[]): readonly Message[] {
  const seen = new Set<string>();
  const copies = new Map<string, number>();
  /** What the calls of the newest turn with an id are called, until their results have come. */
  const open = new Map<string, string[]>();
  let changed = false;

  function own(id: string): string {
    if (!seen.has(id)) return id;
    changed = true;
    let copy = (copies.get(id) ?? 1) + 1;
    while (seen.has(`${id}-${copy}`)) copy++;
    copies.set(id, copy);
    return `${id}-${copy}`;
  }

  function answer(message: AssistantMessage): Message {
    const given = message.tool_calls ?? [];
    for (const { id } of given) open.set(id, []);
    const calls = given.map((call) => {
      const id = own(call.id);
      seen.add(id);
      open.get(call.id)?.push(id);
      return id === call.id ? call : { ...call, id };
    });
    return calls.every((call, index) => call === given[index]) ? message : { ...message, tool_calls: calls };
  }

  const made = messages.map((message): Message => {
    if (message.role === "assistant") return answer(message);
    if (message.role !== "tool") return message;
    const names = open.get(message.tool_call_id) ?? [];
    const id = (names.length > 1 ? names.shift() : names[0]) ?? message.tool_call_id;
    return id === message.tool_call_id ? message : { ...message, tool_call_id: id };
  });
  return changed ? made : messages;
}
