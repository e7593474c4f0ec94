// How much room a text takes on a terminal: East Asian letters and emoji take two columns, marks upon a letter none.

const plain = /^[\x20-\x7e]*$/;
// Unicode's East Asian Width, wide and full (UAX #11), and what is shown as an emoji.
const wide =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|.\ufe0f)/u;
const invisible = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]+$/u;

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for single letters: an é of two code points, a family of five. */
export function letters(text: string): string[] {
  if (plain.test(text)) return [...text];
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** In columns of a terminal. */
export function width(text: string): number {
  if (plain.test(text)) return text.length;
  return letters(text).reduce((sum, letter) => sum + (wide.test(letter) ? 2 : invisible.test(letter) ? 0 : 1), 0);
}
