// The daemon's end of the channel: frames in and out, with caps. What a cell sends is hostile until its secret is checked.
import type { Socket } from "node:net";
import { HEADER, SECRET, up } from "./frames.ts";

/** Outputs, broker calls and chunks; a longer frame ends the cell. */
export const MAX_FRAME = 16 * 1024 * 1024;
/** Bytes and frames that a cell may send in one window; then its socket is left alone until the window ends. */
const WINDOW_MS = 100;
const WINDOW_BYTES = 16 * 1024 * 1024;
const WINDOW_FRAMES = 8_000;
/**
 * Broker calls cost the daemon more than any other frame: so many at once, so many a millisecond; beyond it the cell waits, and its
 * neighbours do not.
 */
const CALLS_AT_ONCE = 128;
const CALLS_PER_MS = 10;
/** Windows in a row that ran full before the cell counts as flooding. */
const FULL_WINDOWS = 20;

export interface ConnectionHandler {
  /** `payload` is valid during the call only. True where the frame answers one of ours, so that it cannot be part of a flood. */
  frame(type: number, id: number, secret: Buffer, payload: Buffer): boolean;
  /** The cell broke the protocol or floods; it must go. */
  violation(why: string): void;
}

export interface Connection {
  /** One frame; parts are joined. What is sent within one turn of the event loop goes out in one write. */
  send(type: number, id: number, ...parts: readonly (string | Uint8Array)[]): void;
  /** True while the cell's frames are not read because it sent too many. */
  paused(): boolean;
}

export function openConnection(socket: Socket, handler: ConnectionHandler): Connection {
  let pieces: Buffer[] = [];
  let held = 0;
  let needed = HEADER;
  let over = false;
  let windowEnds = 0;
  let windowBytes = 0;
  let windowFrames = 0;
  let fullInARow = 0;
  let resting = false;
  let calls = CALLS_AT_ONCE;
  let callsAt = 0;
  let outgoing: Buffer[] = [];
  let outgoingBytes = 0;

  socket.on("data", (data: Buffer) => {
    if (over) return;
    windowBytes += data.length;
    held += data.length;
    pieces.push(data);
    if (held >= needed && !resting) decode();
    if (!over && !resting) meter();
  });

  function decode(): void {
    let memory = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, held);
    let at = 0;
    needed = HEADER;
    refill();
    while (memory.length - at >= HEADER && !over && calls > 0) {
      const length = memory.readUInt32LE(at);
      if (length > MAX_FRAME + SECRET || length < SECRET) {
        refuse("a frame of a forbidden length");
        return;
      }
      if (memory.length - at < HEADER + length) {
        needed = HEADER + length;
        break;
      }
      const payload = at + HEADER + SECRET;
      const id = memory.readUInt32LE(at + 5);
      const secret = memory.subarray(at + HEADER, payload);
      const body = memory.subarray(payload, at + HEADER + length);
      const type = memory[at + 4] as number;
      if (type === up.call) calls--;
      if (!handler.frame(type, id, secret, body)) windowFrames++;
      at += HEADER + length;
    }
    memory = memory.subarray(at);
    held = memory.length;
    pieces = held > 0 ? [memory] : [];
    if (calls <= 0 && !over) pause(CALLS_AT_ONCE / 2 / CALLS_PER_MS);
  }

  function refill(): void {
    const now = performance.now();
    calls = Math.min(CALLS_AT_ONCE, calls + (now - callsAt) * CALLS_PER_MS);
    callsAt = now;
  }

  function meter(): void {
    const now = performance.now();
    if (now >= windowEnds) {
      if (now > windowEnds + WINDOW_MS) fullInARow = 0;
      windowEnds = now + WINDOW_MS;
      windowBytes = 0;
      windowFrames = 0;
    } else if (windowBytes > WINDOW_BYTES || windowFrames > WINDOW_FRAMES) rest(windowEnds - now);
  }

  function rest(ms: number): void {
    if (++fullInARow >= FULL_WINDOWS) refuse("a flood of frames");
    else pause(ms);
  }

  function pause(ms: number): void {
    resting = true;
    socket.pause();
    setTimeout(() => {
      resting = false;
      if (over) return;
      // What was read before the pause has waited too.
      if (held >= needed) decode();
      if (!over && !resting) socket.resume();
    }, ms);
  }

  function refuse(why: string): void {
    over = true;
    pieces = [];
    handler.violation(why);
  }

  return {
    send(type, id, ...parts) {
      let length = 0;
      for (const part of parts) length += typeof part === "string" ? Buffer.byteLength(part) : part.length;
      const frame = Buffer.allocUnsafe(HEADER + length);
      frame.writeUInt32LE(length, 0);
      frame[4] = type;
      frame.writeUInt32LE(id, 5);
      let at = HEADER;
      for (const part of parts) {
        if (typeof part === "string") at += frame.write(part, at, "utf8");
        else {
          frame.set(part, at);
          at += part.length;
        }
      }
      if (outgoing.push(frame) === 1) setImmediate(flush);
      outgoingBytes += frame.length;
    },
    paused: () => resting,
  };

  function flush(): void {
    const all = outgoing.length === 1 ? (outgoing[0] as Buffer) : Buffer.concat(outgoing, outgoingBytes);
    outgoing = [];
    outgoingBytes = 0;
    if (!socket.destroyed) socket.write(all);
  }
}
