// Images that Gemini drew; those of its thoughts are drafts and are not shown.
import type { DrawnImage } from "#daemon/gateway/format/completion.ts";
import { fields, string } from "../events.ts";

/** The image in a content part; null for other parts. `index`: how many came before it. */
export function imageIn(part: Record<string, unknown>, index: number): DrawnImage | null {
  const { mimeType, data } = fields(part["inlineData"]);
  if (part["thought"] === true || !string(mimeType).startsWith("image/") || string(data) === "") return null;
  return { type: "image_url", image_url: { url: `data:${string(mimeType)};base64,${string(data)}` }, index };
}
