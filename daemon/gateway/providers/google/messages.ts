// OpenAI's messages as Gemini's contents: system apart, roles user and model, results of one turn's calls together, images as bytes.
import { isRounded, objectOf, type TextReader, textReader } from "#daemon/gateway/format/exact-json.ts";
import type { AssistantMessage, ChatRequest, ContentPart, UserMessage } from "#daemon/gateway/format/request.ts";
import { argumentsOf, fileOf, imageUrl, invalid, OPENING, partsOf, textOf } from "../content.ts";
import { distinctIds } from "../distinct-ids.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { isOurs, signatureOf } from "../tool-id.ts";
import type { WireIo } from "../wire.ts";
import { signatureBack } from "./calls.ts";
import { imagesBack } from "./images.ts";

export interface GeminiContent {
  readonly role: "user" | "model";
  readonly parts: unknown[];
}

/** What Google documents for calls whose signature is lost: Gemini 3 refuses them otherwise. */
const NO_SIGNATURE = "skip_thought_signature_validator";

export interface MessageOptions {
  readonly signatures: ThoughtMemory;
  readonly caller: string;
  /** Gemini 3 demands a signature on the first call of a turn. */
  readonly signed: boolean;
  /** A tool's name as Gemini is told. */
  readonly nameOf: (own: string) => string;
  readonly io: WireIo;
}

/** Throws UpstreamError (`invalid`) for what Gemini cannot be told. */
export async function geminiMessages(
  request: ChatRequest,
  options: MessageOptions,
): Promise<{ system: unknown[]; contents: GeminiContent[] }> {
  const system: unknown[] = [];
  const contents: GeminiContent[] = [];
  const read = textReader();
  const calls = new Map<string, { readonly name: string; readonly place: number }>();
  /** Of each result, the place of its call: Gemini tells results of one function apart by their order. */
  const places = new Map<unknown, number>();
  const add = (role: GeminiContent["role"], parts: unknown[]) => {
    if (parts.length === 0) return;
    const last = contents.at(-1);
    if (last?.role === role) for (const part of parts) last.parts.push(part);
    else contents.push({ role, parts });
  };
  for (const [index, message] of distinctIds(request.messages).entries()) {
    switch (message.role) {
      case "system":
      case "developer": {
        const text = textOf(message.content);
        if (text !== "") system.push({ text });
        break;
      }
      case "user":
        add("user", await userParts(message, index, options.io));
        break;
      case "assistant":
        for (const call of message.tool_calls ?? [])
          if (call.type === "function") calls.set(call.id, { name: call.function.name, place: calls.size });
        add("model", modelParts(message, request.messages[index] as AssistantMessage, options, read));
        break;
      case "tool": {
        const { name, place } = calls.get(message.tool_call_id) ?? { name: "", place: 0 };
        const response = resultOf(textOf(message.content), read);
        const result = { functionResponse: { ...wireId(message.tool_call_id), name: options.nameOf(name), response } };
        places.set(result, place);
        add("user", [result]);
      }
    }
  }
  // Gemini refuses calls that follow neither a user's turn nor a result.
  if (contents[0]?.role === "model" && contents[0].parts.some((part) => "functionCall" in (part as object))) {
    contents.unshift({ role: "user", parts: [{ text: OPENING }] });
  }
  for (const { parts } of contents) sortResults(parts, places);
  return { system, contents };
}

// Results in the order of their calls, everything else where it stands.
function sortResults(parts: unknown[], places: ReadonlyMap<unknown, number>): void {
  const results = parts.filter((part) => places.has(part));
  results.sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
  let sorted = 0;
  for (const [at, part] of parts.entries()) if (places.has(part)) parts[at] = results[sorted++];
}

// Ids that this gateway made mean nothing to Gemini.
function wireId(id: string): { id: string } | object {
  return isOurs(id) ? {} : { id };
}

// `given`: with the ids that the client knows, by which signatures are found.
function modelParts(
  message: AssistantMessage,
  given: AssistantMessage,
  { signatures, caller, signed, nameOf }: MessageOptions,
  read: TextReader,
): unknown[] {
  const parts: unknown[] = [];
  const text = textOf(message.content) || (message.refusal ?? "");
  const thought = signatureBack(message.extra_content);
  if (text !== "") parts.push({ text, ...(thought ? { thoughtSignature: thought } : {}) });
  for (const image of imagesBack(message.images)) parts.push(image);
  let first = true;
  for (const [at, call] of (message.tool_calls ?? []).entries()) {
    if (call.type !== "function") continue;
    const { name, arguments: args } = call.function;
    const id = given.tool_calls?.[at]?.id ?? call.id;
    const known = signatureOf(id) ?? signatureBack(call.extra_content) ?? signatures.recall(caller, id);
    const signature = known || (signed && first ? NO_SIGNATURE : undefined);
    first = false;
    parts.push({
      functionCall: { ...wireId(call.id), name: nameOf(name), args: argumentsOf(args, read) },
      ...(signature ? { thoughtSignature: signature } : {}),
    });
  }
  return parts;
}

// Gemini wants an object: a result that is one stays one, unless Google's numbers, which are doubles, would change it, or a `$ref` stands in it (a
// schema that was read), which Gemini takes for the name of a part and refuses.
function resultOf(text: string, read: TextReader): Record<string, unknown> {
  if (text.includes('"$ref"')) return { result: text };
  const value = read(text);
  if (value !== text && isRounded(text)) return { result: text };
  return objectOf(value) ?? { result: value };
}

async function userParts(message: UserMessage, index: number, io: WireIo): Promise<unknown[]> {
  const parts = partsOf(message.content);
  const made = await Promise.all(parts.map((part, at) => userPart(part, `messages[${index}].content[${at}]`, io)));
  return made.filter((part) => part !== null);
}

async function userPart(part: ContentPart, param: string, io: WireIo): Promise<unknown> {
  switch (part.type) {
    case "text":
      return part.text === "" ? null : { text: part.text };
    case "image_url": {
      const { url } = part.image_url;
      const place = `${param}.image_url.url`;
      const inline = imageUrl(url, place);
      if (inline) return { inlineData: { mimeType: inline.mediaType, data: inline.data } };
      if (url.startsWith("gs://") || /^https:\/\/generativelanguage\.googleapis\.com\//.test(url)) {
        return { fileData: { fileUri: url } };
      }
      const image = await io.fetchImage(url, place);
      return { inlineData: { mimeType: image.mediaType, data: image.data.toString("base64") } };
    }
    case "file": {
      const { mediaType, data } = fileOf(part, param);
      return { inlineData: { mimeType: mediaType, data } };
    }
    default:
      throw invalid(param, "is of a type that Gemini does not take here");
  }
}
