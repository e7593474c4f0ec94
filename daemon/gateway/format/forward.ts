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

/** In their order in the text; null: it has to be serialised. */
function editsOf(text: string, parsed: object, changes: Readonly<Record<string, unknown>>): Edit[] | null {
  const { places, members } = scanMembers(text, Object.keys(changes));
  if (members !== Object.keys(parsed).length) return null;
  const edits: Edit[] = [];
  for (const { name, start, end } of places) {
    // Taking a member out moves commas: rare enough to serialise again.
    if (changes[name] === undefined) return null;
    edits.push({ start, end, text: JSON.stringify(changes[name]) });
  }
  let added = "";
  for (const name in changes) {
    if (places.some((place) => place.name === name)) continue;
    // Its key is written with an escape.
    if (Object.hasOwn(parsed, name)) return null;
    if (changes[name] !== undefined) added += `${JSON.stringify(name)}:${JSON.stringify(changes[name])},`;
  }
  if (added) {
    const open = text.indexOf("{") + 1;
    edits.unshift({ start: open, end: open, text: members === 0 ? added.slice(0, -1) : added });
  }
  return edits;
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
