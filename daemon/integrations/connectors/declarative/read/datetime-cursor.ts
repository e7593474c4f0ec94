// Streams that are read from a time on, in intervals of a step where the manifest names one.
import { type Context, text } from "../context.ts";
import { emptyParts, inject } from "../http/options.ts";
import { DateTime } from "../jinja/datetime.ts";
import { type Component, isRecord, list, optionalChild, requiredText } from "../manifest/component.ts";
import type { Cursor, Interval } from "./cursor.ts";
import { parseAny, written } from "./cursor-time.ts";
import { datetimeRange } from "./datetime-range.ts";
import { fieldOf } from "./fields.ts";

export function datetimeCursor(context: Context, component: Component, asks: Component): Cursor {
  const field = text(context, component, requiredText(component, "cursor_field"));
  const format = requiredText(component, "datetime_format");
  const formats = [...list(component["cursor_datetime_formats"]).map(String), format];
  const parse = (value: unknown): DateTime | undefined =>
    value === null || value === undefined || value === "" ? undefined : parseAny(String(value), formats);
  const keys = [
    text(context, component, component["partition_field_start"] ?? "start_time"),
    text(context, component, component["partition_field_end"] ?? "end_time"),
  ] as const;
  const endTold = isRecord(component["end_time_option"]) || JSON.stringify(asks).includes(keys[1]);
  const range = datetimeRange(context, component, format, endTold);
  const startOf = (cursor: string | null): DateTime => range.start(parse(cursor));
  // Templates, evaluated once a partition and not once a record.
  let bounds:
    | { readonly cursor: string | null; readonly start: DateTime; readonly end: DateTime | undefined }
    | undefined;
  const boundsOf = (cursor: string | null) => {
    if (bounds?.cursor !== cursor) bounds = undefined;
    bounds ??= { cursor, start: startOf(cursor), end: range.end() };
    return bounds;
  };
  // What came while the interval was read says that all before its end was; a date in the future would hide what comes until then.
  const upTo = (end: bigint | null, value: DateTime | undefined): DateTime | undefined => {
    if (!value || end === null || value.us <= end) return value;
    return value.us <= BigInt(context.clock.now()) * 1000n ? new DateTime(end, value.offset) : undefined;
  };
  const clientSide = component["is_client_side_incremental"] === true || component["is_data_feed"] === true;
  return {
    field,
    intervals(cursor) {
      bounds = undefined;
      const now = new DateTime(BigInt(context.clock.now()) * 1000n, 0);
      // An end that the manifest names may lie ahead: what is planned has its dates there.
      const end = range.end() ?? now;
      const start = startOf(cursor);
      // Who is not told of intervals answers with everything each time.
      const told = isRecord(component["start_time_option"]) || isRecord(component["end_time_option"]);
      if (clientSide && !told) return [interval(keys, format, start, end, now)];
      const steps = range.steps(start, end);
      // What the last interval's end cuts off is read next time; no record of an earlier one may hide what comes between.
      return steps.map(([from, to], at) => interval(keys, format, from, to, at === steps.length - 1 ? now : to));
    },
    parts(each) {
      const parts = emptyParts();
      for (const [at, name] of (["start_time_option", "end_time_option"] as const).entries()) {
        const option = optionalChild(component, name);
        const value = each.variables[keys[at] ?? ""];
        if (option && value !== undefined) inject(context, option, value, parts);
      }
      return parts;
    },
    advance(cursor, records, each) {
      let latest: DateTime | undefined;
      for (const record of records) {
        const value = upTo(each.end, parse(fieldOf(record, field)));
        if (value && !(latest && value.us <= latest.us)) latest = value;
      }
      const known = parse(cursor);
      return !latest || (known && latest.us <= known.us) ? cursor : written(latest, format);
    },
    narrowed(each, cursor) {
      const before = parse(each.variables[keys[0]]);
      const known = parse(cursor) && startOf(cursor);
      if (!known || (before && known.us <= before.us)) return undefined;
      return { ...each, variables: { ...each.variables, [keys[0]]: written(known, format) } };
    },
    halves(each, least) {
      const [start, end] = keys.map((key) => parse(each.variables[key]));
      const unit = range.granularity()?.us ?? 0n;
      if (!start || !end || unit <= 0n || end.us - start.us <= (least ?? 0n)) return undefined;
      // As many units on both sides; both ends belong to the interval.
      const second = start.us + (((end.us - start.us) / unit + 1n) / 2n) * unit;
      if (second <= start.us || second > end.us) return undefined;
      const at = (us: bigint): DateTime => new DateTime(us, 0);
      const middle = at(second - unit);
      return [
        interval(keys, format, start, middle, middle),
        interval(keys, format, at(second), end, at(each.end ?? end.us)),
      ];
    },
    wanted(record, cursor) {
      if (!clientSide) return true;
      const value = parse(fieldOf(record, field));
      const { start, end } = boundsOf(cursor);
      return !value || (value.us >= start.us && (!end || value.us <= end.us));
    },
    time: (cursor) => parse(cursor)?.us,
    later: (a, b) => ((parse(b)?.us ?? 0n) > (parse(a)?.us ?? 0n) ? b : a),
    before(cursor, seconds) {
      const known = seconds > 0 ? parse(cursor) : undefined;
      return known
        ? written(new DateTime(known.us - BigInt(Math.ceil(seconds)) * 1_000_000n, known.offset), format)
        : cursor;
    },
    exhausted(records, cursor) {
      const last = records.at(-1);
      if (component["is_data_feed"] !== true || !last) return false;
      const value = parse(fieldOf(last, field));
      return value !== undefined && value.us < startOf(cursor).us;
    },
  };
}

function interval(
  keys: readonly [string, string],
  format: string,
  start: DateTime,
  end: DateTime,
  latest: DateTime,
): Interval {
  return { variables: { [keys[0]]: written(start, format), [keys[1]]: written(end, format) }, end: latest.us };
}
