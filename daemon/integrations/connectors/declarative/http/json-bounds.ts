// What a large JSON text would take in memory, before it is parsed: a megabyte that unfolded from kilobytes may become gigabytes.
import { MagicError } from "#contract/errors.ts";
import { stringEnd } from "#shared/json-text.ts";

/** Below it nothing can become so much that it would matter, and looking costs a third of the parsing. */
const SMALL = 4 * 1024 * 1024;
const MAX_DEPTH = 10_000;
const MAX_VALUES = 30_000_000;

const [QUOTE, COMMA] = [0x22, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Throws upstream_error for what nests too deeply or holds too much. Whether it is JSON is left to the parser. */
export function checkBounds(text: string, place: string): void {
  if (text.length < SMALL) return;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at) - 1;
    else if (code === COMMA) values++;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values++;
      if (++depth > MAX_DEPTH) throw new MagicError("upstream_error", `the answer of ${place} nests too deeply`);
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
    if (values > MAX_VALUES)
      throw new MagicError("upstream_error", `the answer of ${place} holds more than ${MAX_VALUES} values`);
  }
}
