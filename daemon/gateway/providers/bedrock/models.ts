// What differs between the models that Converse serves: whose reasoning they have, whether they keep JSON schemas, whether they can be made
// to call a tool. By their ids, whatever regions and versions stand around them.
import { claudeTraits } from "../anthropic/models.ts";
import type { CacheMark } from "../content.ts";
import { CLAUDE, CONVERSE } from "../thoughts/claude.ts";

export function isClaude(model: string): boolean {
  return model.includes("anthropic") || model.includes("claude");
}

/** OpenAI's open models, which take its old `reasoning_effort`. */
export function isOpenWeight(model: string): boolean {
  return model.includes("gpt-oss");
}

/** OpenAI's own: they take `reasoning.effort`, and want what they thought back, which is encrypted. */
export function isGpt(model: string): boolean {
  return /(^|[./])openai\./.test(model) && !isOpenWeight(model);
}

export function isNova(model: string): boolean {
  return /nova-/.test(model);
}

export function isNova2(model: string): boolean {
  return /nova-2-/.test(model);
}

/** Bedrock itself keeps the answer to a schema (its documentation, "Get validated JSON results from models"). */
export function keepsSchemas(model: string): boolean {
  if (isClaude(model)) return /(sonnet|haiku|opus)-4-5|(sonnet|opus)-4-6/.test(model);
  return /qwen3|deepseek\.v3|mistral-large-3|ministral-3|minimax-m2|kimi-k2-thinking|nemotron-nano-3/.test(model);
}

/** It reads no images (Converse's documentation, "Supported models and model features"). Of others nobody here knows. */
export function isBlind(model: string): boolean {
  return /nova-micro|titan|claude-(v2|instant|3-5-haiku)|jamba|command-(r|text|light)|deepseek\.(r1|v3)|gpt-oss|mixtral|mistral-(7b|small-24|large-24)|llama(2|3-(\d+b|1|3|2-[13]b))/.test(
    model,
  );
}

/** It knows no tools (the same). */
export function hasNoTools(model: string): boolean {
  return /titan|claude-(v2|instant)|jamba-instruct|command-(text|light)|deepseek\.r1|mixtral|mistral-7b|llama(2|3-(\d+b|2-[13]b))/.test(
    model,
  );
}

/** It can be made to call a tool: others refuse every choice but `auto`. An ARN does not say whose model it is. */
export function forcesTools(model: string): boolean {
  if (isClaude(model)) return claudeTraits(model).forcesTools;
  return /^arn:|nova|mistral-large|gpt-oss|openai\./.test(model);
}

/** It can be made to call this very tool: Mistral's know only that they have to call one. */
export function namesTools(model: string): boolean {
  return !model.includes("mistral");
}

/** A mark of what may be cached as the model takes it: Claude and Nova alone do, newer Claudes for an hour. An ARN does not say whose model it is. */
export function markFor(mark: CacheMark, model: string): CacheMark {
  if (!mark || !(isClaude(model) || /^arn:|nova/.test(model))) return null;
  return isNewer(model) ? mark : {};
}

/** Claude alone takes results of tools and other content in one turn. Of some ARNs nobody knows whose model it is. */
export function mixesResults(model: string): boolean {
  return isClaude(model) || /^arn:.*\/[a-z0-9]+$/.test(model);
}

/** It can be kept from calling tools in parallel. */
export function callsOneByOne(model: string): boolean {
  return isNewer(model);
}

// Claude since 4.5.
function isNewer(model: string): boolean {
  return isClaude(model) && (claudeTraits(model).thinking === "adaptive" || model.includes("-4-5"));
}

/** How what it thought is called on its way through OpenAI's format, so that it comes back to none but its like. */
export function thoughtFormat(model: string): string {
  return isClaude(model) ? CLAUDE : CONVERSE;
}
