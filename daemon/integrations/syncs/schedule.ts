// Schedules: "manual", "realtime", or a cron expression with a time zone.
import { Cron } from "croner";
import type { FieldProblem } from "#contract/errors.ts";
import type { Schedule, SyncBody } from "#daemon/storage/tables/sync.ts";

type Scheduled = Pick<SyncBody, "schedule" | "timezone">;

function cronOf({ schedule, timezone }: Scheduled): { pattern: string; timezone: string | null } | null {
  if (schedule === "manual" || schedule === "realtime") return null;
  if (typeof schedule === "string") return { pattern: schedule, timezone };
  return { pattern: schedule.cron, timezone: schedule.timezone ?? timezone };
}

/** When it is due next after `after` (ms since the epoch); null when it is not by the clock, or never again. */
export function nextDue(scheduled: Scheduled, after: number): number | null {
  const cron = cronOf(scheduled);
  if (cron === null) return null;
  return parse(cron.pattern, cron.timezone).nextRun(new Date(after))?.getTime() ?? null;
}

function parse(pattern: string, timezone: string | null): Cron {
  // Never the machine's own zone: the same sync would run at another hour elsewhere.
  return new Cron(pattern, { paused: true, timezone: timezone ?? "UTC" });
}

export function scheduleProblems(scheduled: Scheduled): FieldProblem[] {
  const { schedule } = scheduled;
  // A patch may have brought a time zone to a schedule that is no object.
  if (typeof schedule === "object" && schedule.cron === undefined)
    return [{ pointer: "/schedule/cron", code: "required", detail: "missing" }];
  const cron = cronOf(scheduled);
  const zone = cron?.timezone ?? scheduled.timezone;
  if (zone !== null && !isTimezone(zone))
    return [
      {
        pointer: pointerOfZone(schedule),
        code: "timezone",
        detail: `${JSON.stringify(zone)} is not an IANA time zone`,
      },
    ];
  if (cron === null) return [];
  try {
    // A pattern in words of its own ("@daily") is fine; a date, which croner takes too, is not.
    if (/^\d{4}-/.test(cron.pattern)) throw new Error("a date is not a schedule");
    if (parse(cron.pattern, cron.timezone).nextRun() === null) throw new Error("it is never due");
    return [];
  } catch (error) {
    const pointer = typeof schedule === "string" ? "/schedule" : "/schedule/cron";
    const detail = `${JSON.stringify(cron.pattern)} is neither manual, realtime nor a cron expression: ${(error as Error).message}`;
    return [{ pointer, code: "schedule", detail }];
  }
}

function pointerOfZone(schedule: Schedule): string {
  return typeof schedule === "object" && schedule.timezone !== undefined ? "/schedule/timezone" : "/timezone";
}

function isTimezone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
