// From a log query to a start and a filter, for the list and the stream alike.
import { MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import type { LogQuery } from "#contract/wire/logs.ts";
import { cursorAt } from "#daemon/telemetry/log.ts";
import type { LogFilter } from "#daemon/telemetry/log-filter.ts";
import type { Clock } from "#shared/clock.ts";
import { momentOf } from "#shared/moment.ts";

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The cursor to start after: of `after`, else of `since`, else "" for the oldest line. */
export function startOf(query: LogQuery, clock: Clock): string {
  if (query.after !== undefined) return query.after;
  if (query.since === undefined) return "";
  const span = /^(\d{1,9})([smhd])$/.exec(query.since);
  const at = span ? clock.now() - Number(span[1]) * (units[span[2] ?? "s"] ?? 1) : momentOf(query.since);
  if (at !== null) return cursorAt(Math.max(0, at));
  const detail = "since is an RFC 3339 time, or a span such as 30s, 10m, 2h, 7d.";
  throw new MagicError("validation_failed", detail, { problems: [{ pointer: "/since", code: "format", detail }] });
}

/** What the query asks for, within what the caller may see: a key sees its own environment. */
export function filterOf(query: LogQuery, principal: Principal): LogFilter {
  const bound = principal.type !== "local" && principal.type !== "admin";
  return {
    request: query.request,
    controller: query.controller,
    level: query.level,
    environment: bound ? principal.environment : undefined,
  };
}
