// What a server sends is counted before a driver puts it together: one cell of a row may have a gigabyte, and no text in Node is that long.
import type { Socket } from "node:net";
import { MagicError } from "#contract/errors.ts";
import { caps } from "./driver.ts";

/** The rows' text may be half of what comes: bytes are sent in hexadecimal digits. */
const MOST = 2 * caps.bytes;

/** Counts until the answer's end; `onOver` is told once, and must end the session. Answers how to stop. */
export function countBytes(socket: Socket, onOver: (error: MagicError) => void): () => void {
  let size = 0;
  const count = (piece: Uint8Array): void => {
    size += piece.length;
    if (size <= MOST) return;
    stop();
    onOver(new MagicError("limit_exceeded", `the query's answer has more than ${MOST} bytes`));
  };
  const stop = (): void => void socket.off("data", count);
  socket.on("data", count);
  return stop;
}
