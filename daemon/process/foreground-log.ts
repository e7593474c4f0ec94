// The log on the terminal of a daemon in the foreground. Lines of one moment are written together: a write to stderr blocks.
import type { LogStream } from "#daemon/telemetry/log-stream.ts";

const DELAY_MS = 20;
/** Lines that wait at most. */
const MAX_WAITING = 1_000;

/** Writes every further line to stderr, and what is left when the process ends. */
export function foregroundLog(stream: LogStream): void {
  let position = stream.bounds().first;
  let waiting = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    waiting = 0;
    const { bytes, next } = stream.tail(position);
    position = next;
    for (const some of bytes) process.stderr.write(some);
  };
  process.on("exit", flush);
  stream.subscribe(() => {
    if (++waiting === MAX_WAITING) flush();
    else timer ??= setTimeout(flush, DELAY_MS).unref();
  });
}
