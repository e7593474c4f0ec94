// The sandbox as a provider: answers in-process, offline, without keys, in the wire format that the real ones have.
import { setImmediate as turn } from "node:timers/promises";
import type { AnswerMessage, ChatCompletion, Choice } from "#daemon/gateway/format/completion.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import { chunkWriter, DONE } from "#daemon/gateway/format/sse.ts";
import { strictProblem } from "#daemon/gateway/format/strict.ts";
import { type TokenUsage, wireUsage } from "#daemon/gateway/format/usage.ts";
import type {
  AttemptOptions,
  ChatCall,
  ChatOutcome,
  CompletionOutcome,
  EmbeddingCall,
  FailureOutcome,
  FrameSink,
  Notes,
  Provider,
  StreamEnd,
  StreamOutcome,
  Target,
} from "../adapter.ts";
import { checkCall } from "../check.ts";
import { failure, UpstreamError } from "../failure.ts";
import { supportOf } from "../support.ts";
import { roomIn } from "../whole-stream.ts";
import { answerFor, piecesOf, type SandboxAnswer, type SandboxChoice } from "./answer.ts";
import { embed, MAX_DIMENSIONS, MAX_NUMBERS, sizeOf } from "./embedding.ts";

export const sandboxProvider: Provider = {
  kind: "sandbox",
  unsupported: (request) => (strictProblem(request) ? [] : supportOf("sandbox", request)),
  refusal: async (call, target) => {
    const answered = answerTo(call, target);
    return "kind" in answered ? answered.failure : null;
  },
  // It knows no limit but the request's; what it will say is known beforehand.
  longestAnswer(request, target) {
    if (strictProblem(request)) return 0;
    const answer = answerOrRefusal(request, target);
    return "kind" in answer ? 0 : answer.usage.output;
  },
  chat,
  embed: embeddings,
};

interface Answered {
  readonly answer: SandboxAnswer;
  readonly request: ChatRequest;
  /** Parameters that were left out. */
  readonly dropped: readonly string[];
}

async function chat(call: ChatCall, target: Target, options: AttemptOptions): Promise<ChatOutcome> {
  const answered = answerTo(call, target);
  if ("kind" in answered) return answered;
  const { answer, request, dropped } = answered;
  const notes: Notes = { dropped, responseFormat: structured(request) ? "native" : undefined };
  if (request.stream) return stream(answer, request, target, options, notes);
  const body = Buffer.from(JSON.stringify(completion(answer, target, options)));
  return { kind: "completion", body, usage: answer.usage, notes };
}

function answerTo(call: ChatCall, target: Target): Answered | FailureOutcome {
  const checked = checkCall(call, target, (request) => supportOf("sandbox", request));
  if ("kind" in checked) return checked;
  const { request } = checked.call;
  const answer = answerOrRefusal(request, target);
  return "kind" in answer ? answer : { answer, request, dropped: checked.dropped };
}

function answerOrRefusal(request: ChatRequest, target: Target): SandboxAnswer | FailureOutcome {
  try {
    return answerFor(request, target.seed ?? 1);
  } catch (error) {
    if (error instanceof UpstreamError) return { kind: "failure", failure: error.failure, usage: null };
    throw error;
  }
}

function structured(request: ChatRequest): boolean {
  return request.response_format?.type === "json_schema";
}

function refused(message: string, param: string): FailureOutcome {
  return { kind: "failure", failure: failure("invalid", message, { param }), usage: null };
}

function completion(answer: SandboxAnswer, target: Target, options: AttemptOptions): ChatCompletion {
  return {
    id: answer.id,
    object: "chat.completion",
    created: answer.created,
    model: target.model,
    choices: answer.choices.map(wireChoice),
    usage: wireUsage(answer.usage, options.cost(answer.usage)),
    system_fingerprint: "fp_sandbox",
  };
}

function wireChoice(choice: SandboxChoice, index: number): Choice {
  const call = choice.toolCalls[0];
  let message: AnswerMessage = { role: "assistant", content: choice.text, refusal: null };
  if (choice.legacy && call) message = { ...message, function_call: call.function };
  else if (call) message = { ...message, tool_calls: choice.toolCalls };
  return { index, message, logprobs: choice.logprobs, finish_reason: choice.finish };
}

function stream(
  answer: SandboxAnswer,
  request: ChatRequest,
  target: Target,
  options: AttemptOptions,
  notes: Notes,
): StreamOutcome {
  const asked = request.stream_options?.include_usage === true;
  const head = { id: answer.id, created: answer.created, model: target.model };
  const writer = chunkWriter(head, asked);

  async function pipe(sink: FrameSink): Promise<StreamEnd> {
    let sent = 0;
    for (const frame of frames(answer, writer)) {
      if (options.signal.aborted)
        return { result: "aborted", usage: answer.usage, failure: failure("aborted", "The client left.") };
      // A turn of the event loop now and then: a long answer must not keep others waiting.
      if (++sent % 64 === 0) await turn();
      if (!sink.write(frame)) await roomIn(sink, options.signal);
    }
    const cost = options.cost(answer.usage);
    if (asked) sink.write(writer.usage(wireUsage(answer.usage, cost)));
    sink.write(DONE);
    return { result: "completed", usage: answer.usage, failure: null };
  }
  return { kind: "stream", notes, pipe };
}

function* frames(answer: SandboxAnswer, writer: ReturnType<typeof chunkWriter>): Generator<string> {
  for (const [index, choice] of answer.choices.entries()) {
    const first = choice.toolCalls[0];
    yield writer.delta(index, { role: "assistant", content: choice.text === null ? null : "" });
    let at = 0;
    for (const piece of piecesOf(choice.text ?? "")) {
      const logprob = choice.logprobs?.content?.[at++];
      yield writer.delta(index, { content: piece }, logprob ? { content: [logprob], refusal: null } : null);
    }
    if (choice.legacy && first) yield writer.delta(index, { function_call: first.function });
    else {
      for (const [number, call] of choice.toolCalls.entries()) {
        yield writer.delta(index, {
          tool_calls: [
            { index: number, id: call.id, type: "function", function: { name: call.function.name, arguments: "" } },
          ],
        });
        for (const part of call.function.arguments.match(/[\s\S]{1,16}/gu) ?? []) {
          yield writer.delta(index, { tool_calls: [{ index: number, function: { arguments: part } }] });
        }
      }
    }
    yield writer.finish(index, choice.finish);
  }
}

const NUMBERS_A_TURN = 16_384;

async function embeddings(
  call: EmbeddingCall,
  target: Target,
  options: AttemptOptions,
): Promise<CompletionOutcome | FailureOutcome> {
  if ((call.request.dimensions ?? 1) > MAX_DIMENSIONS) {
    return refused(`'dimensions' must be at most ${MAX_DIMENSIONS}.`, "dimensions");
  }
  const { vectors, dimensions } = sizeOf(call.request);
  if (vectors * dimensions > MAX_NUMBERS)
    return refused(`'input' asks for more than ${MAX_NUMBERS} numbers (inputs times dimensions).`, "input");
  const entries: Buffer[] = [];
  let input = 0;
  for (const { embedding, tokens } of embed(call.request, target.seed ?? 1)) {
    input += tokens;
    entries.push(Buffer.from(`${entries.length > 0 ? "," : ""}${JSON.stringify(embedding)}`));
    // A turn of the event loop now and then: many vectors must not keep others waiting.
    if ((entries.length * dimensions) % NUMBERS_A_TURN < dimensions) await turn();
    if (options.signal.aborted)
      return { kind: "failure", failure: failure("aborted", "The client left."), usage: null };
  }
  const usage: TokenUsage = { input, cached: 0, cache_write: 0, output: 0, reasoning: 0 };
  const cost = options.cost(usage);
  const shown = { prompt_tokens: input, total_tokens: input, ...(cost === undefined ? {} : { cost_usd: cost }) };
  const tail = `],"model":${JSON.stringify(target.model)},"usage":${JSON.stringify(shown)}}`;
  const body = Buffer.concat([Buffer.from('{"object":"list","data":['), ...entries, Buffer.from(tail)]);
  return { kind: "completion", body, usage, notes: { dropped: [], responseFormat: undefined } };
}
