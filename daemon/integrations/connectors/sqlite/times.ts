// Times as a cursor. SQLite keeps them as texts, in whatever form each writer chose: `T` or a blank between date and time, `Z`, an offset or
// none, a fraction or none. Such texts sort as the instants do only where all have one form.
import type { DatabaseSync } from "node:sqlite";
import { daysOf, instantKey, lookBackFrom } from "../../engine/temporal.ts";

/** In SQL: a text's instantKey. */
export const INSTANT = "magic_instant";

export interface MixedTimes {
  /** No instant behind the last run's is a lower text. */
  readonly low: string;
  /** The text of the latest instant. */
  readonly greatest: string;
  /** It is an earlier one than the last run's. */
  readonly back: boolean;
}

/** null where the order of texts will do. `max`: the greatest of the column's texts; `before`: the last run's cursor. */
export function mixedTimes(
  db: DatabaseSync,
  from: string,
  name: string,
  max: string,
  before: string | null,
): MixedTimes | null {
  const days = [max, before ?? max].map((text) => (instantKey(text) === null ? null : daysOf(text.slice(0, 10))));
  const [one, other] = days;
  if (one == null || other == null) return null;
  const low = lookBackFrom(Math.min(one, other));
  if (low > max) return null;
  const forms = db.prepare(
    `SELECT min(form) <> max(form) AS mixed FROM (SELECT ${formOf(name)} AS form FROM ${from} WHERE ${name} >= ? UNION ALL SELECT ${formOf("?2")})`,
  );
  if (forms.get(low, before ?? max)?.["mixed"] !== 1) return null;
  db.function(INSTANT, { deterministic: true }, (text) => (typeof text === "string" ? instantKey(text) : null));
  const latest = db.prepare(
    `SELECT ${name} AS greatest, max(${INSTANT}(${name})) AS at, count(*) = count(${INSTANT}(${name})) AS times FROM ${from} WHERE ${name} >= ?`,
  );
  const { greatest, at, times } = latest.get(low) as { greatest: string; at: string; times: number };
  return times === 1 ? { low, greatest, back: at < (instantKey(before ?? greatest) ?? "") } : null;
}

// What stands between date and time and behind the time; with something behind it the length, too.
function formOf(text: string): string {
  const zone = `ltrim(substr(${text}, 12), '0123456789:.')`;
  return `substr(${text}, 11, 1) || ${zone} || CASE ${zone} WHEN '' THEN '' ELSE length(${text}) END`;
}
