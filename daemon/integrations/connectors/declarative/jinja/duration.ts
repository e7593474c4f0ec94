// ISO 8601 durations, and adding them to dates.
import { DateTime, fields, fromFields } from "./datetime.ts";
import { EvaluationError } from "./errors.ts";

const DURATION =
  /^(-)?P(?:(\d+(?:\.\d+)?)Y)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** An ISO 8601 duration. Years and months are calendar steps and are kept apart. */
export interface Duration {
  readonly months: number;
  readonly us: bigint;
}

export function parseDuration(text: string): Duration {
  const found = DURATION.exec(text.trim());
  if (!found || /^-?PT?$/.test(text.trim())) throw new EvaluationError(`'${text}' is not an ISO 8601 duration`);
  const sign = found[1] ? -1 : 1;
  const part = (at: number): number => Number(found[at] ?? 0);
  const seconds = part(4) * 604_800 + part(5) * 86_400 + part(6) * 3600 + part(7) * 60 + part(8);
  return { months: sign * (part(2) * 12 + part(3)), us: BigInt(Math.round(sign * seconds * 1e6)) };
}

/** Adds calendar months (clipping the day as isodate does) and then the rest. */
export function addDuration(value: DateTime, duration: Duration): DateTime {
  if (!duration.months) return new DateTime(value.us + duration.us, value.offset);
  const from = fields(value);
  const index = from.year * 12 + from.month - 1 + duration.months;
  const [year, month] = [Math.floor(index / 12), (index % 12) + 1];
  const day = Math.min(from.day, new Date(Date.UTC(year, month, 0)).getUTCDate());
  return new DateTime(fromFields({ ...from, year, month, day }, value.offset).us + duration.us, value.offset);
}
