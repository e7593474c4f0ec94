// OpenAI's whole answer: the vendor's bytes with `cost_usd` put into the usage; written anew only where an imitation left out what the
// specification requires.
import { fields } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import { estimateUsage } from "#daemon/gateway/format/estimate.ts";
import { onTier, type TokenUsage, usageFromWire, wireUsage } from "#daemon/gateway/format/usage.ts";
import type { WholeBody } from "../adapter.ts";
import { readAnswer, spliceCost } from "../cost.ts";
import { noAnswer, tooFewChoices, UpstreamError } from "../failure.ts";
import { secretsOf } from "../secrets.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { callIds, keepReasoning } from "../thoughts/reasoning.ts";
import type { ReadContext } from "../wire.ts";
import {
  type Fields,
  finishOf,
  mendedHead,
  mendedMessage,
  mendedUsage,
  soundFinish,
  soundHead,
  soundMessage,
  soundUsage,
} from "./conform.ts";
import { streamFailure } from "./errors.ts";
import { lettersOf } from "./letters.ts";
import { mendedLogprobs, soundLogprobs } from "./logprobs.ts";
import { judgesChoices, mistakesStop, thoughtsInTotal } from "./services.ts";

/** Throws UpstreamError for what is no completion. */
export function readCompletion(
  body: Buffer,
  context: ReadContext,
  thoughts: ThoughtMemory,
): { readonly body: WholeBody; readonly usage: TokenUsage } {
  const parsed = readAnswer(body);
  const { answer } = parsed;
  if (answer["error"]) {
    throw new UpstreamError(streamFailure(answer["error"], secretsOf(context.target)));
  }
  if (!Array.isArray(answer["choices"]) || answer["choices"].length === 0) {
    throw noAnswer("has no choices");
  }
  const counted = usageFromWire(answer["usage"], thoughtsInTotal(context.target));
  const choices = answer["choices"].map(fields);
  for (const { message } of choices) {
    const said = fields(message)["reasoning_content"];
    if (typeof said === "string") keepReasoning(thoughts, context, callIds(fields(message)), said);
  }
  const usage = onTier(counted ?? estimated(choices, context), answer["service_tier"]);
  const asked = context.request.n ?? 1;
  if (choices.length < asked && !judgesChoices(context.target)) throw tooFewChoices(choices.length, asked, usage);
  const cost = context.cost(usage);
  const spliced =
    counted && sound(answer, choices) && !choices.some((choice) => hidesCalls(choice, context))
      ? spliceCost(parsed, cost)
      : null;
  if (spliced) return { body: spliced, usage };
  const shown = counted
    ? { ...mendedUsage(answer["usage"] as Fields), ...(cost === undefined ? {} : { cost_usd: cost }) }
    : wireUsage(usage, cost);
  return { body: Buffer.from(JSON.stringify({ ...whole(answer, choices, context, counted), usage: shown })), usage };
}

function sound(answer: Fields, choices: Fields[]): boolean {
  if (answer["object"] !== "chat.completion" || !soundHead(answer) || !soundUsage(answer["usage"] as Fields))
    return false;
  return choices.every((choice) => {
    const message = choice["message"] as Fields | undefined;
    if (!message || !Number.isInteger(choice["index"]) || !soundLogprobs(choice["logprobs"])) return false;
    return soundFinish(choice["finish_reason"]) && soundMessage(message);
  });
}

function hidesCalls(choice: Fields, { request, target }: ReadContext): boolean {
  if (choice["finish_reason"] !== "stop") return false;
  const calls = fields(choice["message"])["tool_calls"];
  return Array.isArray(calls) && calls.length > 0 && mistakesStop(request, target);
}

// What ended in an error is no answer, but was charged.
function whole(answer: Fields, choices: Fields[], context: ReadContext, counted: TokenUsage | null): Fields {
  try {
    return repaired(answer, choices, context);
  } catch (error) {
    throw error instanceof UpstreamError ? new UpstreamError(error.failure, counted) : error;
  }
}

function repaired(answer: Fields, choices: Fields[], context: ReadContext): Fields {
  return {
    ...mendedHead(answer),
    id: typeof answer["id"] === "string" ? answer["id"] : `chatcmpl-${context.requestId}`,
    object: "chat.completion",
    created: Number.isInteger(answer["created"]) ? answer["created"] : context.created,
    model: typeof answer["model"] === "string" ? answer["model"] : context.target.model,
    choices: choices.map((choice, index) => ({
      ...choice,
      index: Number.isInteger(choice["index"]) ? choice["index"] : index,
      message: mendedMessage(fields(choice["message"])),
      logprobs: mendedLogprobs(choice["logprobs"]),
      finish_reason: finish(choice, context),
    })),
  };
}

function finish(choice: Fields, context: ReadContext): FinishReason {
  const said = finishOf(choice["finish_reason"]);
  return hidesCalls({ ...choice, finish_reason: said }, context) ? "tool_calls" : said;
}

function estimated(choices: Fields[], context: ReadContext): TokenUsage {
  const letters = choices.reduce((sum, choice) => sum + lettersOf(fields(choice["message"])), 0);
  return estimateUsage(context.request, letters);
}
