// Changes a YAML file that a person wrote: its comments, its order and the ends of its lines stay.
import { type Document, parseDocument } from "yaml";

/** The text after `edit`. */
export function edited(before: string, edit: (document: Document) => void): string {
  const windows = before.includes("\r\n");
  // Else the ends stay in comments, and in them alone.
  const document = parseDocument(windows ? before.replaceAll("\r\n", "\n") : before);
  edit(document);
  const after = document.toString({ lineWidth: 0 });
  return windows ? after.replaceAll("\n", "\r\n") : after;
}
