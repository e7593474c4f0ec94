// The choices of a stream of OpenAI's format, as its chunks have told them so far: whether they are as the specification demands, and what they
// have to become where an imitation left out or mistook something.
import { fields } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { callIds, type StreamedReasoning, streamedReasoning } from "../thoughts/reasoning.ts";
import type { ReadContext } from "../wire.ts";
import { finishOf, mendedDelta, soundDelta, soundFinish } from "./conform.ts";
import { lettersOf } from "./letters.ts";
import { mendedLogprobs, soundLogprobs } from "./logprobs.ts";
import { mistakesStop } from "./services.ts";
import { type Calls, noCalls, soundPlaces } from "./streamed-calls.ts";

/** OpenAI's own limit for `n`: of no more choices is anything remembered. */
const MOST_CHOICES = 128;

export type Chunk = Record<string, unknown>;

export class StreamedChoices {
  /** Some choice has said something. */
  started = false;
  /** UTF-16 code units of what they have said. */
  letters = 0;
  readonly #context: ReadContext;
  /** What each choice thought in `reasoning_content`, and the calls that it then made. */
  readonly #reasoned = new Map<unknown, StreamedReasoning>();
  readonly #calls = new Map<unknown, Calls>();
  /** How each choice has said that it ended; null: not yet. */
  readonly #ended = new Map<unknown, FinishReason | null>();
  /** Those that begin without a role in the chunk at hand: OpenAI's own client falls over their end. */
  readonly #roleless = new Set<unknown>();

  constructor(context: ReadContext) {
    this.#context = context;
  }

  /**
   * Takes note of a chunk's choices; true where the chunk can go as it is: they are as the specification demands, and so is what stands around them
   * (`headFits`).
   */
  fits(choices: readonly Chunk[], headFits: boolean): boolean {
    let sound = headFits;
    for (const choice of choices) {
      const index = choice["index"];
      const delta = (choice["delta"] ?? {}) as Chunk;
      // OpenRouter and Zhipu say an empty `content` beside every piece of a thought.
      const content = delta["content"] || delta["reasoning_content"] || delta["reasoning"] || delta["refusal"];
      this.letters += lettersOf(delta);
      const said = delta["reasoning_content"];
      if (typeof said === "string" && said !== "") this.#thoughtOf(index).add(said);
      if (delta["tool_calls"]) this.#reasoned.get(index)?.called(callIds(delta));
      const reason = choice["finish_reason"];
      if (content || delta["tool_calls"] || delta["function_call"] || reason || holdsMore(delta)) this.started = true;
      const begins = !this.#ended.has(index) && this.#ended.size < MOST_CHOICES;
      if (begins && delta["role"] !== "assistant") this.#roleless.add(index);
      if (begins) this.#ended.set(index, null);
      if (!(reason === null || soundFinish(reason)) || !Number.isInteger(index)) sound = false;
      else if (!choice["delta"] || !soundDelta(delta)) sound = false;
      else if (delta["tool_calls"] && !soundPlaces(delta, this.#callsOf(index))) sound = false;
      else if (choice["logprobs"] !== undefined && !soundLogprobs(choice["logprobs"])) sound = false;
      if (reason && (this.#ended.get(index) || this.#endsOtherwise(reason, index))) sound = false;
    }
    if (!sound || this.#roleless.size > 0) return false;
    for (const { index, finish_reason: reason } of choices) if (reason) this.#end(index, reason as FinishReason);
    return true;
  }

  /** One of them as the specification demands it; `place`: where it stands among its chunk's. */
  mended(choice: Chunk, place: number): Chunk {
    const { index: given, logprobs, delta, finish_reason: reason } = choice;
    const index = given ?? place;
    return {
      ...choice,
      ...(logprobs === undefined ? {} : { logprobs: mendedLogprobs(logprobs) }),
      index: Number.isInteger(index) ? index : place,
      delta: {
        ...mendedDelta(fields(delta), this.#callsOf(index), Boolean(reason)),
        ...(this.#roleless.delete(given) ? { role: "assistant" } : {}),
      },
      finish_reason: this.#told(this.#finish(reason, index), given),
    };
  }

  // OpenRouter says it once more beside the usage; LangChain's client would make "stopstop" of it.
  #told(reason: FinishReason | null, index: unknown): FinishReason | null {
    if (reason === null || this.#ended.get(index) === reason) return null;
    this.#end(index, reason);
    return reason;
  }

  #end(index: unknown, reason: FinishReason): void {
    if (this.#ended.has(index)) this.#ended.set(index, reason);
  }

  /** None has come. */
  get none(): boolean {
    return this.#ended.size === 0;
  }

  /** Those that have not said how they ended, by a server that ends without a word of it: clients take them for broken off. */
  untold(): Chunk[] {
    const open = [...this.#ended].filter(([, said]) => said === null);
    return open.map(([index]) => ({ index, delta: {}, finish_reason: "stop" }));
  }

  keepThoughts(thoughts: ThoughtMemory): void {
    for (const one of this.#reasoned.values()) one.keep(thoughts, this.#context);
  }

  #endsOtherwise(reason: unknown, index: unknown): boolean {
    const known = this.#calls.get(index);
    return known !== undefined && (known.nameless.size > 0 || this.#hidesCalls(reason, index));
  }

  #hidesCalls(reason: unknown, index: unknown): boolean {
    const { request, target } = this.#context;
    return reason === "stop" && this.#calls.get(index)?.newest !== undefined && mistakesStop(request, target);
  }

  #finish(reason: unknown, index: unknown): FinishReason | null {
    if (!reason) return null;
    const said = finishOf(reason);
    return this.#hidesCalls(said, index) ? "tool_calls" : said;
  }

  #thoughtOf(index: unknown): StreamedReasoning {
    const known = this.#reasoned.get(index) ?? streamedReasoning();
    if (this.#reasoned.size < MOST_CHOICES) this.#reasoned.set(index, known);
    return known;
  }

  #callsOf(index: unknown): Calls {
    const known = this.#calls.get(index) ?? noCalls();
    if (this.#calls.size < MOST_CHOICES) this.#calls.set(index, known);
    return known;
  }
}

/** Something for the client that is neither a text nor a call. OpenRouter's first chunks name them, empty. */
function holdsMore({ audio, images, reasoning_details }: Chunk): boolean {
  return [audio, images, reasoning_details].some((held) => Object.keys(held ?? {}).length > 0);
}
