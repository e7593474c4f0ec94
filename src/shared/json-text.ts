// JSON looked at as text, without parsing it.
const BACKSLASH = 0x5c;

/**
 * One past the closing quote of the string that opens at `open`; the text's length when it never closes. A regular expression would overflow the
 * stack at 8 MB.
 */
export function stringEnd(text: string, open: number): number {
  for (let from = open + 1; ; ) {
    const at = text.indexOf('"', from);
    if (at < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH && at - 1 - slashes > open) slashes++;
    if (slashes % 2 === 0) return at + 1;
    from = at + 1;
  }
}
