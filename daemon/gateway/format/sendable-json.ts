// JSON as vendors read it. A text that was cut within an emoji ends in half a character: JSON.stringify escapes it (`\ud83d`), and a parser that
// makes UTF-8 of it refuses the whole body, as Anthropic's does.

/** An escaped half; the backslashes before it come in pairs, else they would be of the text. */
const HALF = /(?<!\\)((?:\\\\)*)\\ud[89a-f][\da-f]{2}/g;

/** The value as JSON, with U+FFFD for each half of a character. */
export function sendableJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes("\\ud") ? json.replace(HALF, "$1\\ufffd") : json;
}
