// The log on the terminal of a daemon in the foreground. Lines of one moment are written together: a write to stderr blocks.
import type { LogSink } from "#daemon/telemetry/log.ts";

const DELAY_MS = 20;
/** Characters held at most. */
const MAX_HELD = 256 * 1024;

/** A sink that writes to `stream`, and what is left when the process ends. */
export function foregroundLog(stream: Pick<NodeJS.WriteStream, "write"> = process.stderr): LogSink {
  let held = "";
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (held === "") return;
    const text = held;
    held = "";
    stream.write(text);
  };
  process.on("exit", flush);
  return ({ text }) => {
    held += `${text}\n`;
    if (held.length > MAX_HELD) flush();
    else timer ??= setTimeout(flush, DELAY_MS).unref();
  };
}
