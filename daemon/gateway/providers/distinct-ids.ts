// Claude refuses two calls of one id, Gemini would mistake their results, and some servers give theirs anew in each turn (`call_0`): a
// conversation that began at such a one goes on with ids that differ.
import type { AssistantMessage, Message } from "#daemon/gateway/format/request.ts";

/** The messages with every call's id its own, results following; the same array where they are. */
export function distinctIds(messages: readonly Message[]): readonly Message[] {
  const seen = new Set<string>();
  const copies = new Map<string, number>();
  /** What the calls of the newest turn with an id are called, and how many results have come. */
  const open = new Map<string, { readonly names: string[]; answered: number }>();
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
    for (const { id } of given) open.set(id, { names: [], answered: 0 });
    const calls = given.map((call) => {
      const id = own(call.id);
      seen.add(id);
      open.get(call.id)?.names.push(id);
      return id === call.id ? call : { ...call, id };
    });
    return calls.every((call, index) => call === given[index]) ? message : { ...message, tool_calls: calls };
  }

  // A result beyond the last call of its id is the last one's.
  function nextOf(id: string): string {
    const calls = open.get(id);
    if (!calls) return id;
    const at = Math.min(calls.answered++, calls.names.length - 1);
    return calls.names[at] ?? id;
  }

  const made = messages.map((message): Message => {
    if (message.role === "assistant") return answer(message);
    if (message.role !== "tool") return message;
    const id = nextOf(message.tool_call_id);
    return id === message.tool_call_id ? message : { ...message, tool_call_id: id };
  });
  return changed ? made : messages;
}
