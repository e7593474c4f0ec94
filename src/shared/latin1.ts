// The text of bytes, a character for each. Who forwards a request looks through it in the turn in which it was read: the last text is handed on
// once, where decoding it again would cost a large one a thirtieth of its call, and keeping it for the call as much in the collector.

/** Characters of a text that is kept until the next one comes. */
const MOST = 256 * 1024;

let last: { readonly bytes: Buffer; readonly text: string } | null = null;

/** Decodes it for now and for whoever asks for it next. */
export function decodeLatin1(bytes: Buffer): string {
  const text = bytes.toString("latin1");
  last = text.length > MOST ? null : { bytes, text };
  return text;
}

export function latin1Of(bytes: Buffer): string {
  const known = last;
  if (known?.bytes !== bytes) return bytes.toString("latin1");
  last = null;
  return known.text;
}
