// OpenAI's own stream: the vendor's bytes go through as they came, event by event. Each event is parsed, for metering and because a
// broken one must end the stream; it is written anew only where it has to change: the usage chunk (kept back, priced, and shown only
// to who asked), and chunks of imitations that leave out what the specification requires.
import { isAscii } from "node:buffer";
import { fields } from "#contract/json-object.ts";
import { estimateUsage } from "#daemon/gateway/format/estimate.ts";
import { DONE } from "#daemon/gateway/format/sse.ts";
import { onTier, type TokenUsage, usageFromWire, wireUsage } from "#daemon/gateway/format/usage.ts";
import { brokenStream, failure, UpstreamError } from "../failure.ts";
import { secretsOf } from "../secrets.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Emit, ReadContext, StreamDecoder } from "../wire.ts";
import { mendedHead, mendedUsage, soundHead } from "./conform.ts";
import { errorIn, streamFailure } from "./errors.ts";
import { EventBytes } from "./event-bytes.ts";
import { Likeness } from "./likeness.ts";
import { thoughtsInTotal } from "./services.ts";
import { type Chunk, StreamedChoices } from "./streamed-choices.ts";

export function openaiDecoder(context: ReadContext, emit: Emit, thoughts: ThoughtMemory): StreamDecoder {
  const asked = context.request.stream_options?.include_usage === true;
  const events = new EventBytes();
  const told = new StreamedChoices(context);
  let finished = false;
  let metered: TokenUsage | null = null;
  let usageChunk: Chunk | null = null;
  let head: Chunk = {};
  let tier: unknown;
  /** Azure's word on the prompt, in a chunk without choices of its own: no part of the answer, and read by few. It goes with the next one. */
  let filters: unknown;
  /** What nearly all events that say something look like. */
  let likeness: Likeness | null = null;
  /** The last event was sound and said nothing but a piece of one choice's content. */
  let usual = false;

  /** What goes out instead of the event's bytes; null: the bytes as they are. */
  function event(bytes: string): string | null {
    usual = false;
    const text = bytes.charCodeAt(0) === BYTE_ORDER_MARK ? bytes.slice(1) : bytes;
    const data = dataOf(text);
    // llama.cpp's older servers, and those built upon them, say an error in a field of its own.
    if (data === null && text.startsWith("error:")) {
      const said = text.slice("error:".length).trim();
      const error = errorIn(said);
      throw new UpstreamError(streamFailure(error === undefined ? said : error, secretsOf(context.target)));
    }
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
        throw brokenStream("A choice of the provider's stream is no object.");
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
    // Azure's first chunk and the usage chunk are no part of the answer; what was found by a moderation that the client asked for is.
    if (choices.length === 0) {
      filters ??= chunk["prompt_filter_results"];
      const shownLater = counted && asked;
      return chunk["moderation"] && !shownLater ? `data: ${JSON.stringify(repaired(chunk, [], asked))}\n\n` : "";
    }
    if (!head["id"]) head = chunk;
    const counts = usage !== null && usage !== undefined;
    if (told.fits(choices, !filters && !counts && chunk["object"] === "chat.completion.chunk" && soundHead(chunk))) {
      if (!isUsual(bytes)) return `data: ${data.replaceAll("\n", " ")}\n\n`;
      // Not before the stream has begun: an empty content, as first chunks have it, begins none, and those that are like it do.
      usual = told.started && choices.length === 1 && !given && onlyTalks(choices[0]);
      return null;
    }
    const shown = filters ? { prompt_filter_results: filters, ...chunk } : chunk;
    filters = undefined;
    const frame = `data: ${JSON.stringify(repaired(shown, choices, asked))}\n\n`;
    // Perplexity's end mark: no other follows.
    return chunk["object"] === "chat.completion.done" ? frame + done() : frame;
  }

  function done(): string {
    // An end alone is no answer, as a whole one without choices is none.
    if (told.none)
      throw new UpstreamError(failure("protocol", "The provider's stream has no choices.", { upstreamStatus: 200 }));
    finished = true;
    told.keepThoughts(thoughts);
    const cost = context.cost(usage());
    const open = told.untold();
    const last = open.length > 0 ? `data: ${JSON.stringify(repaired(head, open, asked))}\n\n` : "";
    if (!asked) return last + DONE;
    const shown = usageChunk
      ? { ...repaired({ ...usageChunk, choices: [] }, [], true), usage: priced(usageChunk["usage"], cost) }
      : { ...repaired({ ...head, choices: [] }, [], true), usage: wireUsage(usage(), cost) };
    return `${last}data: ${JSON.stringify(shown)}\n\n${DONE}`;
  }

  function repaired(chunk: Chunk, choices: Chunk[], withUsage: boolean): Chunk {
    const { usage: _usage, ...rest } = mendedHead(chunk);
    return {
      ...rest,
      id: typeof chunk["id"] === "string" && chunk["id"] ? chunk["id"] : String(head["id"] ?? context.requestId),
      object: "chat.completion.chunk",
      created: Number.isInteger(chunk["created"]) ? chunk["created"] : context.created,
      model: typeof chunk["model"] === "string" && chunk["model"] ? chunk["model"] : context.target.model,
      choices: choices.map((choice, place) => told.mended(choice, place)),
      ...(withUsage ? { usage: null } : {}),
    };
  }

  function usage(): TokenUsage {
    return onTier(metered ?? estimateUsage(context.request, told.letters), tier);
  }

  function push(chunk: Buffer): void {
    const bytes = events.take(chunk);
    if (!bytes) return;
    // A character for each byte, so that places in the text are places in the bytes.
    const text = bytes.toString("latin1");
    let plain: boolean | undefined;
    // Events that go as they are leave in one piece: [run, from) has been read and not yet written.
    let run = 0;
    let from = 0;
    try {
      while (!finished && from < text.length) {
        const alike = likeness ? likeness.endOf(text, from) : -1;
        if (likeness && alike >= 0) {
          told.letters += likeness.letters;
          from = alike;
          continue;
        }
        const at = text.indexOf("\n\n", from);
        if (at < 0) break;
        const end = at + 2;
        plain ??= isAscii(bytes);
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
    if (from < bytes.length) events.keep(bytes.subarray(from));
  }

  return {
    push,
    end() {
      if (finished) return;
      // A last event without its blank line is whole all the same if it is the end mark.
      if (dataOf(events.rest) === "[DONE]") return emit(done());
      throw new UpstreamError(failure("truncated", "The provider's stream ended before its end mark."));
    },
    started: () => told.started || finished,
    finished: () => finished,
    usage,
  };
}

const BYTE_ORDER_MARK = 0xfeff;

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
    throw brokenStream("An event of the provider's stream is not valid JSON.");
  }
  if (typeof chunk !== "object" || chunk === null || Array.isArray(chunk)) {
    throw brokenStream("An event of the provider's stream is no JSON object.");
  }
  return chunk as Chunk;
}

function priced(usage: unknown, cost: number | null | undefined): unknown {
  const shown = mendedUsage(usage as Chunk);
  return cost === undefined ? shown : { ...shown, cost_usd: cost };
}
