// Which lines a reader wants, decided on the line's text: only a line that may match is parsed.
import type { Environment } from "#contract/protocol.ts";
import { type Level, type LogLine, levels } from "./log.ts";

export interface LogFilter {
  readonly request?: string | undefined;
  readonly controller?: string | undefined;
  /** This level and above. */
  readonly level?: Level | undefined;
  /** Only lines of this environment, and no others: for callers that are bound to one. */
  readonly environment?: Environment | undefined;
}

/** A predicate; without a filter it lets everything pass, and looks at nothing. */
export function matcher(filter: LogFilter): (line: LogLine) => boolean {
  const exact = Object.entries({
    request_id: filter.request,
    controller: filter.controller,
    environment: filter.environment,
  })
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([name, value]) => ({ name, value, text: JSON.stringify(value) }));
  const from = filter.level === undefined ? 0 : levels.indexOf(filter.level);
  if (exact.length === 0 && from === 0) return () => true;
  return ({ text }) => {
    if (!exact.every((wanted) => text.includes(wanted.text))) return false;
    const fields = JSON.parse(text) as Record<string, unknown>;
    return exact.every(({ name, value }) => fields[name] === value) && levels.indexOf(fields["level"] as Level) >= from;
  };
}
