// A name as one word of a command that is there to be pasted: a manifest, a vendor or a folder gave it, and a shell would obey what it holds.

const PLAIN = /^[\w./:@+][\w./:@+-]*$/;

/** As POSIX shells read it. */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
