// Reading something whole that may never end: a device, a pipe, a server's answer.
import { constants, createReadStream, openSync, statSync } from "node:fs";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { MagicError } from "#contract/errors.ts";

/** All bytes of what a path names. Throws what the file system refuses, and an Error when there are more than `most`. */
export async function readWhole(path: string, most: number): Promise<Buffer> {
  return statSync(path).isFIFO() ? collectAwaited(pipeFrom(path), most) : collect(createReadStream(path), most);
}

const interruptions = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The same of a stream that may stay silent for ever. Throws `interrupted` at Ctrl-C. */
export async function collectAwaited(source: Readable, most: number): Promise<Buffer> {
  // A command that ends by itself when it is interrupted has not begun to listen for that.
  const interrupt = () => source.destroy(new MagicError("interrupted"));
  for (const signal of interruptions) process.once(signal, interrupt);
  try {
    return await collect(source, most);
  } finally {
    for (const signal of interruptions) process.off(signal, interrupt);
  }
}

// A thread that waits for a pipe's writer, in open() or read(), cannot be interrupted, and keeps the process from ending.
function pipeFrom(path: string): Socket {
  return new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), writable: false });
}

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
