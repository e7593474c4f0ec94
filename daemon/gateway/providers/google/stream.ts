// Gemini's stream in OpenAI's chunks: every event is a whole response with what is new in it; usage is cumulative; there is no end mark
// but the finish reason of every candidate, and the end of the bytes.
import { fields, list, string } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { chunkStream } from "../chunks.ts";
import { type Event, jsonEvents } from "../events.ts";
import { failure, givenUp, tooFewChoices, UpstreamError } from "../failure.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Emit, ReadContext, StreamDecoder } from "../wire.ts";
import { callArguments, calledName, callId, signatureIn, signed } from "./calls.ts";
import { googleError } from "./errors.ts";
import { imageIn } from "./images.ts";
import { type PartialArguments, partialArguments } from "./partial-arguments.ts";
import { googleFinish, googleLogprobs, googleUsage, isGivenUp } from "./usage.ts";

interface Candidate {
  called: boolean;
  finish: string | null;
  /** The text's: said at the end, for it is no content, and a stream that has said nothing may still be exchanged for another. */
  signature: string;
  images: number;
  /** A call whose arguments are still coming. */
  open: { readonly call: number; readonly args: PartialArguments } | null;
}

export function googleDecoder(context: ReadContext, emit: Emit, signatures: ThoughtMemory): StreamDecoder {
  const chunks = chunkStream(context, emit);
  const candidates = new Map<number, Candidate>();
  let counted: TokenUsage | null = null;
  let blocked = false;

  function close(candidate: Candidate, index: number): void {
    if (!candidate.open) return;
    chunks.toolArguments(candidate.open.call, candidate.open.args.json(), index);
    candidate.open = null;
  }

  function functionCall(part: Record<string, unknown>, candidate: Candidate, index: number): void {
    const call = fields(part["functionCall"]);
    const name = calledName(call["name"], context);
    const partial = list(call["partialArgs"]);
    if (name !== "") {
      close(candidate, index);
      candidate.called = true;
      const { id, extra } = callId(part, call, context, signatures);
      const number = chunks.toolCall(id, name, index, extra);
      if (call["willContinue"] !== true && partial.length === 0) {
        chunks.toolArguments(number, callArguments(call["args"]), index);
        return;
      }
      candidate.open = { call: number, args: partialArguments() };
    }
    if (!candidate.open) return;
    candidate.open.args.add(partial);
    if (call["willContinue"] !== true && candidate.open.args.settled()) close(candidate, index);
  }

  function take(given: Record<string, unknown>): void {
    const index = Number.isSafeInteger(given["index"]) ? Number(given["index"]) : 0;
    const candidate = candidates.get(index) ?? { called: false, finish: null, signature: "", images: 0, open: null };
    candidates.set(index, candidate);
    let logprobs = googleLogprobs(given["logprobsResult"]);
    for (const part of list(fields(given["content"])["parts"]).map(fields)) {
      if (typeof part["text"] === "string") {
        if (part["thought"] === true) chunks.reasoning(part["text"], index);
        else {
          chunks.text(part["text"], index, logprobs);
          logprobs = null;
          candidate.signature = signatureIn(part) || candidate.signature;
        }
      } else if (part["functionCall"]) functionCall(part, candidate, index);
      else {
        const image = imageIn(part, candidate.images);
        if (image) chunks.image(image, index);
        if (image) candidate.images++;
      }
    }
    if (given["finishReason"]) {
      close(candidate, index);
      candidate.finish = string(given["finishReason"]);
    }
  }

  function event(one: Event): void {
    if (one["error"]) throw new UpstreamError(googleError(one["error"], 200, context.target));
    chunks.identify(string(one["responseId"]), string(one["modelVersion"]));
    counted = googleUsage(one["usageMetadata"]) ?? counted;
    chunks.served(fields(one["usageMetadata"])["serviceTier"]);
    if (fields(one["promptFeedback"])["blockReason"]) blocked = true;
    for (const candidate of list(one["candidates"]).map(fields)) take(candidate);
  }

  function usage(): TokenUsage {
    if (counted && ([...candidates.values()].some((one) => one.finish !== null) || blocked)) return counted;
    const guess = chunks.estimate();
    return counted ? { ...guess, input: counted.input, cached: counted.cached, tier: counted.tier } : guess;
  }

  const reader = jsonEvents(event);
  return {
    push: reader.push,
    end() {
      reader.end();
      const unfinished = [...candidates.values()].some((candidate) => candidate.finish === null);
      if ((candidates.size === 0 || unfinished) && !blocked) {
        throw new UpstreamError(failure("truncated", "The provider's stream ended before its finish reason."));
      }
      const first = candidates.values().next().value?.finish ?? "";
      if (isGivenUp(first) && !chunks.answered()) throw givenUp(first, usage());
      const asked = context.request.n ?? 1;
      if (!blocked && candidates.size < asked) throw tooFewChoices(candidates.size, asked, usage());
      if (candidates.size === 0) for (let index = 0; index < asked; index++) chunks.finish("content_filter", index);
      for (const [index, { finish, called, signature }] of candidates) {
        if (signature !== "") chunks.extra(signed(signature), index);
        const reason: FinishReason = blocked ? "content_filter" : googleFinish(finish, called);
        chunks.finish(reason, index);
      }
      chunks.end(usage());
    },
    started: chunks.started,
    finished: chunks.finished,
    usage,
  };
}
