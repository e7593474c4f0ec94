// What single Claude models refuse beyond what their API lacks, on Anthropic's own service and on Bedrock alike.
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Unsupported } from "../adapter.ts";
import type { ClaudeTraits } from "./models.ts";

export function claudeRefusals(request: ChatRequest, traits: ClaudeTraits): Unsupported[] {
  const found: Unsupported[] = [];
  const refuse = (param: string, reason: string) => found.push({ param, reason, droppable: true });
  const sampled = (value: number | null | undefined) => value !== undefined && value !== null && value !== 1;
  if (!traits.sampling) {
    // Above 1 it is refused for every Claude.
    if (sampled(request.temperature) && (request.temperature ?? 0) <= 1) refuse("temperature", "this model takes none");
    if (sampled(request.top_p)) refuse("top_p", "this model takes none");
  }
  if (!request.reasoning_effort || request.reasoning_effort === "none") return found;
  if (traits.thinking === "none") refuse("reasoning_effort", "this model does not reason");
  else if (traits.thinking === "budget") {
    const choice = modern(request).tool_choice;
    if (choice && choice !== "auto" && choice !== "none") {
      refuse("reasoning_effort", "no tool can be forced while it reasons");
    } else if (sampled(request.temperature)) refuse("temperature", "it must be 1 while the model reasons");
  }
  return found;
}
