// Log lines of a cell, counted: a handler that logs without end costs the daemon a comparison a line and nothing more.
import type { LogMessage } from "./frames.ts";

export interface LogMeter {
  /** Hands the line on, or drops it; the first one dropped is told of. */
  take(payload: Buffer, onLog: (line: LogMessage) => void): void;
}

const MAX_LINE_BYTES = 256 * 1024;

export interface LogAllowance {
  readonly bytes: number;
  /** Counts anew after it. */
  readonly windowMs: number;
}

export function openLogMeter({ bytes: most, windowMs }: LogAllowance): LogMeter {
  let bytes = 0;
  let told = false;
  let ends = 0;

  return {
    take(payload, onLog) {
      if (windowMs !== Number.POSITIVE_INFINITY && performance.now() > ends) {
        ends = performance.now() + windowMs;
        bytes = 0;
        told = false;
      }
      bytes += payload.length;
      if (bytes <= most && payload.length <= MAX_LINE_BYTES) {
        onLog(JSON.parse(payload.toString()) as LogMessage);
        return;
      }
      if (told) return;
      told = true;
      const what = payload.length > MAX_LINE_BYTES ? `a line of ${payload.length} bytes` : `${most} bytes of log`;
      onLog({ level: "warn", message: `log limit exceeded: ${what}; what is beyond it is dropped` });
    },
  };
}
