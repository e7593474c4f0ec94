// COPY from one PostgreSQL into another without touching the rows: CopyData messages have the same form in both directions (PostgreSQL
// 15, 55.7 "Message Formats"), so they are forwarded as they came. Parsing them one by one, as pg-copy-streams does, costs more than
// everything else that the process does. Only the ends are pg-copy-streams's: its streams do the handshake and see the errors.
import type { Socket } from "node:net";
import type { CopyStreamQuery, CopyToStreamQuery } from "pg-copy-streams";
import { noMessage } from "#daemon/storage/postgres/messages.ts";

const COPY_DATA = 0x64;
const COPY_DONE = 0x63;
const ERROR_RESPONSE = 0x45;
/** Messages that may stand between others: CopyOutResponse, ParameterStatus, NoticeResponse, NotificationResponse. */
const aside = new Set([0x48, 0x53, 0x4e, 0x41]);

// What pg-copy-streams 7.0.0 keeps in its streams; the version is pinned, and a test copies through these.
interface CopyToInside extends CopyToStreamQuery {
  connection: { stream: Socket };
  _buffer: { push(chunk: Buffer): void; readUInt32BE(): number };
  _parse(chunk: Buffer): boolean;
  _detach(): void;
  _cleanup(): void;
}
interface CopyFromInside extends CopyStreamQuery {
  connection: { stream: Socket };
  flushChunk(chunk: Buffer): boolean;
  _destroy(error: Error | null, done: (error: Error | null) => void): void;
}

/** Makes a COPY TO stream that gives the rows alone cut its connection at a length that cannot be: its own loop would never end. */
export function bounded(stream: CopyToStreamQuery): CopyToStreamQuery {
  const inside = stream as CopyToInside;
  const [buffer, parse] = [inside._buffer, inside._parse.bind(inside)];
  const read = buffer.readUInt32BE.bind(buffer);
  buffer.readUInt32BE = () => {
    const length = read();
    // It counts itself.
    if (length < 4) throw noMessage();
    return length;
  };
  inside._parse = (arrived) => {
    try {
      return parse(arrived);
    } catch (error) {
      inside.connection.stream.destroy(error as Error);
      return false;
    }
  };
  return stream;
}

/** Makes a COPY TO stream give whole CopyData messages with their headers; chunks are cut anywhere. */
export function framed(stream: CopyToStreamQuery): CopyToStreamQuery & { readonly messages: number } {
  const inside = stream as CopyToInside & { messages: number };
  // A row each, but for a header and an end.
  inside.messages = 0;
  let left = 0;
  let skipping = false;
  let held: Buffer | null = null;
  const end = (rest: Buffer, failed: boolean) => {
    inside._buffer.push(rest);
    inside._detach();
    if (failed) return;
    inside.push(null);
    inside._cleanup();
  };
  inside._parse = (arrived) => {
    const chunk = held ? Buffer.concat([held, arrived]) : arrived;
    held = null;
    let drained = true;
    // From `from` on, bytes are to be forwarded; a message that is not CopyData makes a gap.
    let from = 0;
    let at = 0;
    const forward = (to: number) => {
      if (to > from) drained = inside.push(from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to));
    };
    for (;;) {
      if (left > 0) {
        const taken = Math.min(left, chunk.length - at);
        left -= taken;
        at += taken;
        if (skipping) from = at;
        if (left > 0) break;
        skipping = false;
      }
      if (at + 5 > chunk.length) {
        if (at < chunk.length) held = chunk.subarray(at);
        break;
      }
      const code = chunk[at];
      const length = chunk.readUInt32BE(at + 1) + 1;
      const known = code === COPY_DATA || code === COPY_DONE || code === ERROR_RESPONSE || aside.has(code ?? 0);
      // A length counts itself. What is no message must not pass for the end of the rows, nor be read on: nobody knows where the next begins.
      if (!known || length < 5) {
        inside.connection.stream.destroy(noMessage());
        return false;
      }
      if (code === COPY_DATA) {
        left = length;
        inside.messages++;
      } else if (code !== undefined && aside.has(code)) {
        forward(at);
        left = length;
        skipping = true;
      } else {
        forward(at);
        // An error is for pg to read; CopyDone is not.
        end(chunk.subarray(code === ERROR_RESPONSE ? at : at + length), code === ERROR_RESPONSE);
        // What the socket holds besides is pg's: no more of it is asked for.
        return false;
      }
    }
    forward(chunk.length - (held?.length ?? 0));
    return drained;
  };
  return inside;
}

/** Makes a COPY FROM stream take CopyData messages with their headers. After an error its connection is of no more use, and must be cut. */
export function takingFrames(stream: CopyStreamQuery): CopyStreamQuery {
  const inside = stream as CopyFromInside;
  inside.flushChunk = (chunk) => inside.connection.stream.write(chunk);
  // No CopyFail: where the source stopped within a message, the server would take it for that message's missing bytes, and wait.
  inside._destroy = (error, done) => done(error);
  return stream;
}
