// What goes to an OpenAI-format upstream: the client's own text with single top-level members exchanged. Serialising a 64 kB body
// again costs a quarter of a request's CPU; it also would not be the body that the client's prompt cache has seen.
import { scanMembers } from "./scan.ts";

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * The body with members set (a value) or removed (undefined). Falls back to serialising `parsed` where the text cannot be trusted
 * to mean what was parsed (a key that stands twice) or there is none.
 */
export function forwardBody(text: string | null, parsed: object, changes: Readonly<Record<string, unknown>>): string {
  const edits = text === null ? null : editsOf(text, parsed, changes);
  return text === null || edits === null ? JSON.stringify({ ...parsed, ...changes }) : edited(text, edits);
}

/** Null: it has to be serialised. */
function editsOf(text: string, parsed: object, changes: Readonly<Record<string, unknown>>): Edit[] | null {
  const names = Object.keys(changes);
  const { places, members } = scanMembers(text, names);
  if (members !== Object.keys(parsed).length) return null;
  const edits: Edit[] = [];
  let added = "";
  for (const [at, name] of names.entries()) {
    const place = places[at];
    const value = changes[name];
    // Written with escapes. Taking a member out moves commas: rare enough to serialise again.
    if (Object.hasOwn(parsed, name) && (place === undefined || value === undefined)) return null;
    if (place) edits.push({ ...place, text: JSON.stringify(value) });
    else if (value !== undefined) added += `${JSON.stringify(name)}:${JSON.stringify(value)},`;
  }
  if (added) {
    const open = text.indexOf("{") + 1;
    edits.push({ start: open, end: open, text: members === 0 ? added.slice(0, -1) : added });
  }
  return edits.sort((a, b) => a.start - b.start);
}

function edited(text: string, edits: readonly Edit[]): string {
  let body = "";
  let from = 0;
  for (const { start, end, text: put } of edits) {
    body += text.slice(from, start) + put;
    from = end;
  }
  return body + text.slice(from);
}
