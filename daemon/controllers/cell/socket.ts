// The daemon's end of the socket that is a cell's descriptor 3.
import { Socket } from "node:net";

export interface CellSocket {
  /** `bytes` are valid during the call only. */
  onRead: (bytes: Buffer) => void;
  write(bytes: Buffer): void;
  /** Bytes that were written and that the cell has not taken. */
  waiting(): number;
  pause(): void;
  resume(): void;
}

const AT_ONCE = 64 * 1024;
/** Where all cells' sockets are read, one after the other: memory of its own for each read would have to be collected again. */
let memory: Buffer | null = null;

/** Over a descriptor that nobody else holds. */
export function openSocket(fd: number): CellSocket {
  memory ??= Buffer.allocUnsafeSlow(AT_ONCE);
  const onread = {
    buffer: memory,
    callback(bytes: number, filled: Uint8Array): boolean {
      wrapped.onRead((filled as Buffer).subarray(0, bytes));
      return true;
    },
  };
  const wrapped = wrap(new Socket({ fd, readable: true, writable: true, onread }));
  return wrapped;
}

/** A socket that somebody else opened. */
export function readSocket(socket: Socket): CellSocket {
  const wrapped = wrap(socket);
  socket.on("data", (bytes: Buffer) => wrapped.onRead(bytes));
  return wrapped;
}

function wrap(socket: Socket): CellSocket {
  socket.on("error", () => {});
  return {
    onRead: () => {},
    write(bytes) {
      if (!socket.destroyed) socket.write(bytes);
    },
    waiting: () => socket.writableLength,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
  };
}
