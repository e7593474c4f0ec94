// Where single members of a JSON text's top level lie, without parsing it: `forward.ts` exchanges one of them (the model's name) in the client's
// own bytes instead of serialising the whole body again.
import { stringEnd } from "#shared/json-text.ts";

/** A member's value: its first character, and one past its last. */
export interface Place {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

export interface Scanned {
  /** Of the members with one of the names, as they stand; a key that is written with an escape is none of them. */
  readonly places: readonly Place[];
  /** How many members the top level has. More than the parsed object has: a key stands twice. */
  readonly members: number;
}

const QUOTE = 0x22;

/** `names`: of ASCII, without what JSON escapes. Well-formedness is left to JSON.parse. */
export function scanMembers(text: string, names: readonly string[]): Scanned {
  const places: Place[] = [];
  let members = 0;
  let depth = 0;
  let keyStart = -1;
  let keyEnd = -1;
  let valueStart = -1;
  let last = -1;

  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = stringEnd(text, i);
      if (depth === 1) {
        if (keyStart < 0) {
          keyStart = i;
          keyEnd = end;
        } else if (valueStart < 0) valueStart = i;
      }
      i = end - 1;
      last = i;
      continue;
    }
    if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) continue;
    if (code === 0x7b || code === 0x5b) {
      if (depth === 1 && keyStart >= 0 && valueStart < 0) valueStart = i;
      depth++;
    } else if (depth === 1 && (code === 0x2c || code === 0x7d || code === 0x5d)) {
      if (keyStart >= 0 && valueStart >= 0) {
        members++;
        const name = nameAt(text, keyStart + 1, keyEnd - 1, names);
        if (name !== undefined) places.push({ name, start: valueStart, end: last + 1 });
      }
      keyStart = -1;
      valueStart = -1;
      if (code !== 0x2c) depth--;
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (depth === 1 && code !== 0x3a && keyStart >= 0 && valueStart < 0) valueStart = i;
    last = i;
  }
  return { places, members };
}

function nameAt(text: string, start: number, end: number, names: readonly string[]): string | undefined {
  for (const name of names) if (name.length === end - start && text.startsWith(name, start)) return name;
  return undefined;
}
