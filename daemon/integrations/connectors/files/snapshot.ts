// A file as it is when it is opened, read as often as it takes: what is appended later is not seen, and what is renamed into its place is
// another file. A file that somebody cuts meanwhile fails the read.
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { MagicError } from "#contract/errors.ts";
import { fileError } from "./errors.ts";

export interface Snapshot {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** The bytes from `start` on, in chunks of at most `chunk`. */
  stream(start: number, chunk: number): AsyncGenerator<Buffer>;
  slice(start: number, end: number): Promise<Buffer>;
  close(): Promise<void>;
}

export async function openSnapshot(path: string): Promise<Snapshot> {
  let file: FileHandle | undefined;
  try {
    // Without waiting: a named pipe opens when somebody writes into it, and until then nothing could end this process.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const about = await file.stat();
    if (!about.isFile()) throw new MagicError("source_failed", `${path} is no plain file.`);
    return snapshotOf(file, path, about.size);
  } catch (error) {
    await file?.close();
    throw error instanceof MagicError ? error : fileError(error as NodeJS.ErrnoException, path);
  }
}

function snapshotOf(file: FileHandle, path: string, size: number): Snapshot {
  const cut = () => new MagicError("source_failed", `${path} became shorter while it was read: run the sync again.`);
  return {
    path,
    size,
    stream: async function* (start, chunk) {
      if (start >= size) return;
      const stream = file.createReadStream({ start, end: size - 1, highWaterMark: chunk, autoClose: false });
      let read = start;
      try {
        for await (const bytes of stream as AsyncIterable<Buffer>) {
          read += bytes.length;
          yield bytes;
        }
      } catch (error) {
        throw error instanceof MagicError ? error : fileError(error as NodeJS.ErrnoException, path);
      }
      if (read < size) throw cut();
    },
    slice: async (start, end) => {
      const buffer = Buffer.allocUnsafeSlow(end - start);
      for (let at = 0; at < buffer.length; ) {
        const { bytesRead } = await file.read(buffer, at, buffer.length - at, start + at);
        if (bytesRead === 0) throw cut();
        at += bytesRead;
      }
      return buffer;
    },
    close: () => file.close(),
  };
}
