// Anthropic's whole answer in OpenAI's form. Blocks of server-side tools (web search, code execution, MCP) are its own business: they
// are not shown as tool calls for the client.
import { fields, list, string } from "#contract/json-object.ts";
import type { ReasoningDetail, ToolCall } from "#daemon/gateway/format/completion.ts";
import { parseExact } from "#daemon/gateway/format/exact-json.ts";
import { completionBody, estimatedUsage } from "../answer.ts";
import { parseAnswer } from "../cost.ts";
import { noAnswer, UpstreamError } from "../failure.ts";
import { keepThoughts, redactedThought, signedThought } from "../thoughts/claude.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { ReadContext } from "../wire.ts";
import { anthropicError } from "./errors.ts";
import { toolCallOf } from "./tool-call.ts";
import { anthropicFinish, anthropicUsage, refusalIn } from "./usage.ts";

/** Throws UpstreamError for what is no message. */
export function readMessage(body: Buffer, context: ReadContext, thoughts: ThoughtMemory) {
  const message = parseAnswer(body, parseExact);
  if (message["type"] === "error") throw new UpstreamError(anthropicError(message, context.target));
  if (!Array.isArray(message["content"])) {
    throw noAnswer("has no content");
  }
  let text = "";
  let reasoning = "";
  let answered: string | null = null;
  const toolCalls: ToolCall[] = [];
  const details: ReasoningDetail[] = [];
  for (const [index, block] of list(message["content"]).map(fields).entries()) {
    switch (block["type"]) {
      case "text":
        text += string(block["text"]);
        break;
      case "compaction":
        text += string(block["content"]);
        break;
      case "thinking":
        reasoning += string(block["thinking"]);
        if (string(block["signature"])) {
          details.push(signedThought(string(block["thinking"]), string(block["signature"]), index));
        }
        break;
      case "redacted_thinking":
        if (string(block["data"])) details.push(redactedThought(string(block["data"]), index));
        break;
      case "tool_use": {
        const call = toolCallOf(block["id"], block["name"], block["input"], context);
        if (call.function.name === context.prepared.jsonTool) answered ??= call.function.arguments;
        else toolCalls.push(call);
        break;
      }
    }
  }
  keepThoughts(
    thoughts,
    context.caller,
    toolCalls.map(({ id }) => id),
    details,
  );
  const choice = {
    // With a forced answer tool, prose before it is no part of the answer.
    text: answered ?? text,
    reasoning,
    toolCalls,
    details,
    refusal: refusalIn(message["stop_details"]),
    finish: anthropicFinish(message["stop_reason"], answered !== null && toolCalls.length === 0),
  };
  const usage = anthropicUsage(message["usage"], () => estimatedUsage([choice], context));
  const id = string(message["id"]) || null;
  return completionBody({ id, model: string(message["model"]) || null, choices: [choice], usage }, context);
}
