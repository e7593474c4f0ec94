// OpenAI's messages as Anthropic's: system apart, alternating turns, tool results first in the user's turn, all results of one turn together.
import type { ReasoningDetail } from "#daemon/gateway/format/completion.ts";
import { type TextReader, textReader } from "#daemon/gateway/format/exact-json.ts";
import type { ChatRequest, Message, UserMessage } from "#daemon/gateway/format/request.ts";
import {
  argumentsOf,
  type CacheMark,
  cacheMark,
  fileOf,
  imageUrl,
  invalid,
  messageMark,
  partsOf,
  textOf,
} from "../content.ts";
import { distinctIds } from "../distinct-ids.ts";
import { type ClaudeThoughts, woven } from "../thoughts/claude.ts";
import { portableId, portableName } from "../tool-id.ts";

export interface Turn {
  readonly role: "user" | "assistant" | "system";
  content: unknown[];
}

/**
 * Anthropic's `system` and `messages`. Throws UpstreamError (`invalid`) for what it cannot say.
 * @param thoughts null where the answer will not reason.
 * @param hearsSystemLater what the system says within the conversation stays there, so that what came before it is still what a prompt cache
 * and signed thoughts know; else it goes to `system`.
 */
export function anthropicMessages(
  request: ChatRequest,
  thoughts: ClaudeThoughts | null,
  hearsSystemLater: boolean,
): { system: unknown[]; turns: Turn[] } {
  const system: unknown[] = [];
  const turns: Turn[] = [];
  const read = textReader();
  let later: unknown[] = [];
  // The service takes it between a user's turn and the assistant's, or last.
  const sayLater = () => {
    if (turns.at(-1)?.role === "user" && later.length > 0) turns.push({ role: "system", content: later });
    else system.push(...later);
    later = [];
  };
  for (const [index, message] of distinctIds(request.messages).entries()) {
    if (message.role === "system" || message.role === "developer") {
      const said = hearsSystemLater && turns.length > 0 ? later : system;
      for (const part of partsOf(message.content)) {
        if (part.type === "text" && !blank(part.text))
          said.push({ type: "text", text: part.text, ...cached(cacheMark(part)) });
      }
      markLast(said, message);
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks = blocksOf(message, index, thoughts, read);
    markLast(blocks, message);
    if (role === "assistant" && blocks.length > 0) sayLater();
    const last = turns.at(-1);
    if (last?.role === role) for (const block of blocks) last.content.push(block);
    else if (blocks.length > 0) turns.push({ role, content: blocks });
  }
  sayLater();
  for (const turn of turns) if (turn.role === "user") turn.content = resultsFirst(turn.content);
  const last = turns.at(-1);
  if (last?.role === "assistant") endClean(last.content);
  return { system, turns };
}

// A last turn of the assistant's is to be gone on with; the service refuses one that ends in white space.
function endClean(content: unknown[]): void {
  const last = content.at(-1) as { type: string; text: string };
  if (last.type === "text") content[content.length - 1] = { ...last, text: last.text.trimEnd() };
}

// Results of tools stand before everything else in a user's turn.
function resultsFirst(content: readonly unknown[]): unknown[] {
  const isResult = (block: unknown) => (block as { type: string }).type === "tool_result";
  return [...content.filter(isResult), ...content.filter((block) => !isResult(block))];
}

function blocksOf(message: Message, index: number, thoughts: ClaudeThoughts | null, read: TextReader): unknown[] {
  switch (message.role) {
    case "user":
      return userBlocks(message, index);
    case "tool": {
      const id = portableId(message.tool_call_id, 64);
      return [
        { type: "tool_result", tool_use_id: id, content: textOf(message.content), ...cached(messageMark(message)) },
      ];
    }
    case "assistant": {
      const blocks: unknown[] = [];
      const text = textOf(message.content) || (message.refusal ?? "");
      if (!blank(text)) blocks.push({ type: "text", text });
      for (const call of message.tool_calls ?? []) {
        if (call.type !== "function") continue;
        const { arguments: args } = call.function;
        const name = portableName(call.function.name, 128);
        blocks.push({ type: "tool_use", id: portableId(call.id, 64), name, input: argumentsOf(args, read) });
      }
      return thoughts ? woven(blocks, thoughts.of(message), thinkingBlock) : blocks;
    }
    default:
      return [];
  }
}

function thinkingBlock(detail: ReasoningDetail): unknown {
  if (detail.type === "reasoning.encrypted") return { type: "redacted_thinking", data: detail.data };
  return { type: "thinking", thinking: detail.text, signature: detail.signature };
}

// The service refuses texts of white space.
function blank(text: string): boolean {
  return text.trim() === "";
}

/** The block's `cache_control`. */
export function cached(mark: CacheMark): object {
  return mark ? { cache_control: { type: "ephemeral", ...mark } } : {};
}

// A message's own mark stands for its last block.
function markLast(blocks: unknown[], message: Message): void {
  const last = blocks.at(-1) as { type: string } | undefined;
  const mark = cacheMark(message);
  if (last && mark) blocks[blocks.length - 1] = { ...last, ...cached(mark) };
}

const imageTypes = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

function userBlocks(message: UserMessage, index: number): unknown[] {
  return partsOf(message.content).flatMap((part, at): unknown[] => {
    const param = `messages[${index}].content[${at}]`;
    switch (part.type) {
      case "text":
        return blank(part.text) ? [] : [{ type: "text", text: part.text, ...cached(cacheMark(part)) }];
      case "image_url": {
        const { url } = part.image_url;
        const inline = imageUrl(url, `${param}.image_url.url`);
        if (!inline) return [{ type: "image", source: { type: "url", url }, ...cached(cacheMark(part)) }];
        if (!imageTypes.has(inline.mediaType)) throw invalid(`${param}.image_url.url`, "is no PNG, JPEG, GIF or WebP");
        return [
          {
            type: "image",
            source: { type: "base64", media_type: inline.mediaType, data: inline.data },
            ...cached(cacheMark(part)),
          },
        ];
      }
      case "file": {
        const { mediaType, data, name } = fileOf(part, param);
        const base64 = { type: "base64", media_type: mediaType, data };
        if (imageTypes.has(mediaType)) return [{ type: "image", source: base64, ...cached(cacheMark(part)) }];
        const isText = mediaType.startsWith("text/") || mediaType === "application/json";
        if (mediaType !== "application/pdf" && !isText) {
          throw invalid(`${param}.file.file_data`, "is no PDF, text or image, and Anthropic takes nothing else");
        }
        const text = { type: "text", media_type: "text/plain", data: Buffer.from(data, "base64").toString() };
        return [
          {
            type: "document",
            source: isText ? text : base64,
            title: name,
            ...cached(cacheMark(part)),
          },
        ];
      }
      default:
        throw invalid(param, "is of a type that Anthropic does not take");
    }
  });
}
