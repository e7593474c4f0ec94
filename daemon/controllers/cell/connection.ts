// The daemon's end of the channel: frames in and out, with caps. What a cell sends is hostile until its secret is checked.
import { HEADER, MAX_PAYLOAD, SECRET, up } from "./frames.ts";
import { borrowMemory, giveBack } from "./large-memory.ts";
import type { CellSocket } from "./socket.ts";

/** A longer frame is gathered in memory of its own as it comes: joining its pieces at its end would take milliseconds at once. */
export const LARGE_FRAME = 256 * 1024;
/** Bytes and frames that a cell may send in one window; then its socket is left alone until the window ends. */
const WINDOW_MS = 100;
const WINDOW_BYTES = 16 * 1024 * 1024;
const WINDOW_FRAMES = 8_000;
/**
 * What a cell sends may take this share of the daemon's one thread, milliseconds at once; beyond it the cell waits, and its neighbours do
 * not. Answers cost by their size alone: they were asked for.
 */
const SHARE = 0.2;
const AT_ONCE_MS = 0.5;
/** A cell that waits is read again when it may take that long: often enough for a steady stream, not at every frame. */
const RESUME_MS = 0.3;
/** What a frame sets off costs about as much again after it was taken: a line's way into the log, a broker call's answer. */
const AND_AFTERWARDS = 2;
/** A broker call costs no less, most of it after it was taken. */
const CALL_MS = 0.05;
/** With the way on to the caller, and the thread that checks large outputs: 50 MB/s of a cell. */
const MS_PER_BYTE = 4 / 2 ** 20;
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
  /** Bytes that were sent and that the cell has not taken. */
  waiting(): number;
  /** True while the cell's frames are not read because it sent too many. */
  paused(): boolean;
}

export function openConnection(socket: CellSocket, handler: ConnectionHandler): Connection {
  /** Frames that wait for their turn, or the beginning of a header. */
  let backlog: Buffer | null = null;
  /** A frame that has begun to come, in memory of its own. */
  let partial: { readonly memory: Buffer; filled: number } | null = null;
  let over = false;
  let windowEnds = 0;
  let windowBytes = 0;
  let windowFrames = 0;
  let fullInARow = 0;
  let resting = false;
  let mayTakeMs = AT_ONCE_MS;
  let earnedAt = 0;
  let countedAt = 0;
  let outgoing: Buffer[] = [];
  let outgoingBytes = 0;

  socket.onRead = (data) => {
    if (over) return;
    windowBytes += data.length;
    mayTakeMs -= data.length * MS_PER_BYTE;
    const begun = backlog;
    backlog = null;
    decode(begun ? Buffer.concat([begun, data]) : data, begun !== null);
    if (!over && !resting) meter();
  };

  /** Takes the frames that are whole. `memory` is somebody else's afterwards, unless it is `ours`: that is not copied again at each turn. */
  function decode(memory: Buffer, ours: boolean): void {
    earn();
    let at = partial ? gather(partial, memory, 0) : 0;
    while (memory.length - at >= HEADER && !over && mayTakeMs > 0) {
      const length = memory.readUInt32LE(at);
      if (length > MAX_PAYLOAD + SECRET || length < SECRET) {
        refuse("a frame of a forbidden length");
        return;
      }
      const whole = HEADER + length;
      if (memory.length - at >= whole) {
        take(memory, at, length);
        at += whole;
        continue;
      }
      partial = { memory: whole > LARGE_FRAME ? borrowMemory(whole) : Buffer.allocUnsafe(whole), filled: 0 };
      at = gather(partial, memory, at);
    }
    if (over) return;
    if (at < memory.length) backlog = ours ? memory.subarray(at) : Buffer.from(memory.subarray(at));
    if (mayTakeMs <= 0) pause((RESUME_MS - mayTakeMs) / SHARE);
  }

  /** Adds to the frame what belongs to it, takes it where it is whole; returns where the next one begins. */
  function gather(frame: { readonly memory: Buffer; filled: number }, memory: Buffer, at: number): number {
    const copied = memory.copy(frame.memory, frame.filled, at);
    frame.filled += copied;
    if (frame.filled === frame.memory.length) {
      partial = null;
      take(frame.memory, 0, frame.memory.length - HEADER);
      // An output is its caller's from now on.
      if (frame.memory[4] !== up.result) giveBack(frame.memory);
    }
    return at + copied;
  }

  function take(memory: Buffer, at: number, length: number): void {
    const payload = at + HEADER + SECRET;
    const id = memory.readUInt32LE(at + 5);
    const secret = memory.subarray(at + HEADER, payload);
    const body = memory.subarray(payload, at + HEADER + length);
    const type = memory[at + 4] as number;
    if (!handler.frame(type, id, secret, body)) {
      windowFrames++;
      spend(type === up.call ? CALL_MS : 0);
    } else countedAt = 0;
  }

  function earn(): void {
    const now = performance.now();
    mayTakeMs = Math.min(AT_ONCE_MS, mayTakeMs + (now - earnedAt) * SHARE);
    earnedAt = now;
    countedAt = now;
  }

  /** What follows an answer costs no time, because its beginning is not known. */
  function spend(atLeastMs: number): void {
    const now = performance.now();
    mayTakeMs -= Math.max(atLeastMs, countedAt > 0 ? (now - countedAt) * AND_AFTERWARDS : 0);
    countedAt = now;
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
      const waiting = backlog;
      backlog = null;
      if (waiting) decode(waiting, true);
      if (!over && !resting) socket.resume();
    }, ms);
  }

  function refuse(why: string): void {
    over = true;
    backlog = null;
    partial = null;
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
    waiting: () => outgoingBytes + socket.waiting(),
    paused: () => resting,
  };

  function flush(): void {
    const all = outgoing.length === 1 ? (outgoing[0] as Buffer) : Buffer.concat(outgoing, outgoingBytes);
    outgoing = [];
    outgoingBytes = 0;
    socket.write(all);
  }
}
