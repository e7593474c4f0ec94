// Reading something whole that may never end: a device, a pipe, a server's answer.

/** All bytes of the source. Throws, and reads no further, when there are more than `most`. */
export async function collect(source: AsyncIterable<Uint8Array>, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > most) throw new Error(`it has more than ${most} bytes`);
  }
  return Buffer.concat(chunks);
}
