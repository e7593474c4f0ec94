// The order of turns that Mistral's models take, by their own tokenizer and their templates: they refuse what the user says after a tool's result, a
// system's word after an answer, and an answer that is empty.
import type { Message } from "#daemon/gateway/format/request.ts";
import { CONTINUING } from "../content.ts";

/** The conversation in that order; the same array where it has it. Takes anything: nobody has checked what goes to these wires. */
export function inTurns(messages: readonly Message[]): readonly Message[] {
  const led = messages.some(interrupts)
    ? [...messages.filter(isInstruction), ...messages.filter((one) => !isInstruction(one))]
    : messages;
  if (!led.some((one, at) => goesOn(one, at, led) || isEmpty(one))) return led;
  return led.flatMap((one, at): Message[] => {
    if (isEmpty(one)) return [{ ...one, content: CONTINUING } as Message];
    return goesOn(one, at, led) ? [bridge, one] : [one];
  });
}

const bridge: Message = { role: "assistant", content: CONTINUING };

function goesOn({ role }: Message, at: number, messages: readonly Message[]): boolean {
  return role === "user" && messages[at - 1]?.role === "tool";
}

function interrupts(message: Message, at: number, messages: readonly Message[]): boolean {
  const before = messages[at - 1]?.role;
  return isInstruction(message) && (before === "assistant" || before === "tool");
}

function isInstruction({ role }: Message): boolean {
  return role === "system";
}

function isEmpty(message: Message): boolean {
  if (message.role !== "assistant" || message.content?.length || message.function_call) return false;
  return !message.tool_calls?.length;
}
