// `clamping`: intervals that begin and end where days, weeks or months do, whole periods only.
import { DateTime, fields, fromFields } from "../jinja/datetime.ts";
import { addDuration, type parseDuration } from "../jinja/duration.ts";
import { type Component, manifestError, optionalChild } from "../manifest/component.ts";
import { before } from "./cursor-time.ts";

type Duration = ReturnType<typeof parseDuration>;

const DAY = 86_400_000_000n;
const WEEKDAYS = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];
/** A manifest must not make more requests than this out of one date range. */
export const MAX_INTERVALS = 100_000;

interface Steps {
  /** Undefined: one step for all. */
  readonly step: Duration | undefined;
  readonly granularity: Duration | undefined;
  /** `is_compare_strictly`: an end that is the start is no interval. */
  readonly strict: boolean;
}

/** The whole periods between start and end, in steps; none where not one is over. */
export function clamped(
  target: string,
  clamping: Component,
  [start, end]: readonly [DateTime, DateTime],
  { step, granularity, strict }: Steps,
): [DateTime, DateTime][] {
  const { floor, unit, asStart } = periods(target, clamping);
  const ceil = (value: DateTime): DateTime => {
    const low = floor(value);
    return low.us === value.us ? low : floor(addDuration(low, unit));
  };
  const [first, last] = [ceil(asStart(start)), before(floor(end), granularity)];
  // One unit is a period too: the last day of all, asked for again.
  if (granularity && !strict && first.us === last.us) return [[last, last]];
  const intervals: [DateTime, DateTime][] = [];
  for (let from = first; from.us < last.us; ) {
    const to = step ? addDuration(from, step) : last;
    const top = to.us < last.us ? ceil(to) : last;
    if (from.us >= top.us) break;
    intervals.push([from, top.us < last.us ? before(top, granularity) : last]);
    if (intervals.length > MAX_INTERVALS)
      throw manifestError(`DatetimeBasedCursor.step cuts the range into more than ${MAX_INTERVALS} intervals`);
    from = top;
  }
  return intervals;
}

interface Periods {
  /** Where the period that holds the value begins. */
  floor(value: DateTime): DateTime;
  /** Its length. */
  readonly unit: Duration;
  /** What a start counts as: where weeks and months are read, its day, whatever the hour. */
  asStart(value: DateTime): DateTime;
}

function periods(target: string, clamping: Component): Periods {
  const day = (value: DateTime): DateTime => {
    const { year, month, day: date } = fields(value);
    return fromFields({ year, month, day: date });
  };
  switch (target.toUpperCase()) {
    case "MONTH":
      return {
        floor: (value) => {
          const { year, month } = fields(value);
          return fromFields({ year, month, day: 1 });
        },
        unit: { months: 1, us: 0n },
        asStart: day,
      };
    case "WEEK": {
      const named = String(optionalChild(clamping, "target_details")?.["weekday"] ?? "MONDAY").toUpperCase();
      const first = WEEKDAYS.indexOf(named);
      if (first < 0) throw manifestError(`Clamping.target_details.weekday '${named}' is no day of the week`);
      return {
        floor: (value) => new DateTime(day(value).us - BigInt((fields(value).weekday - first + 7) % 7) * DAY, 0),
        unit: { months: 0, us: 7n * DAY },
        asStart: day,
      };
    }
    case "DAY":
      return { floor: day, unit: { months: 0, us: DAY }, asStart: (value) => value };
    default:
      throw manifestError(`Clamping.target '${target}' is none of DAY, WEEK, MONTH`);
  }
}
