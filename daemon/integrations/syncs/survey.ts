// What is wrong with a sync beyond what its schema can tell, in a body of any form: schedule, time zone, connections that are not there.
import type { FieldProblem } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import type { Schedule } from "#daemon/storage/tables/sync.ts";
import { scheduleProblems } from "./schedule.ts";

export async function surveySync(
  given: unknown,
  exists: (connection: string) => Promise<boolean>,
): Promise<FieldProblem[]> {
  if (!isObject(given)) return [];
  return [...timing(given), ...(await missingEnds(given, exists))];
}

function timing({ schedule = "manual", timezone = null }: Readonly<Record<string, unknown>>): FieldProblem[] {
  if (!isSchedule(schedule) || !(timezone === null || isText(timezone))) return [];
  return scheduleProblems({ schedule, timezone });
}

function isSchedule(value: unknown): value is Schedule {
  if (isText(value)) return true;
  return isObject(value) && isText(value["cron"]) && (value["timezone"] === undefined || isText(value["timezone"]));
}

// What is longer the schema has refused already: nothing more needs to be known of it.
function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 200;
}

/** One problem for each end whose connection is not there. */
export async function missingEnds(
  given: { readonly source?: unknown; readonly destination?: unknown },
  exists: (connection: string) => Promise<boolean>,
): Promise<FieldProblem[]> {
  const problems: FieldProblem[] = [];
  for (const end of ["source", "destination"] as const) {
    const { connection } = isObject(given[end]) ? given[end] : {};
    if (!isText(connection) || (await exists(connection))) continue;
    const detail = `there is no connection ${connection.slice(0, 100)} in this environment`;
    problems.push({ pointer: `/${end}/connection`, code: "not_found", detail });
  }
  return problems;
}
