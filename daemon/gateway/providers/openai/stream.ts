// OpenAI's own stream: the vendor's bytes go through as they came, event by event. Each event is parsed, for metering and because a
// broken one must end the stream; it is written anew only where it has to change: the usage chunk (kept back, priced, and shown only
// to who asked), and chunks of imitations that leave out what the specification requires.
import { isAscii } from "node:buffer";
import { fields } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import { estimateUsage } from "#daemon/gateway/format/estimate.ts";
import { DONE } from "#daemon/gateway/format/sse.ts";
import { onTier, type TokenUsage, usageFromWire, wireUsage } from "#daemon/gateway/format/usage.ts";
import { MAX_EVENT } from "../events.ts";
import { failure, UpstreamError } from "../failure.ts";
import { secretsOf } from "../secrets.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { callIds, type StreamedReasoning, streamedReasoning } from "../thoughts/reasoning.ts";
import type { Emit, ReadContext, StreamDecoder } from "../wire.ts";
import { finishOf, mendedDelta, mendedHead, mendedUsage, soundDelta, soundFinish, soundHead } from "./conform.ts";
import { streamFailure } from "./errors.ts";
import { lettersOf } from "./letters.ts";
import { Likeness } from "./likeness.ts";
import { mendedLogprobs, soundLogprobs } from "./logprobs.ts";
import { mistakesStop, thoughtsInTotal } from "./services.ts";
import { type Calls, noCalls, soundPlaces } from "./streamed-calls.ts";

/** OpenAI's own limit for `n`: of no more choices is anything remembered. */
const MOST_CHOICES = 128;

const LF = 0x0a;
const BLANK_LINE = Buffer.from("\n\n");

type Chunk = Record<string, unknown>;

export function openaiDecoder(context: ReadContext, emit: Emit, thoughts: ThoughtMemory): StreamDecoder {
  const asked = context.request.stream_options?.include_usage === true;
  /** What came of an event that is not over yet are the first `kept` bytes; searched when it is, since each search costs as much as all of it. */
  let store: Buffer = Buffer.alloc(0);
  let kept = 0;
  /** The last byte was a CR, which may be half of a CRLF: it has ended its line already. */
  let half = false;
  let started = false;
  let finished = false;
  let letters = 0;
  let metered: TokenUsage | null = null;
  let usageChunk: Chunk | null = null;
  let head: Chunk = {};
  let tier: unknown;
  /** What each choice thought in `reasoning_content`, and the calls that it then made. */
  const reasoned = new Map<unknown, StreamedReasoning>();
  /** For each choice. */
  const calls = new Map<unknown, Calls>();
  /** Whether each choice has said how it ended. */
  const ended = new Map<unknown, boolean>();
  /** What nearly all events that say something look like. */
  let likeness: Likeness | null = null;
  /** The last event was sound and said nothing but a piece of one choice's content. */
  let usual = false;

  /** What goes out instead of the event's bytes; null: the bytes as they are. */
  function event(bytes: string): string | null {
    usual = false;
    const text = bytes.charCodeAt(0) === BYTE_ORDER_MARK ? bytes.slice(1) : bytes;
    const data = dataOf(text);
    // Comments keep connections alive; other events without data are nothing to a client, nor are those whose data is empty.
    if (data === null) return bytes.startsWith(":") ? null : "";
    if (data === "") return "";
    if (data === "[DONE]") return done();
    const chunk = parse(data);
    // vLLM's error is the event itself.
    const error = chunk["object"] === "error" ? chunk : chunk["error"];
    if (error) throw new UpstreamError(streamFailure(error, secretsOf(context.target)));
    const choices = Array.isArray(chunk["choices"]) ? (chunk["choices"] as Chunk[]) : [];
    for (const choice of choices)
      if (typeof choice !== "object" || choice === null)
        throw broken("A choice of the provider's stream is no object.");
    if (chunk["service_tier"]) tier = chunk["service_tier"];
    const usage = chunk["usage"];
    // Moonshot counts in the last choice, Groq at a place of its own.
    const given = usage ?? choices[0]?.["usage"] ?? fields(chunk["x_groq"])["usage"];
    const counted =
      given === null || given === undefined ? null : usageFromWire(given, thoughtsInTotal(context.target));
    if (counted) {
      metered = counted;
      usageChunk = { ...chunk, usage: given };
    }
    // Azure's first chunk (prompt filters) and the usage chunk: not part of the answer.
    if (choices.length === 0) return "";
    if (!head["id"]) head = chunk;
    const sound = inspect(choices) && chunk["object"] === "chat.completion.chunk" && soundHead(chunk);
    if (sound && (usage === null || usage === undefined)) {
      if (!isUsual(bytes)) return `data: ${data.replaceAll("\n", " ")}\n\n`;
      // Not before the stream has begun: an empty content, as first chunks have it, begins none, and those that are like it do.
      usual = started && choices.length === 1 && !given && onlyTalks(choices[0]);
      return null;
    }
    return `data: ${JSON.stringify(repaired(chunk, choices, asked))}\n\n`;
  }

  // Counts what the choices hold; false where the specification's required members are missing.
  function inspect(choices: Chunk[]): boolean {
    let sound = true;
    for (const choice of choices) {
      const delta = (choice["delta"] ?? {}) as Chunk;
      // OpenRouter and Zhipu say an empty `content` beside every piece of a thought.
      const content = delta["content"] || delta["reasoning_content"] || delta["reasoning"] || delta["refusal"];
      letters += lettersOf(delta);
      const said = delta["reasoning_content"];
      if (typeof said === "string" && said !== "") thoughtOf(choice["index"]).add(said);
      if (delta["tool_calls"]) reasoned.get(choice["index"])?.called(callIds(delta));
      const reason = choice["finish_reason"];
      if (content || delta["tool_calls"] || delta["function_call"] || reason || holdsMore(delta)) started = true;
      const seen = ended.has(choice["index"]);
      if (seen ? reason : ended.size < MOST_CHOICES) ended.set(choice["index"], Boolean(reason));
      if (!(reason === null || soundFinish(reason)) || !Number.isInteger(choice["index"])) sound = false;
      else if (!choice["delta"] || !soundDelta(delta)) sound = false;
      else if (delta["tool_calls"] && !soundPlaces(delta, callsOf(choice["index"]))) sound = false;
      else if (choice["logprobs"] !== undefined && !soundLogprobs(choice["logprobs"])) sound = false;
      if (reason && endsOtherwise(reason, choice["index"])) sound = false;
    }
    return sound;
  }

  function endsOtherwise(reason: unknown, choice: unknown): boolean {
    const known = calls.get(choice);
    return known !== undefined && (known.nameless.size > 0 || hidesCalls(reason, choice));
  }

  function hidesCalls(reason: unknown, choice: unknown): boolean {
    return (
      reason === "stop" && calls.get(choice)?.newest !== undefined && mistakesStop(context.request, context.target)
    );
  }

  function thoughtOf(choice: unknown): StreamedReasoning {
    const known = reasoned.get(choice) ?? streamedReasoning();
    if (reasoned.size < MOST_CHOICES) reasoned.set(choice, known);
    return known;
  }

  function done(): string {
    // An end alone is no answer, as a whole one without choices is none.
    if (ended.size === 0)
      throw new UpstreamError(failure("protocol", "The provider's stream has no choices.", { upstreamStatus: 200 }));
    finished = true;
    started = true;
    for (const one of reasoned.values()) one.keep(thoughts, context);
    const cost = context.cost(usage());
    const last = untold();
    if (!asked) return last + DONE;
    const shown = usageChunk
      ? { ...repaired({ ...usageChunk, choices: [] }, [], true), usage: priced(usageChunk["usage"], cost) }
      : { ...repaired({ ...head, choices: [] }, [], true), usage: wireUsage(usage(), cost) };
    return `${last}data: ${JSON.stringify(shown)}\n\n${DONE}`;
  }

  // Servers that end without a word of how: clients take what has no `finish_reason` for broken off.
  function untold(): string {
    const open = [...ended].filter(([, said]) => !said);
    if (open.length === 0) return "";
    const choices = open.map(([index]) => ({ index, delta: {}, finish_reason: "stop" }));
    return `data: ${JSON.stringify(repaired(head, choices, asked))}\n\n`;
  }

  function repaired(chunk: Chunk, choices: Chunk[], withUsage: boolean): Chunk {
    const { usage: _usage, ...rest } = mendedHead(chunk);
    return {
      ...rest,
      id: typeof chunk["id"] === "string" && chunk["id"] ? chunk["id"] : String(head["id"] ?? context.requestId),
      object: "chat.completion.chunk",
      created: Number.isInteger(chunk["created"]) ? chunk["created"] : context.created,
      model: typeof chunk["model"] === "string" && chunk["model"] ? chunk["model"] : context.target.model,
      choices: choices.map((choice, index) => ({
        ...choice,
        ...(choice["logprobs"] === undefined ? {} : { logprobs: mendedLogprobs(choice["logprobs"]) }),
        index: Number.isInteger(choice["index"]) ? choice["index"] : index,
        delta: mendedDelta(
          fields(choice["delta"]),
          callsOf(choice["index"] ?? index),
          Boolean(choice["finish_reason"]),
        ),
        finish_reason: finish(choice["finish_reason"], choice["index"] ?? index),
      })),
      ...(withUsage ? { usage: null } : {}),
    };
  }

  function finish(reason: unknown, choice: unknown): FinishReason | null {
    if (!reason) return null;
    const said = finishOf(reason);
    return hidesCalls(said, choice) ? "tool_calls" : said;
  }

  function callsOf(choice: unknown): Calls {
    const known = calls.get(choice) ?? noCalls();
    if (calls.size < MOST_CHOICES) calls.set(choice, known);
    return known;
  }

  function usage(): TokenUsage {
    return onTier(metered ?? estimateUsage(context.request, letters), tier);
  }

  // Line ends may be CRLF or CR (WHATWG HTML, 9.2.5): one form makes the rest simple.
  function unified(chunk: Buffer): Buffer {
    const rest = half && chunk[0] === LF ? chunk.subarray(1) : chunk;
    half = chunk.at(-1) === CR;
    if (rest.indexOf(CR) < 0) return rest;
    return Buffer.from(rest.toString("latin1").replace(/\r\n?/g, "\n"), "latin1");
  }

  function keep(rest: Buffer): void {
    const all = kept + rest.length;
    if (all > MAX_EVENT) throw broken(`An event of the provider's stream is larger than ${MAX_EVENT} bytes.`);
    if (all > store.length) {
      const larger = Buffer.allocUnsafe(2 * all);
      store.copy(larger, 0, 0, kept);
      store = larger;
    }
    rest.copy(store, kept);
    kept = all;
  }

  function push(chunk: Buffer): void {
    const came = unified(chunk);
    if (kept > 0 && !endsEvent(store[kept - 1], came)) {
      keep(came);
      return;
    }
    const bytes = kept > 0 ? Buffer.concat([store.subarray(0, kept), came]) : came;
    kept = 0;
    // A character for each byte, so that places in the text are places in the bytes.
    const text = bytes.toString("latin1");
    const plain = isAscii(bytes);
    // Events that go as they are leave in one piece: [run, from) has been read and not yet written.
    let run = 0;
    let from = 0;
    try {
      while (!finished) {
        const alike = likeness ? likeness.endOf(text, from) : -1;
        if (likeness && alike >= 0) {
          letters += likeness.letters;
          from = alike;
          continue;
        }
        const at = text.indexOf("\n\n", from);
        if (at < 0) break;
        const end = at + 2;
        const instead = event(plain ? text.slice(from, end) : bytes.toString("utf8", from, end));
        // Made of the bytes: a part of the text would keep all of it as long as the stream lasts.
        if (usual) likeness = Likeness.of(bytes.toString("latin1", from, end));
        if (instead !== null) {
          if (from > run) emit(bytes.subarray(run, from));
          if (instead) emit(instead);
          run = end;
        }
        from = end;
      }
    } finally {
      // What came before an event that breaks the stream goes out too.
      if (from > run) emit(run === 0 && from === bytes.length ? bytes : bytes.subarray(run, from));
    }
    if (from < bytes.length) keep(bytes.subarray(from));
  }

  return {
    push,
    end() {
      if (finished) return;
      // A last event without its blank line is whole all the same if it is the end mark.
      if (dataOf(store.toString("utf8", 0, kept)) === "[DONE]") return emit(done());
      throw new UpstreamError(failure("truncated", "The provider's stream ended before its end mark."));
    },
    started: () => started,
    finished: () => finished,
    usage,
  };
}

const BYTE_ORDER_MARK = 0xfeff;

/** Something for the client that is neither a text nor a call. OpenRouter's first chunks name them, empty. */
function holdsMore({ audio, images, reasoning_details }: Chunk): boolean {
  return [audio, images, reasoning_details].some((held) => Object.keys(held ?? {}).length > 0);
}

// A piece of content and nothing else that would be counted or kept.
function onlyTalks(choice: Chunk | undefined): boolean {
  const { delta, finish_reason: reason, logprobs } = choice ?? {};
  if (reason !== null || logprobs || typeof fields(delta)["content"] !== "string") return false;
  return Object.entries(fields(delta)).every(([name, value]) => name === "content" || name === "role" || !value);
}

// OpenAI's own form, which simple clients take for the only one: one line, `data: ` before it, no `event:`, no `id:`, no byte order mark.
function isUsual(text: string): boolean {
  return text.startsWith("data: ") && text.indexOf("\n") === text.length - 2;
}

const CR = 0x0d;

// An event ends at an empty line, half of which may have come before.
function endsEvent(before: number | undefined, came: Buffer): boolean {
  return came.indexOf(BLANK_LINE) >= 0 || (came[0] === LF && before === LF);
}

/** The data of an event, its lines joined; null for comments and events without data. */
function dataOf(text: string): string | null {
  if (text.startsWith("data:")) {
    const end = text.indexOf("\n");
    // Nearly always one line.
    if (end < 0 || text.indexOf("data:", end) < 0) return text.slice(5, end < 0 ? undefined : end).trim();
  }
  const lines: string[] = [];
  for (const line of text.split("\n")) if (line.startsWith("data:")) lines.push(line.slice(5).trimStart());
  return lines.length > 0 ? lines.join("\n").trim() : null;
}

function parse(data: string): Chunk {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw broken("An event of the provider's stream is not valid JSON.");
  }
  if (typeof chunk !== "object" || chunk === null || Array.isArray(chunk)) {
    throw broken("An event of the provider's stream is no JSON object.");
  }
  return chunk as Chunk;
}

function priced(usage: unknown, cost: number | null | undefined): unknown {
  const shown = mendedUsage(usage as Chunk);
  return cost === undefined ? shown : { ...shown, cost_usd: cost };
}

function broken(message: string): UpstreamError {
  return new UpstreamError(failure("protocol", message));
}
