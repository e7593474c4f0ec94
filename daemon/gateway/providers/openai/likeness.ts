// Events of a stream that differ from an earlier one in nothing but what they say: nearly all of them. Where the rest is the same, byte for
// byte, what the earlier one was found to be holds for them too, at a tenth of the cost of parsing each.

/** Strings that change from event to event; of all but the content only that they are strings matters. `p` is Mistral's padding. */
const VARYING = /"(content|system_fingerprint|obfuscation|p)": ?"((?:[^"\\\n]|\\.)*)"/g;
/** Bytes: what many events resemble is short, and the expression above keeps a place for every character. */
const LONGEST = 8 * 1024;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class Likeness {
  /** UTF-16 code units of the content that `endOf` found last. */
  letters = 0;
  /** What is the same: before, between and after the strings that vary. */
  readonly #pieces: readonly string[];
  /** Which of these strings is the content. */
  readonly #content: number;

  private constructor(pieces: readonly string[], content: number) {
    this.#pieces = pieces;
    this.#content = content;
  }

  /** @param event one whole event, a character for each byte; null where it has no content, or more than one, or is long. */
  static of(event: string): Likeness | null {
    if (event.length > LONGEST) return null;
    const pieces: string[] = [];
    let content = -1;
    let from = 0;
    for (const { 0: member, 1: name, 2: value = "", index } of event.matchAll(VARYING)) {
      if (name === "content") {
        if (content >= 0) return null;
        content = pieces.length;
      }
      const end = index + member.length - 1;
      pieces.push(event.slice(from, end - value.length));
      from = end;
    }
    if (content < 0) return null;
    pieces.push(event.slice(from));
    return new Likeness(pieces, content);
  }

  /** Where the event that begins at `from` ends; -1 if it is another kind of event, or not whole. A character of `text` is a byte. */
  endOf(text: string, from: number): number {
    const pieces = this.#pieces;
    const last = pieces.length - 1;
    let at = from;
    for (let index = 0; index <= last; index++) {
      const piece = pieces[index] as string;
      // A third of what `startsWith` costs.
      if (text.slice(at, at + piece.length) !== piece) return -1;
      at += piece.length;
      if (index === last) return at;
      const begin = at;
      let beside = 0;
      for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
        // Controls, and NaN behind the end.
        if (!(code >= 0x20)) return -1;
        if (code === BACKSLASH) {
          if (!isShortEscape(text.charCodeAt(at + 1))) return -1;
          at++;
          beside++;
        } else if (code >= 0x80 && code < 0xc0) beside++;
        // Of four bytes in UTF-8 come two code units in UTF-16.
        else if (code >= 0xf0) beside--;
        at++;
      }
      if (index === this.#content) this.letters = at - begin - beside;
    }
    return -1;
  }
}

/** RFC 8259, 7; not `\u`, which is rare. */
function isShortEscape(code: number): boolean {
  return '"\\/bfnrt'.includes(String.fromCharCode(code));
}
