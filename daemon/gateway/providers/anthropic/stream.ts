// Anthropic's event stream in OpenAI's chunks. Usage is cumulative: message_start has the prompt's, message_delta corrects it and has the
// answer's. Only message_stop is an end.
import { fields, list, string } from "#contract/json-object.ts";
import type { ReasoningDetail } from "#daemon/gateway/format/completion.ts";
import { isCount } from "#daemon/gateway/format/usage.ts";
import { type ChunkStream, chunkStream } from "../chunks.ts";
import { type Event, jsonEvents } from "../events.ts";
import { brokenStream, failure, UpstreamError } from "../failure.ts";
import { keepThoughts, redactedThought, signedThought } from "../thoughts/claude.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { freshId } from "../tool-id.ts";
import type { Emit, ReadContext, StreamDecoder } from "../wire.ts";
import { anthropicError } from "./errors.ts";
import { type StreamedInput, streamedInput } from "./streamed-input.ts";
import { anthropicFinish, anthropicUsage, refusalIn } from "./usage.ts";

interface Block {
  readonly type: string;
  /** Of a tool's call, or of the tool that stands for the answer. */
  readonly input: StreamedInput | undefined;
  /** Thinking so far, and its signature (or what the service has encrypted). */
  thought: string;
  signature: string;
}

export function anthropicDecoder(context: ReadContext, emit: Emit, thoughts: ThoughtMemory): StreamDecoder {
  const chunks: ChunkStream = chunkStream(context, emit);
  const blocks = new Map<unknown, Block>();
  const { jsonTool, memberNames } = context.prepared;
  let counted: Record<string, unknown> = {};
  let answered = false;
  let called = false;
  /** Prose is kept back while an answer tool may still come. */
  let held = "";
  const details: ReasoningDetail[] = [];
  const ids: string[] = [];
  let open: string | null = null;
  let stop: unknown = null;
  let refusal = "";
  let stopped = false;
  /** Whether the answer's count is more than the placeholder that message_start has. */
  let answerCounted = false;

  function text(piece: string): void {
    if (jsonTool) held += piece;
    else chunks.text(piece);
  }

  function tool(block: Record<string, unknown>): Block {
    const input = block["input"];
    // Shown if no delta follows.
    const initial = input && Object.keys(fields(input)).length > 0 ? JSON.stringify(input) : undefined;
    const name = string(block["name"]);
    const names = memberNames?.get(name);
    if (name === jsonTool) {
      // A second one would be no JSON behind the first.
      if (answered) return blank("");
      answered = true;
      held = "";
      return blank("tool_use", streamedInput(chunks.text, names, initial));
    }
    called = true;
    const id = string(block["id"]) || freshId();
    ids.push(id);
    const call = chunks.toolCall(id, name);
    return blank(
      "tool_use",
      streamedInput((piece) => chunks.toolArguments(call, piece), names, initial),
    );
  }

  function close(block: Block, index: unknown): void {
    block.input?.close();
    if (block.signature === "") return;
    const place = typeof index === "number" ? index : details.length;
    if (block.type === "thinking") details.push(signedThought(block.thought, block.signature, place));
    else details.push(redactedThought(block.signature, place));
  }

  function delta(block: Block | undefined, part: Record<string, unknown>): void {
    switch (part["type"]) {
      case "text_delta":
        text(string(part["text"]));
        break;
      case "compaction_delta":
        text(string(part["content"]));
        break;
      case "thinking_delta":
        chunks.reasoning(string(part["thinking"]));
        if (block) block.thought += string(part["thinking"]);
        break;
      case "signature_delta":
        if (block?.type === "thinking") block.signature += string(part["signature"]);
        break;
      case "input_json_delta":
        block?.input?.write(string(part["partial_json"]));
    }
  }

  function event(one: Event): void {
    if (stopped) return;
    switch (one["type"]) {
      case "message_start": {
        const message = fields(one["message"]);
        // Proxies that try again are known to begin the same message twice, or another one within it.
        const id = string(message["id"]);
        if (open === id) return;
        if (open !== null) throw brokenStream("The provider's stream has two messages.");
        open = id;
        chunks.identify(id, string(message["model"]));
        counted = { ...fields(message["usage"]) };
        for (const part of list(message["content"]).map(fields))
          if (part["type"] === "tool_use") close(tool(part), null);
        return;
      }
      case "content_block_start": {
        const part = fields(one["content_block"]);
        const type = string(part["type"]);
        const block = type === "tool_use" ? tool(part) : blank(type);
        if (type === "redacted_thinking") block.signature = string(part["data"]);
        blocks.set(one["index"], block);
        if (type === "text") text(string(part["text"]));
        return;
      }
      case "content_block_delta":
        delta(blocks.get(one["index"]), fields(one["delta"]));
        return;
      case "content_block_stop": {
        const block = blocks.get(one["index"]);
        if (block) close(block, one["index"]);
        blocks.delete(one["index"]);
        return;
      }
      case "message_delta": {
        const usage = fields(one["usage"]);
        for (const [key, value] of Object.entries(usage)) if (value !== null) counted[key] = value;
        if (isCount(usage["output_tokens"])) answerCounted = true;
        stop = fields(one["delta"])["stop_reason"] ?? stop;
        refusal = refusalIn(fields(one["delta"])["stop_details"]) || refusal;
        return;
      }
      case "message_stop":
        stopped = true;
        for (const [index, block] of blocks) close(block, index);
        keepThoughts(thoughts, context.caller, ids, details);
        if (!answered) chunks.text(held);
        chunks.refusal(refusal);
        chunks.details(details);
        chunks.finish(anthropicFinish(stop, answered && !called));
        chunks.end(usage());
        return;
      case "error":
        throw new UpstreamError(anthropicError(one, context.target));
    }
  }

  function usage() {
    const known = anthropicUsage(counted, chunks.estimate);
    if (answerCounted && stop !== null) return known;
    const guess = chunks.estimate();
    return { ...known, output: Math.max(guess.output, known.output), reasoning: guess.reasoning, estimated: true };
  }

  const reader = jsonEvents(event);
  return {
    push: reader.push,
    end() {
      reader.end();
      if (!stopped) throw new UpstreamError(failure("truncated", "The provider's stream ended before its end mark."));
    },
    started: chunks.started,
    finished: chunks.finished,
    usage,
  };
}

function blank(type: string, input?: StreamedInput): Block {
  return { type, input, thought: "", signature: "" };
}
