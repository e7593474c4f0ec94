// Lines that a handler logs, as the daemon's log takes them.
import { nestsDeeper } from "#shared/nesting.ts";
import type { StackMapper } from "./bundle/stack.ts";
import type { LogMessage } from "./cell/frames.ts";

export function levelOf(level: string): "debug" | "info" | "warn" | "error" {
  return level === "debug" || level === "warn" || level === "error" ? level : "info";
}

/** What `console.error(error)` writes is no longer; beyond it nobody means a stack. */
const LONGEST_STACK = 16 * 1024;

/** Deeper ones cannot be read by common readers of JSON, and one line would keep them from all the others. */
const DEEPEST_FIELDS = 100;

/** The line with its stacks as the user wrote the code: in the message, where `console` puts them, and in every `stack` among the fields. */
export function inSource({ level, message, fields }: LogMessage, stacks: StackMapper): LogMessage {
  const mapped = (text: string): string =>
    text.length <= LONGEST_STACK && text.includes(".magic.js:") ? stacks.map(text) : text;
  if (nestsDeeper(fields, DEEPEST_FIELDS))
    return {
      level,
      message: mapped(message),
      fields: { fields_unreadable: `they nest deeper than ${DEEPEST_FIELDS} levels` },
    };
  if (fields === undefined) return { level, message: mapped(message) };
  return { level, message: mapped(message), fields: withStacks(fields, mapped) };
}

/** In place: the fields are the line's own. */
function withStacks<T>(value: T, mapped: (text: string) => string): T {
  // A handler may give anything.
  if (typeof value !== "object" || value === null) return value;
  const fields = value as Record<string, unknown>;
  for (const name in fields) {
    const field = fields[name];
    if (typeof field === "object") withStacks(field, mapped);
    else if (name === "stack" && typeof field === "string") fields[name] = mapped(field);
  }
  return value;
}
