// The cell's end of the channel: descriptor 3, held as a bare libuv handle in this closure. No stream, no event emitter and no socket
// object that a handler could find or patch stands between the kernel and the codec.
import { Socket } from "node:net";
import { HEADER, SECRET } from "../frames.ts";
import { allocate, bufferOver, byteLength, bytesSet, min, Uint8ArrayOf, utf8Write } from "./primordials.ts";

/** `memory[start..end)` is the payload; it is valid during the call only. */
export type OnFrame = (type: number, id: number, memory: Buffer, start: number, end: number) => void;

export interface Channel {
  /** One frame: secret, then the text. */
  sendText(type: number, id: number, secret: Uint8Array, text: string): void;
  /** One frame: secret, a number, then the text; it ends an invocation. */
  sendNumberedText(type: number, id: number, secret: Uint8Array, n: number, text: string): void;
  /** One frame: secret, the broker call's number, then the bytes. */
  sendBytes(type: number, id: number, secret: Uint8Array, n: number, bytes: Uint8Array): void;
}

/** Bytes of answers that go out together; room for a turn's worth of small ones. */
const BLOCK = 64 * 1024;

/** libuv's stream as Node wraps it; not public, so the Node version is exact. */
interface StreamHandle {
  onread: (memory: ArrayBuffer | undefined) => void;
  readStart(): number;
  writeBuffer(request: null, bytes: Uint8Array): number | { buffer: Uint8Array; oncomplete: () => void };
  [symbol: symbol]: unknown;
}

export function openChannel(onFrame: OnFrame, onEnd: () => void): Channel {
  const socket = new Socket({ fd: 3, readable: true, writable: true });
  const handle = (socket as unknown as { _handle: StreamHandle })._handle;
  const { writeBuffer } = handle;
  const { apply } = Reflect;
  // The way back from the handle to the socket object, which nobody needs any more.
  for (const symbol of Object.getOwnPropertySymbols(handle)) handle[symbol] = null;

  /** True where the kernel has it all already. */
  function write(frame: Buffer): boolean {
    const request = apply(writeBuffer, handle, [null, frame]);
    if (typeof request === "number") return true;
    request.buffer = frame; // libuv reads from it until the write is done
    request.oncomplete = () => {};
    return false;
  }

  // Answers that become ready in one turn go out in one write; log lines and broker calls at once, because a handler may hang after them.
  const { nextTick } = process;
  let block = allocate(BLOCK);
  let written = 0;
  let flushing = false;

  /** Where a frame of that many bytes is to be written: in `block`, from here on. */
  function reserve(bytes: number): number {
    if (written + bytes > block.length) {
      flush();
      if (bytes > block.length) block = allocate(bytes);
    }
    if (!flushing) apply(nextTick, process, [flush]);
    flushing = true;
    written += bytes;
    return written - bytes;
  }

  function flush(): void {
    flushing = false;
    if (written === 0) return;
    const sent = write(bufferOver(block.buffer, 0, written));
    written = 0;
    // What libuv still reads from is not written over, and a large block is not kept.
    if (!sent || block.length > BLOCK) block = allocate(BLOCK);
  }

  const decoder = makeDecoder(onFrame);
  const readBytesSoFar = getterOf(handle, "bytesRead");
  let seen = 0;
  handle.onread = (memory) => {
    if (memory === undefined) return onEnd();
    // A large read comes in memory that is larger still: only the handle's count says how much of it was read.
    const total = apply(readBytesSoFar, handle, []) as number;
    try {
      decoder(bufferOver(memory, 0, total - seen));
    } catch {
      // Handlers' errors are caught where they run: this one means that the stream cannot be read any more.
      onEnd();
    }
    seen = total;
  };
  handle.readStart();

  return {
    sendText(type, id, secret, text) {
      const length = byteLength(text);
      const frame = allocate(HEADER + SECRET + length);
      begin(frame, 0, type, id, secret, length);
      utf8Write(frame, text, HEADER + SECRET, length);
      write(frame);
    },
    sendNumberedText(type, id, secret, n, text) {
      const length = byteLength(text);
      const at = reserve(HEADER + SECRET + 4 + length);
      begin(block, at, type, id, secret, 4 + length);
      writeU32(block, at + HEADER + SECRET, n);
      utf8Write(block, text, at + HEADER + SECRET + 4, length);
    },
    sendBytes(type, id, secret, n, bytes) {
      const frame = allocate(HEADER + SECRET + 4 + bytes.length);
      begin(frame, 0, type, id, secret, 4 + bytes.length);
      writeU32(frame, HEADER + SECRET, n);
      bytesSet(frame, bytes, HEADER + SECRET + 4);
      write(frame);
    },
  };
}

function getterOf(object: object, name: string): () => unknown {
  for (let at: object | null = object; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const getter = Object.getOwnPropertyDescriptor(at, name)?.get;
    if (getter) return getter;
  }
  throw new Error(`the stream handle of this Node has no ${name}`);
}

/** A frame's header and secret; `length` bytes are to follow. */
function begin(memory: Buffer, at: number, type: number, id: number, secret: Uint8Array, length: number): void {
  writeU32(memory, at, SECRET + length);
  memory[at + 4] = type;
  writeU32(memory, at + 5, id);
  bytesSet(memory, secret, at + HEADER);
}

/** Cuts the byte stream into frames; a frame that spans reads is gathered in memory of its own. */
function makeDecoder(onFrame: OnFrame): (memory: Buffer) => void {
  let partial: Buffer | null = null;
  let filled = 0;

  return (memory) => {
    let at = 0;
    if (partial !== null) at = resume(memory);
    if (partial !== null) return;
    while (memory.length - at >= HEADER) {
      const end = at + HEADER + readU32(memory, at);
      if (end > memory.length) break;
      onFrame(memory[at + 4] as number, readU32(memory, at + 5), memory, at + HEADER, end);
      at = end;
    }
    if (at < memory.length) keep(memory, at);
  };

  function keep(memory: Buffer, at: number): void {
    const rest = memory.length - at;
    partial = allocate(rest >= HEADER ? HEADER + readU32(memory, at) : HEADER);
    bytesSet(partial, new Uint8ArrayOf(memory.buffer, memory.byteOffset + at, rest));
    filled = rest;
  }

  /** Adds to the partial frame; returns where the next frame begins in `memory`. */
  function resume(memory: Buffer): number {
    let at = 0;
    while (partial !== null) {
      const take = min(partial.length - filled, memory.length - at);
      bytesSet(partial, new Uint8ArrayOf(memory.buffer, memory.byteOffset + at, take), filled);
      filled += take;
      at += take;
      if (filled < partial.length) return at;
      const whole = HEADER + readU32(partial, 0);
      if (whole > partial.length) {
        // Only the header was there: now its length is known.
        const grown = allocate(whole);
        bytesSet(grown, partial);
        partial = grown;
        continue;
      }
      const frame = partial;
      partial = null;
      onFrame(frame[4] as number, readU32(frame, 5), frame, HEADER, whole);
    }
    return at;
  }
}

export function readU32(memory: Uint8Array, at: number): number {
  const low = (memory[at] as number) | ((memory[at + 1] as number) << 8) | ((memory[at + 2] as number) << 16);
  return (low | ((memory[at + 3] as number) << 24)) >>> 0;
}

export function writeU32(memory: Uint8Array, at: number, value: number): void {
  memory[at] = value & 255;
  memory[at + 1] = (value >>> 8) & 255;
  memory[at + 2] = (value >>> 16) & 255;
  memory[at + 3] = value >>> 24;
}
