// Anthropic fetches images itself, but by https alone: what a request names otherwise is fetched here, as for the wires that take bytes, or refused.
import type { ChatRequest, ContentPart, Message } from "#daemon/gateway/format/request.ts";
import type { WireIo } from "../wire.ts";

/** The request with those images put in; the same object where there are none. */
export function withImages(request: ChatRequest, io: WireIo): ChatRequest | Promise<ChatRequest> {
  return request.messages.some(namesImage) ? fetched(request, io) : request;
}

async function fetched(request: ChatRequest, io: WireIo): Promise<ChatRequest> {
  const messages = request.messages.map(async (message, index): Promise<Message> => {
    if (message.role !== "user" || !namesImage(message)) return message;
    const parts = (message.content as ContentPart[]).map((part, at) =>
      put(part, `messages[${index}].content[${at}]`, io),
    );
    return { ...message, content: await Promise.all(parts) };
  });
  return { ...request, messages: await Promise.all(messages) };
}

async function put(part: ContentPart, param: string, io: WireIo): Promise<ContentPart> {
  if (!isPlain(part)) return part;
  const { mediaType, data } = await io.fetchImage(part.image_url.url, `${param}.image_url.url`);
  return { ...part, image_url: { url: `data:${mediaType};base64,${data.toString("base64")}` } };
}

function namesImage({ role, content }: Message): boolean {
  return role === "user" && Array.isArray(content) && content.some(isPlain);
}

function isPlain(part: ContentPart): part is ContentPart & { type: "image_url" } {
  return part.type === "image_url" && !/^(https|data):/i.test(part.image_url.url);
}
