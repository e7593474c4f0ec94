// OpenAI's messages as Converse's: system apart, strictly alternating turns, all results of one turn's calls in one user turn, images and
// documents as bytes.
import type { ReasoningDetail } from "#daemon/gateway/format/completion.ts";
import { type TextReader, textReader } from "#daemon/gateway/format/exact-json.ts";
import type { ChatRequest, ContentPart, Message, UserMessage } from "#daemon/gateway/format/request.ts";
import {
  argumentsOf,
  type CacheMark,
  CONTINUING,
  cacheMark,
  fileOf,
  imageUrl,
  invalid,
  messageMark,
  OPENING,
  partsOf,
  textOf,
} from "../content.ts";
import { distinctIds } from "../distinct-ids.ts";
import { type ClaudeThoughts, woven } from "../thoughts/claude.ts";
import { portableId, portableName } from "../tool-id.ts";
import type { WireIo } from "../wire.ts";

export interface ConverseTurn {
  readonly role: "user" | "assistant";
  content: Record<string, unknown>[];
}

export interface MessageOptions {
  /** Null where the answer will not reason. */
  readonly thoughts: ClaudeThoughts | null;
  /** The id of a tool call as the model takes it. */
  readonly idOf: (id: string) => string;
  /** The mark of what may be cached, as the model takes it; null where it takes none. */
  readonly markOf: (mark: CacheMark) => CacheMark;
  /** It takes results of tools beside other content in one turn. */
  readonly mixesResults: boolean;
}

/** A tool call's id as Converse takes it. */
export function converseId(id: string): string {
  return portableId(id, 64);
}

/** Throws UpstreamError (`invalid`) for what Converse cannot be told. */
export async function converseMessages(
  request: ChatRequest,
  io: WireIo,
  options: MessageOptions,
): Promise<{ system: Record<string, unknown>[]; turns: ConverseTurn[] }> {
  const system: Record<string, unknown>[] = [];
  const turns: ConverseTurn[] = [];
  const answered = new Set<ConverseTurn | undefined>();
  const read = textReader();
  for (const [index, message] of resultsFirst(distinctIds(request.messages).entries())) {
    if (message.role === "system" || message.role === "developer") {
      for (const part of partsOf(message.content)) {
        if (part.type !== "text" || part.text.trim() === "") continue;
        system.push({ text: part.text }, ...cachePoint(part, options));
      }
      if (system.length > 0 && cacheMark(message)) system.push(...cachePoint(message, options));
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks =
      message.role === "user" ? await userBlocks(message, index, io, options) : otherBlocks(message, options, read);
    if (blocks.length === 0) continue;
    const mark = message.role === "tool" ? messageMark(message) : cacheMark(message);
    if (mark) blocks.push(...cachePoint(message, options, mark));
    const last = turns.at(-1);
    const apart = message.role === "user" && !options.mixesResults && answered.has(last);
    if (apart) turns.push({ role: "assistant", content: [{ text: CONTINUING }] }, { role, content: blocks });
    else if (last?.role === role) for (const block of blocks) last.content.push(block);
    else turns.push({ role, content: blocks });
    if (message.role === "tool") answered.add(turns.at(-1));
  }
  // Converse refuses a conversation that the assistant begins.
  if (turns[0]?.role === "assistant") turns.unshift({ role: "user", content: [{ text: OPENING }] });
  nameApart(turns);
  for (const { content } of turns) introduce(content);
  const last = turns.at(-1);
  if (last?.role === "assistant") endClean(last.content);
  return { system, turns };
}

// Converse takes the results of a turn's calls in the turn behind it, and nowhere else: they come before what else was said in between.
function* resultsFirst(messages: Iterable<[number, Message]>): Generator<[number, Message]> {
  let others: [number, Message][] = [];
  for (const entry of messages) {
    const { role } = entry[1];
    if (role === "assistant") {
      yield* others;
      others = [];
    }
    if (role === "assistant" || role === "tool") yield entry;
    else others.push(entry);
  }
  yield* others;
}

// A last turn of the assistant's is to be gone on with; Claude refuses one that ends in white space.
function endClean(content: Record<string, unknown>[]): void {
  const text = content.at(-1)?.["text"];
  if (typeof text === "string") content[content.length - 1] = { text: text.trimEnd() };
}

function cachePoint(marked: object, { markOf }: MessageOptions, given = cacheMark(marked)): Record<string, unknown>[] {
  const mark = markOf(given);
  return mark ? [{ cachePoint: { type: "default", ...mark } }] : [];
}

// Converse refuses two documents of one name.
function nameApart(turns: readonly ConverseTurn[]): void {
  const names = new Set<string>();
  const copies = new Map<string, number>();
  for (const { content } of turns) {
    for (const block of content) {
      const document = block["document"] as { name: string } | undefined;
      if (!document) continue;
      const { name } = document;
      let copy = copies.get(name) ?? 1;
      while (names.has(document.name)) document.name = `${name} (${++copy})`;
      copies.set(name, copy);
      names.add(document.name);
    }
  }
}

// Nor does it take documents without a word beside them.
function introduce(content: Record<string, unknown>[]): void {
  const documents = content.filter((block) => "document" in block);
  if (documents.length === 0 || content.some((block) => "text" in block)) return;
  content.unshift({ text: documents.map(({ document }) => (document as { name: string }).name).join("\n") });
}

function otherBlocks(
  message: Message,
  { thoughts, idOf }: MessageOptions,
  read: TextReader,
): Record<string, unknown>[] {
  if (message.role === "tool") {
    const text = textOf(message.content);
    const content = [text.trim() === "" ? { json: {} } : { text }];
    return [{ toolResult: { toolUseId: idOf(message.tool_call_id), content } }];
  }
  if (message.role !== "assistant") return [];
  const blocks: Record<string, unknown>[] = [];
  const text = textOf(message.content) || (message.refusal ?? "");
  // Converse refuses blank texts.
  if (text.trim() !== "") blocks.push({ text });
  for (const call of message.tool_calls ?? []) {
    if (call.type !== "function") continue;
    const { arguments: args } = call.function;
    const name = portableName(call.function.name, 64);
    blocks.push({ toolUse: { toolUseId: idOf(call.id), name, input: argumentsOf(args, read) } });
  }
  return thoughts ? woven(blocks, thoughts.of(message), reasoningBlock) : blocks;
}

function reasoningBlock(detail: ReasoningDetail): Record<string, unknown> {
  if (detail.type === "reasoning.encrypted") return { reasoningContent: { redactedContent: detail.data } };
  return { reasoningContent: { reasoningText: { text: detail.text, signature: detail.signature } } };
}

async function userBlocks(
  message: UserMessage,
  index: number,
  io: WireIo,
  options: MessageOptions,
): Promise<Record<string, unknown>[]> {
  const parts = partsOf(message.content);
  const made = await Promise.all(parts.map((part, at) => userBlock(part, `messages[${index}].content[${at}]`, io)));
  return made.flatMap((block, at) => {
    const part = parts[at];
    return block === null || !part ? [] : [block, ...cachePoint(part, options)];
  });
}

const formats: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpeg",
  "image/gif": "gif",
  "image/webp": "webp",
};

const office = "application/vnd.openxmlformats-officedocument";
const documents: Readonly<Record<string, string>> = {
  "application/pdf": "pdf",
  "text/csv": "csv",
  "application/msword": "doc",
  [`${office}.wordprocessingml.document`]: "docx",
  "application/vnd.ms-excel": "xls",
  [`${office}.spreadsheetml.sheet`]: "xlsx",
  "text/html": "html",
  "text/plain": "txt",
  "text/markdown": "md",
};

async function userBlock(part: ContentPart, param: string, io: WireIo): Promise<Record<string, unknown> | null> {
  switch (part.type) {
    case "text":
      return part.text.trim() === "" ? null : { text: part.text };
    case "image_url": {
      const { url } = part.image_url;
      const place = `${param}.image_url.url`;
      const image = imageUrl(url, place) ?? (await fetched(url, place, io));
      const format = formats[image.mediaType];
      if (!format) throw invalid(place, "is no PNG, JPEG, GIF or WebP");
      return { image: { format, source: { bytes: image.data } } };
    }
    case "file": {
      const { mediaType, data, name } = fileOf(part, param);
      const format = documents[mediaType];
      if (!format) {
        const taken = Object.values(documents).join(", ");
        throw invalid(`${param}.file.file_data`, `is ${mediaType}, and Bedrock takes ${taken}`);
      }
      // Letters, digits, hyphens, brackets, and no two blanks in a row; 200 of them, the number of a second one of that name included.
      const plain = name
        .replace(/\.(pdf|csv|docx?|xlsx?|html?|txt|md)$/i, "")
        .replaceAll(/[^A-Za-z0-9\s()[\]-]+/g, "-")
        .replaceAll(/\s+/g, " ")
        .trim()
        .slice(0, 190)
        .trimEnd();
      return { document: { format, name: plain || "file", source: { bytes: data } } };
    }
    default:
      throw invalid(param, "is of a type that Bedrock does not take here");
  }
}

async function fetched(url: string, param: string, io: WireIo): Promise<{ mediaType: string; data: string }> {
  const image = await io.fetchImage(url, param);
  return { mediaType: image.mediaType, data: image.data.toString("base64") };
}
