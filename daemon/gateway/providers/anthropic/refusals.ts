// What single Claude models refuse beyond what their API lacks, on Anthropic's own service and on Bedrock alike.
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Unsupported } from "../adapter.ts";
import { begunAnswer } from "../begun.ts";
import { stopsOf, undemanding } from "../content.ts";
import type { ClaudeTraits } from "./models.ts";

/** Thinking takes no lower one. */
const LEAST_TOP_P = 0.95;

export function claudeRefusals(request: ChatRequest, traits: ClaudeTraits): Unsupported[] {
  const found: Unsupported[] = [];
  const refuse = (param: string, reason: string) => found.push({ param, reason, droppable: true });
  if (stopsOf(request).some((stop) => stop.trim() === "")) refuse("stop", "it takes no blank stop sequence");
  // Above 1 it is refused for every Claude.
  const warm = asks(request.temperature) && (request.temperature ?? 0) <= 1;
  if (traits.sampling === "none") {
    if (warm) refuse("temperature", "this model takes none");
    if (asks(request.top_p)) refuse("top_p", "this model takes none");
  }
  if (!traits.continues) found.push(...begunAnswer(request));
  if (!traits.forcesTools && forcesTool(request)) {
    const param = request.tool_choice ? "tool_choice" : "function_call";
    const reason = "this model cannot be made to call a tool";
    found.push({ param, reason, droppable: true, instead: undemanding(request) });
  }
  const reasons = Boolean(request.reasoning_effort) && request.reasoning_effort !== "none";
  // One of them has to go; while it reasons the temperature does.
  const refusesWarmth = reasons && traits.thinking !== "none" && !forcesTool(request);
  if (traits.sampling === "either" && warm && asks(request.top_p) && !refusesWarmth)
    found.push({
      param: "top_p",
      reason: "this model takes a temperature or a top_p, not both",
      droppable: true,
      leftToVendor: true,
    });
  if (!reasons) return found;
  if (traits.thinking === "none") refuse("reasoning_effort", "this model does not reason");
  else if (traits.thinking === "budget" && forcesTool(request)) {
    refuse("reasoning_effort", "no tool can be forced while it reasons");
  } else if (traits.sampling !== "none" && !forcesTool(request)) {
    if (warm) refuse("temperature", "it must be 1 while the model reasons");
    if (asks(request.top_p) && (request.top_p ?? 1) < LEAST_TOP_P)
      refuse("top_p", `it must be at least ${LEAST_TOP_P} while the model reasons`);
  }
  return found;
}

function forcesTool(request: ChatRequest): boolean {
  const choice = modern(request).tool_choice;
  if (typeof choice === "object" && choice?.type === "allowed_tools") return choice.allowed_tools.mode === "required";
  return Boolean(choice) && choice !== "auto" && choice !== "none";
}

// 1 is what both are anyway.
function asks(value: number | null | undefined): boolean {
  return value !== undefined && value !== null && value !== 1;
}

/** Temperature and top_p as they are sent: neutral values are taken out where the model takes one of the two, or none. */
export function claudeSampling(
  request: ChatRequest,
  takes: ClaudeTraits["sampling"],
): { temperature?: number; topP?: number } {
  const temperature = request.temperature ?? undefined;
  const topP = request.top_p ?? undefined;
  const both = temperature !== undefined && topP !== undefined;
  const apart = takes === "none" || (takes === "either" && both);
  return {
    ...(temperature === undefined || (apart && !asks(temperature)) ? {} : { temperature }),
    ...(topP === undefined || (apart && !asks(topP)) ? {} : { topP }),
  };
}
