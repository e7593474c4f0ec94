// One line of the log for people: time, level, event, then what belongs to it.
import type { LogEntry } from "#contract/wire/logs.ts";
import type { Paint } from "./paint.ts";

const envelope = new Set(["cursor", "time", "level", "event", "message", "error", "request_id"]);

/** `12:31:07.123 info  http.request  GET ... request_id=req_1` in the terminal's colours. */
export function showLogLine(line: LogEntry): (paint: Paint) => string {
  return (paint) => {
    const level = line.level.padEnd(5);
    const colour = line.level === "error" ? paint.red : line.level === "warn" ? paint.yellow : paint.dim;
    const fields = Object.entries(line)
      .filter(([name]) => !envelope.has(name))
      .map((field) => showField(field, paint));
    const message = typeof line["message"] === "string" ? [line["message"]] : [];
    const request = typeof line["request_id"] === "string" ? [paint.dim(line["request_id"])] : [];
    const head = [paint.dim(line.time.slice(11, 23)), colour(level), paint.bold(line.event)];
    return [inLine([...head, ...message, ...fields, ...request]), ...errorLines(line["error"], paint)].join("\n");
  };
}

/** What belongs to one line: further lines of a message are set in, so that they do not pass for lines of the log. */
export function inLine(parts: readonly string[]): string {
  return parts.join(" ").replaceAll("\n", "\n  ");
}

export function showField([name, value]: readonly [string, unknown], paint: Paint): string {
  return `${paint.dim(`${name}=`)}${typeof value === "string" ? value : JSON.stringify(value)}`;
}

function errorLines(error: unknown, paint: Paint): string[] {
  if (typeof error !== "object" || error === null) return [];
  const { message, stack } = error as { message?: unknown; stack?: unknown };
  const text = typeof stack === "string" ? stack : typeof message === "string" ? message : JSON.stringify(error);
  return text.split("\n").map((part) => `  ${paint.red(part)}`);
}
