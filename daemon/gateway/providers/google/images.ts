// Images that Gemini drew; those of its thoughts are drafts and are not shown.
import { fields, list, string } from "#contract/json-object.ts";
import type { DrawnImage } from "#daemon/gateway/format/completion.ts";
import { imageUrl } from "../content.ts";
import { signatureBack, signatureIn, signed } from "./calls.ts";

/** The image in a content part; null for other parts. `index`: how many came before it. */
export function imageIn(part: Record<string, unknown>, index: number): DrawnImage | null {
  const { mimeType, data } = fields(part["inlineData"]);
  if (part["thought"] === true || !string(mimeType).startsWith("image/") || string(data) === "") return null;
  const signature = signatureIn(part);
  const url = `data:${string(mimeType)};base64,${string(data)}`;
  return { type: "image_url", image_url: { url }, index, ...(signature ? { extra_content: signed(signature) } : {}) };
}

/** Those of an earlier turn, as a client sends them back: without them nobody can ask for a change of what was drawn. Unchecked. */
export function imagesBack(images: unknown): object[] {
  return list(images).flatMap((one): object[] => {
    const image = fields(one);
    const url = string(fields(image["image_url"])["url"]);
    const read = url.startsWith("data:image/") ? imageUrl(url, "messages") : null;
    const signature = signatureBack(image["extra_content"]);
    if (!read) return [];
    return [
      {
        inlineData: { mimeType: read.mediaType, data: read.data },
        ...(signature ? { thoughtSignature: signature } : {}),
      },
    ];
  });
}
