// What a caller says about a sync, as it is stored: defaults filled in, a merge patch applied, the rest checked.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import { toPointer } from "#contract/json-pointer.ts";
import type { CreateSync, PatchSync } from "#contract/wire/syncs.ts";
import type { SyncBody } from "#daemon/storage/tables/sync.ts";
import { memberProblems } from "../members.ts";
import { mergePatch } from "../merge-patch.ts";
import { scheduleProblems } from "./schedule.ts";

const defaults = {
  name: null,
  schedule: "manual",
  timezone: null,
  mode: "full_refresh",
  primary_key: null,
  cursor_field: null,
  columns: null,
  mapping: null,
  on_bad_record: "quarantine",
  deletes: null,
  stall_timeout_s: null,
  metadata: {},
} as const satisfies Partial<SyncBody>;

/** `alsoWrong` is asked when something is wrong, so that all of it is told at once. @throws MagicError `validation_failed`. */
export async function newBody(
  { source, destination, ...given }: CreateSync,
  alsoWrong: () => Promise<readonly FieldProblem[]>,
): Promise<SyncBody> {
  const mode = given.mode ?? modeFor(given);
  const body = { ...defaults, ...given, mode, source_object: source.object, destination_table: destination.table };
  const problems = [...scheduleProblems(body as SyncBody), ...problemsOf(body as SyncBody)];
  if (problems.length > 0) throw invalid([...problems, ...(await alsoWrong())]);
  return body as SyncBody;
}

/** A null takes a member back to its default. @throws MagicError `validation_failed`. */
export function patchedBody(current: SyncBody, { status: _, ...patch }: PatchSync): SyncBody {
  const merged = { ...current, ...defaults, ...(mergePatch(settings(current), patch) as object) } as SyncBody;
  const body = patch.mode === null ? { ...merged, mode: modeFor(merged) } : merged;
  // A schedule that stays may have come to its end since: what else is changed is not refused for that.
  const scheduled = "schedule" in patch || "timezone" in patch;
  const problems = [...(scheduled ? scheduleProblems(body) : []), ...problemsOf(body)];
  if (problems.length > 0) throw invalid(problems);
  return body;
}

/** Realtime follows a cursor where it is given one. */
function modeFor({ schedule, cursor_field }: Pick<CreateSync, "schedule" | "cursor_field">): SyncBody["mode"] {
  if (schedule !== "realtime") return defaults.mode;
  return cursor_field == null ? "cdc" : "incremental";
}

function settings(body: SyncBody): object {
  return Object.fromEntries(Object.keys(defaults).map((key) => [key, body[key as keyof SyncBody]]));
}

function problemsOf(body: SyncBody): FieldProblem[] {
  const problems = [...memberProblems("metadata", body.metadata), ...memberProblems("mapping", body.mapping ?? {})];
  for (const list of ["columns", "primary_key"] as const)
    for (const [at, column] of (body[list] ?? []).entries())
      if (body[list]?.indexOf(column) !== at)
        problems.push({ pointer: `/${list}/${at}`, code: "duplicate", detail: `${column} is named twice` });
  const mapping = Object.entries(body.mapping ?? {});
  const byTarget = Map.groupBy(mapping, ([, to]) => to);
  for (const [from, to] of mapping)
    if (byTarget.get(to)?.length !== 1)
      problems.push({
        pointer: toPointer(["mapping", from]),
        code: "duplicate",
        detail: `two fields go to ${to}`,
      });
  return problems;
}

function invalid(problems: readonly FieldProblem[]): MagicError {
  return new MagicError("validation_failed", undefined, { problems });
}
