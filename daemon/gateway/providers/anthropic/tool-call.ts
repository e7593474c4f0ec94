// A whole call of a tool as Claude gives it, at Anthropic or in Converse's form.
import { string } from "#contract/json-object.ts";
import type { ToolCall } from "#daemon/gateway/format/completion.ts";
import { freshId } from "../tool-id.ts";
import type { ReadContext } from "../wire.ts";
import { ownInput } from "./member-names.ts";

export function toolCallOf(id: unknown, called: unknown, input: unknown, { prepared }: ReadContext): ToolCall {
  const name = string(called);
  const args = JSON.stringify(ownInput(input ?? {}, prepared.memberNames?.get(name)));
  return { id: string(id) || freshId(), type: "function", function: { name, arguments: args } };
}
