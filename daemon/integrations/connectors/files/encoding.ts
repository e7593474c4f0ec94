// What bytes that are no text of ours seem to be, for the message that refuses them.

const COMPRESSED: readonly (readonly [string, readonly number[], string])[] = [
  ["gzip", [0x1f, 0x8b], "gunzip"],
  ["Zstandard", [0x28, 0xb5, 0x2f, 0xfd], "zstd -d"],
  ["bzip2", [0x42, 0x5a, 0x68], "bunzip2"],
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a], "unxz"],
  ["a ZIP archive", [0x50, 0x4b, 0x03, 0x04], "unzip"],
];

/** How to make UTF-8 of a file that begins like this and is none: "UTF-16: convert it first, ..." */
export function otherEncoding(head: Buffer): string {
  const packed = COMPRESSED.find(([, magic]) => magic.every((byte, at) => head[at] === byte));
  if (packed) return `${packed[0]}: unpack it first, e.g. with ${packed[2]}`;
  const [a = 0, b = 0] = head;
  const wide = (a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff) || head.includes(0);
  const name = wide ? "UTF-16" : "LATIN1";
  return `${wide ? name : "another encoding"}: convert it first, e.g. with iconv -f ${name} -t UTF-8`;
}
