// Memory for large frames, used again and again: fresh memory costs the daemon's thread 2 us a page, 4 ms for 8 MB, and so much of it beside
// V8's heap sets its collector off. It is shared memory, so that the thread that checks outputs reads it where it lies.

/** Room for the longest frame; what is not written to costs nothing. */
const BYTES = 17 * 1024 * 1024;
const KEPT = 2;
const IDLE_MS = 10_000;

const free: SharedArrayBuffer[] = [];
let idle: NodeJS.Timeout | null = null;

/** At most 17 MB, with what was there before. Who does not give it back leaves it to the garbage collector. */
export function borrowMemory(bytes: number): Buffer {
  return Buffer.from(free.pop() ?? new SharedArrayBuffer(BYTES), 0, bytes);
}

/** For memory that was borrowed, and that nobody reads or writes any more. */
export function giveBack({ buffer }: Uint8Array): void {
  if (!(buffer instanceof SharedArrayBuffer) || free.length >= KEPT || free.includes(buffer)) return;
  free.push(buffer);
  idle ??= setTimeout(letGo, IDLE_MS).unref();
  idle.refresh();
}

function letGo(): void {
  free.length = 0;
  idle = null;
}
