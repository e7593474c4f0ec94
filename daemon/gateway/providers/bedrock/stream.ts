// Converse's event stream in OpenAI's chunks. Text has no block start; usage comes in `metadata`, after `messageStop` as a rule.
import { fields, string } from "#contract/json-object.ts";
import type { ReasoningDetail } from "#daemon/gateway/format/completion.ts";
import { isCount, onTier } from "#daemon/gateway/format/usage.ts";
import { type StreamedInput, streamedInput } from "../anthropic/streamed-input.ts";
import { chunkStream } from "../chunks.ts";
import { jsonEvent } from "../events.ts";
import { failure, givenUp, UpstreamError } from "../failure.ts";
import { keepThoughts, redactedThought, signedThought } from "../thoughts/claude.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { freshId } from "../tool-id.ts";
import type { Emit, ReadContext, StreamDecoder } from "../wire.ts";
import { exceptionFailure } from "./errors.ts";
import { type Frame, frameReader } from "./frames.ts";
import { thoughtFormat } from "./models.ts";
import { converseFinish, converseUsage, isGivenUp } from "./usage.ts";

/** A block of thinking as it comes. */
interface Thought {
  text: string;
  signature: string;
  /** What the service has encrypted, in pieces. */
  redacted: string[];
}

/** The events that an answer is made of. */
const READ = new Set(["contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]);

// Each piece of bytes is base64 by itself.
function joined(pieces: readonly string[]): string {
  if (pieces.length === 1) return pieces[0] ?? "";
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64"))).toString("base64");
}

export function bedrockDecoder(context: ReadContext, emit: Emit, memory: ThoughtMemory): StreamDecoder {
  const chunks = chunkStream(context, emit);
  const { jsonTool, memberNames } = context.prepared;
  const format = thoughtFormat(context.target.model);
  /** Of the blocks that call tools. */
  const inputs = new Map<unknown, StreamedInput>();
  const thoughts = new Map<unknown, Thought>();
  const details: ReasoningDetail[] = [];
  const ids: string[] = [];
  let answered = false;
  let called = false;
  /** Prose is kept back while an answer tool may still come. */
  let held = "";
  let stop: string | null = null;
  let more: unknown;
  let tier: unknown;
  let counted: Record<string, unknown> = {};

  function start(event: Record<string, unknown>): void {
    const use = fields(fields(event["start"])["toolUse"]);
    const name = string(use["name"]);
    // What Bedrock calls by itself (web grounding) is no call for the client.
    if (name === "" || use["type"] === "server_tool_use") return;
    const names = memberNames?.get(name);
    if (name === jsonTool) {
      // A second one would be no JSON behind the first.
      if (answered) return;
      answered = true;
      held = "";
      inputs.set(event["contentBlockIndex"], streamedInput(chunks.text, names));
      return;
    }
    called = true;
    const id = string(use["toolUseId"]) || freshId();
    ids.push(id);
    const call = chunks.toolCall(id, name);
    inputs.set(
      event["contentBlockIndex"],
      streamedInput((piece) => chunks.toolArguments(call, piece), names),
    );
  }

  function delta(event: Record<string, unknown>): void {
    const part = fields(event["delta"]);
    if (typeof part["text"] === "string") {
      if (jsonTool) held += part["text"];
      else chunks.text(part["text"]);
    } else if (part["reasoningContent"]) think(event["contentBlockIndex"], fields(part["reasoningContent"]));
    else if (part["toolUse"]) inputs.get(event["contentBlockIndex"])?.write(string(fields(part["toolUse"])["input"]));
  }

  function think(index: unknown, part: Record<string, unknown>): void {
    const thought = thoughts.get(index) ?? { text: "", signature: "", redacted: [] };
    thoughts.set(index, thought);
    thought.text += string(part["text"]);
    thought.signature += string(part["signature"]);
    const sealed = string(part["redactedContent"]);
    if (sealed !== "") thought.redacted.push(sealed);
    chunks.reasoning(string(part["text"]));
  }

  function thoughtEnds(index: unknown): void {
    const thought = thoughts.get(index);
    thoughts.delete(index);
    if (!thought || (thought.signature === "" && thought.redacted.length === 0)) return;
    const place = typeof index === "number" ? index : details.length;
    const { text, signature, redacted } = thought;
    details.push(
      signature === ""
        ? redactedThought(joined(redacted), place, format)
        : signedThought(text, signature, place, format),
    );
  }

  function take(frame: Frame): void {
    if (chunks.finished()) return;
    if (frame.messageType !== "event") {
      throw new UpstreamError(exceptionFailure(frame.type, frame.payload, context.target));
    }
    // What is new may hold anything.
    if (!READ.has(frame.type)) return;
    const event = jsonEvent(frame.payload);
    switch (frame.type) {
      case "contentBlockStart":
        start(event);
        break;
      case "contentBlockDelta":
        delta(event);
        break;
      case "contentBlockStop":
        thoughtEnds(event["contentBlockIndex"]);
        inputs.get(event["contentBlockIndex"])?.close();
        inputs.delete(event["contentBlockIndex"]);
        break;
      case "messageStop":
        stop = string(event["stopReason"]);
        more = event["additionalModelResponseFields"];
        break;
      case "metadata":
        counted = { ...counted, ...fields(event["usage"]) };
        tier = fields(event["serviceTier"])["type"];
        chunks.served(tier);
        break;
    }
    if (stop !== null && (isCount(counted["inputTokens"]) || isCount(counted["outputTokens"]))) complete(stop);
  }

  const usageSoFar = () => onTier(converseUsage(counted, more, chunks.estimate), tier);

  function complete(reason: string): void {
    keepThoughts(memory, context.caller, ids, details);
    if (!answered) chunks.text(held);
    const usage = usageSoFar();
    if (isGivenUp(reason) && !chunks.answered()) throw givenUp(reason, usage);
    chunks.details(details);
    chunks.finish(converseFinish(reason, answered && !called));
    chunks.end(usage);
  }

  const reader = frameReader(take);
  return {
    push: reader.push,
    end() {
      if (chunks.finished()) return;
      // Some recordings end without metadata: the message is whole, its usage a guess.
      if (stop !== null && reader.whole()) {
        complete(stop);
        return;
      }
      throw new UpstreamError(failure("truncated", "The provider's stream ended before its end mark."));
    },
    started: chunks.started,
    finished: chunks.finished,
    usage: usageSoFar,
  };
}
