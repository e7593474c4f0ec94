// What goes to an OpenAI-format upstream: the client's own bytes with single top-level members exchanged. Serialising a 64 kB body
// again costs a quarter of a request's CPU; it also would not be the body that the client's prompt cache has seen.
import { scanBody } from "./scan.ts";

const MAX_DEPTH = 1000;

/**
 * The body with members set (a value) or removed (undefined). Falls back to serialising `parsed` where the bytes cannot be trusted
 * to mean what was parsed (a key that stands twice) or there are none.
 */
export function forwardBody(
  raw: Buffer | null,
  parsed: object,
  changes: Readonly<Record<string, unknown>>,
): Buffer | string {
  if (raw === null) return JSON.stringify({ ...parsed, ...changes });
  const scan = scanBody(raw, MAX_DEPTH);
  if (scan.duplicate) return JSON.stringify({ ...parsed, ...changes });

  const edits: { start: number; end: number; text: string }[] = [];
  let added = "";
  for (const [key, value] of Object.entries(changes)) {
    const member = scan.members.get(key);
    if (value === undefined) {
      // Taking a member out moves commas: rare enough to serialise again.
      if (member) return JSON.stringify({ ...parsed, ...changes });
    } else if (member) edits.push({ start: member.start, end: member.end, text: JSON.stringify(value) });
    else added += `${JSON.stringify(key)}:${JSON.stringify(value)},`;
  }
  if (added) {
    const open = raw.indexOf(0x7b) + 1;
    edits.push({ start: open, end: open, text: scan.members.size === 0 ? added.slice(0, -1) : added });
  }
  if (edits.length === 0) return raw;
  return splice(raw, edits);
}

function splice(raw: Buffer, edits: { start: number; end: number; text: string }[]): Buffer {
  edits.sort((a, b) => a.start - b.start);
  let length = raw.length;
  for (const { start, end, text } of edits) length += Buffer.byteLength(text) - (end - start);
  const body = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const { start, end, text } of edits) {
    to += raw.copy(body, to, from, start);
    to += body.write(text, to);
    from = end;
  }
  raw.copy(body, to, from);
  return body;
}
