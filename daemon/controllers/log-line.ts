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

/** The line with its stacks as the user wrote the code: in the message, where `console` puts them, in `fields.stack` and in errors among the fields. */
export function inSource({ level, message, fields }: LogMessage, stacks: StackMapper): LogMessage {
  const mapped = (text: string): string =>
    text.length <= LONGEST_STACK && text.includes(".magic.js:") ? stacks.map(text) : text;
  if (nestsDeeper(fields, DEEPEST_FIELDS))
    return {
      level,
      message: mapped(message),
      fields: { fields_unreadable: `they nest deeper than ${DEEPEST_FIELDS} levels` },
    };
  const withStack = (value: unknown): unknown => {
    const { stack } = (value ?? {}) as { readonly stack?: unknown };
    return typeof stack === "string" ? { ...(value as object), stack: mapped(stack) } : value;
  };
  if (fields === undefined) return { level, message: mapped(message) };
  const said = withStack(fields) as Record<string, unknown>;
  // A handler may give anything.
  if (typeof said === "object") for (const name in said) said[name] = withStack(said[name]);
  return { level, message: mapped(message), fields: said };
}
