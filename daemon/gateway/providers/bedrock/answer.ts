// Converse's whole answer in OpenAI's form.
import { fields, list, string } from "#contract/json-object.ts";
import type { ReasoningDetail, ToolCall } from "#daemon/gateway/format/completion.ts";
import { parseExact } from "#daemon/gateway/format/exact-json.ts";
import { onTier } from "#daemon/gateway/format/usage.ts";
import { completionBody, estimatedUsage } from "../answer.ts";
import { toolCallOf } from "../anthropic/tool-call.ts";
import { parseAnswer } from "../cost.ts";
import { failure, givenUp, UpstreamError } from "../failure.ts";
import { secretsOf } from "../secrets.ts";
import { keepThoughts, redactedThought, signedThought } from "../thoughts/claude.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { ReadContext } from "../wire.ts";
import { thoughtFormat } from "./models.ts";
import { converseFinish, converseUsage, isGivenUp } from "./usage.ts";

/** Throws UpstreamError for what is no answer: a 200 may lack `output`. */
export function readConverse(body: Buffer, context: ReadContext, thoughts: ThoughtMemory) {
  const answer = parseAnswer(body, parseExact);
  const content = fields(fields(answer["output"])["message"])["content"];
  if (!Array.isArray(content)) {
    const said = string(answer["message"] ?? answer["Message"] ?? answer["Output"]);
    const message = said || "The provider's answer has no output.";
    throw new UpstreamError(failure("protocol", message, { upstreamStatus: 200, secrets: secretsOf(context.target) }));
  }
  let text = "";
  let reasoning = "";
  let answered: string | null = null;
  const toolCalls: ToolCall[] = [];
  const details: ReasoningDetail[] = [];
  const format = thoughtFormat(context.target.model);
  for (const [index, block] of list(content).map(fields).entries()) {
    if (typeof block["text"] === "string") text += block["text"];
    else if (block["citationsContent"]) text += cited(fields(block["citationsContent"]));
    else if (block["reasoningContent"]) {
      const thought = fields(block["reasoningContent"]);
      const { text: said, signature } = fields(thought["reasoningText"]);
      reasoning += string(said);
      if (string(signature)) details.push(signedThought(string(said), string(signature), index, format));
      else if (string(thought["redactedContent"]))
        details.push(redactedThought(string(thought["redactedContent"]), index, format));
    } else if (block["toolUse"]) {
      const use = fields(block["toolUse"]);
      if (use["type"] === "server_tool_use") continue;
      const call = toolCallOf(use["toolUseId"], use["name"], use["input"], context);
      if (call.function.name === context.prepared.jsonTool) answered ??= call.function.arguments;
      else toolCalls.push(call);
    }
  }
  keepThoughts(
    thoughts,
    context.caller,
    toolCalls.map(({ id }) => id),
    details,
  );
  const choice = {
    text: answered ?? text,
    reasoning,
    toolCalls,
    details,
    finish: converseFinish(answer["stopReason"], answered !== null && toolCalls.length === 0),
  };
  const counted = converseUsage(answer["usage"], answer["additionalModelResponseFields"], () =>
    estimatedUsage([choice], context),
  );
  const tier = fields(answer["serviceTier"])["type"];
  const usage = onTier(counted, tier);
  const said = choice.text !== "" || toolCalls.length > 0;
  if (isGivenUp(answer["stopReason"]) && !said) throw givenUp(string(answer["stopReason"]), usage);
  return completionBody({ id: null, model: null, choices: [choice], usage, tier }, context);
}

// A text with its sources: the sources have no place in OpenAI's form, the text is the answer's.
function cited(block: Record<string, unknown>): string {
  return list(block["content"])
    .map((part) => string(fields(part)["text"]))
    .join("");
}
