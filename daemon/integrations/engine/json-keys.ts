// JSON objects in which a key stands twice: jsonb, MySQL's JSON and every parser keep the last one only, without a word.
import { stringEnd } from "#shared/json-text.ts";

/** True where an object somewhere in the text has a key twice. What is no JSON has none: the destination says what is wrong with it. */
export function hasDoubledKeys(text: string): boolean {
  if (!text.includes("{")) return false;
  try {
    return keysIn(JSON.parse(text)) !== colonsOf(text);
  } catch {
    return false;
  }
}

function keysIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + keysIn(item), 0);
  return Object.values(value).reduce((sum: number, item) => sum + 1 + keysIn(item), 0);
}

// Outside strings a colon stands behind every key, and nowhere else.
function colonsOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 58) count++;
    else if (unit === 34) at = stringEnd(text, at) - 1;
  }
  return count;
}
