// Lines that a handler logs, as the daemon's log takes them.
import type { StackMapper } from "./bundle/stack.ts";
import type { LogMessage } from "./cell/frames.ts";

export function levelOf(level: string): "debug" | "info" | "warn" | "error" {
  return level === "debug" || level === "warn" || level === "error" ? level : "info";
}

/** A log line's fields, the stack of a stray error in the user's lines. */
export function strayFields(line: LogMessage, stacks: StackMapper): Record<string, unknown> {
  const { fields } = line;
  if (typeof fields !== "object" || fields === null) return {};
  const stack = fields["stack"];
  return { fields: typeof stack === "string" ? { ...fields, stack: stacks.map(stack) } : fields };
}
