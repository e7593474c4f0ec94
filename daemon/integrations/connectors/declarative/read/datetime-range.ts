// What a DatetimeBasedCursor reads: from which time to which, and in which steps.
import { type Context, text } from "../context.ts";
import { DateTime } from "../jinja/datetime.ts";
import { addDuration, parseDuration } from "../jinja/duration.ts";
import { type Component, isRecord, manifestError, optionalChild } from "../manifest/component.ts";
import { clamped, MAX_INTERVALS } from "./clamping.ts";
import { before, minMax } from "./cursor-time.ts";

type Duration = ReturnType<typeof parseDuration>;

export interface DatetimeRange {
  /** Where reading goes on from a cursor's time (undefined: none yet): not before the manifest's start. */
  start(known: DateTime | undefined): DateTime;
  /** The end that the manifest names; undefined: it names none. */
  end(): DateTime | undefined;
  /** The intervals between both, oldest first; none where there is nothing to read. */
  steps(start: DateTime, end: DateTime): [DateTime, DateTime][];
  /** The least that two times differ by; undefined: the manifest does not say. */
  granularity(): Duration | undefined;
}

/** @param endTold whether requests are told where an interval ends. */
export function datetimeRange(context: Context, component: Component, format: string, endTold: boolean): DatetimeRange {
  const duration = (name: string): Duration | undefined => {
    const value =
      component[name] === undefined || component[name] === null ? "" : text(context, component, component[name]);
    return value ? parseDuration(value) : undefined;
  };
  const granularity = () => duration("cursor_granularity");
  return {
    granularity,
    start(known) {
      const earliest = minMax(context, component, component["start_datetime"], format) ?? failStart(component);
      if (!known) return earliest;
      const from = before(known, duration("lookback_window"));
      return from.us > earliest.us ? from : earliest;
    },
    end() {
      const end = component["end_datetime"];
      return end === undefined || end === null ? undefined : minMax(context, component, end, format);
    },
    steps(start, end) {
      const strict = component["is_compare_strictly"] === true;
      if (start.us > end.us || (strict && start.us === end.us)) return [];
      const step = duration("step");
      const clamping = optionalChild(component, "clamping");
      if (clamping) {
        // A vendor's cursor may have an offset: its days are not those that were read until now.
        const range = [new DateTime(start.us, 0), new DateTime(end.us, 0)] as const;
        const target = text(context, clamping, clamping["target"]);
        return clamped(target, clamping, range, { step, granularity: granularity(), strict });
      }
      return step ? stepped(start, end, step, granularity(), endTold) : [[start, end]];
    },
  };
}

// Read from the beginning of time on, in steps of a day, it would be tens of thousands of requests.
function failStart({ start_datetime: start }: Component): never {
  const written = isRecord(start) ? start["datetime"] : start;
  throw manifestError(`DatetimeBasedCursor.start_datetime is no date: ${written ?? "it"} comes to nothing`);
}

function stepped(
  start: DateTime,
  end: DateTime,
  step: Duration,
  granularity: Duration | undefined,
  endTold: boolean,
): [DateTime, DateTime][] {
  const intervals: [DateTime, DateTime][] = [];
  for (let from = start; ; ) {
    const next = addDuration(from, step);
    if (next.us <= from.us) throw manifestError("DatetimeBasedCursor.step must be longer than nothing");
    // The last one ends with the end. A vendor that is told beginnings only (`?date=`) is asked for that day too.
    if (next.us > end.us || (next.us === end.us && (endTold || !granularity))) return [...intervals, [from, end]];
    intervals.push([from, before(next, granularity)]);
    if (intervals.length >= MAX_INTERVALS)
      throw manifestError(`DatetimeBasedCursor.step cuts the range into more than ${MAX_INTERVALS} intervals`);
    from = next;
  }
}
