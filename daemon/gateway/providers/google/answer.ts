// Gemini's whole answer in OpenAI's form. Code that Gemini ran and searches that it made are not shown as tool calls.
import { fields, list, string } from "#contract/json-object.ts";
import type { DrawnImage, ToolCall } from "#daemon/gateway/format/completion.ts";
import { parseExact } from "#daemon/gateway/format/exact-json.ts";
import { type AnswerChoice, completionBody, estimatedUsage } from "../answer.ts";
import { parseAnswer } from "../cost.ts";
import { givenUp, noAnswer, tooFewChoices, UpstreamError } from "../failure.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { ReadContext } from "../wire.ts";
import { callArguments, calledName, callId, signatureIn } from "./calls.ts";
import { googleError } from "./errors.ts";
import { imageIn } from "./images.ts";
import { googleFinish, googleLogprobs, googleUsage, isGivenUp } from "./usage.ts";

/** Throws UpstreamError for what is no answer. A blocked prompt is an answer: empty, `content_filter`. */
export function readAnswer(body: Buffer, context: ReadContext, signatures: ThoughtMemory) {
  const answer = parseAnswer(body, parseExact);
  if (answer["error"]) throw new UpstreamError(googleError(answer["error"], 200, context.target));
  const candidates = list(answer["candidates"]).map(fields);
  const blocked = fields(answer["promptFeedback"])["blockReason"];
  if (candidates.length === 0 && !blocked) {
    throw noAnswer("has no candidates");
  }
  const choices: AnswerChoice[] = candidates.map((candidate) => choiceOf(candidate, context, signatures));
  const asked = context.request.n ?? 1;
  if (choices.length === 0)
    for (let index = 0; index < asked; index++)
      choices.push({ text: "", reasoning: "", toolCalls: [], finish: "content_filter" });
  const usage = googleUsage(answer["usageMetadata"]) ?? estimatedUsage(choices, context);
  const tier = fields(answer["usageMetadata"])["serviceTier"];
  const first = string(candidates[0]?.["finishReason"]);
  if (isGivenUp(first) && choices.every(isEmpty)) throw givenUp(first, usage);
  if (choices.length < asked) throw tooFewChoices(choices.length, asked, usage);
  const id = string(answer["responseId"]) || null;
  return completionBody({ id, model: string(answer["modelVersion"]) || null, choices, usage, tier }, context);
}

function isEmpty({ text, toolCalls, images }: AnswerChoice): boolean {
  return text === "" && toolCalls.length === 0 && !images?.length;
}

function choiceOf(candidate: Record<string, unknown>, context: ReadContext, signatures: ThoughtMemory): AnswerChoice {
  let text = "";
  let reasoning = "";
  let signature: string | null = null;
  const toolCalls: ToolCall[] = [];
  const images: DrawnImage[] = [];
  for (const part of list(fields(candidate["content"])["parts"]).map(fields)) {
    if (typeof part["text"] === "string") {
      if (part["thought"] === true) reasoning += part["text"];
      else {
        text += part["text"];
        signature = signatureIn(part) || signature;
      }
    } else if (part["functionCall"]) {
      const call = fields(part["functionCall"]);
      const { id, extra } = callId(part, call, context, signatures);
      toolCalls.push({
        id,
        type: "function",
        function: { name: calledName(call["name"], context), arguments: callArguments(call["args"]) },
        ...(extra ? { extra_content: extra } : {}),
      });
    } else {
      const image = imageIn(part, images.length);
      if (image) images.push(image);
    }
  }
  return {
    text,
    reasoning,
    toolCalls,
    signature,
    images,
    finish: googleFinish(candidate["finishReason"], toolCalls.length > 0),
    logprobs: googleLogprobs(candidate["logprobsResult"]),
  };
}
