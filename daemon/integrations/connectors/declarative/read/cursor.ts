// How a stream is read incrementally: which intervals a partition is read in, how an interval goes into requests, and what was read last.
import { type Context, native, text } from "../context.ts";
import { emptyParts, inject, type RequestParts } from "../http/options.ts";
import { parseUnambiguous, strftime, strptime } from "../jinja/date-text.ts";
import { DateTime } from "../jinja/datetime.ts";
import { addDuration, parseDuration } from "../jinja/duration.ts";
import {
  type Component,
  isRecord,
  list,
  manifestError,
  optionalChild,
  optionalText,
  refuseCustom,
  requiredText,
  typeOf,
} from "../manifest/component.ts";
import { clamped, MAX_INTERVALS } from "./clamping.ts";
import { fieldOf } from "./fields.ts";
import type { DataRecord } from "./records.ts";

export interface Interval {
  readonly variables: Readonly<Record<string, unknown>>;
  /** A comparable position that records of this interval do not pass. */
  readonly end: bigint | null;
}

export interface Cursor {
  readonly field: string;
  /** The intervals to read, oldest first, from the state's value (null: from the beginning). */
  intervals(cursor: string | null): Interval[];
  parts(interval: Interval): RequestParts;
  /** The latest of the cursor and the records' values: one page at a time, because writing it for each record takes long. */
  advance(cursor: string | null, records: readonly DataRecord[], interval: Interval): string | null;
  /** The interval from a cursor value on; undefined: it began there or later already. */
  narrowed(interval: Interval, cursor: string | null): Interval | undefined;
  /** Both halves of an interval; undefined: it is as short as the granularity, or as `least` microseconds. */
  halves(interval: Interval, least: bigint | undefined): Interval[] | undefined;
  /** False: the record is older than what was asked for, and the manifest says to drop it here. */
  wanted(record: DataRecord, cursor: string | null): boolean;
  /** The time that a cursor value means, in microseconds since the epoch; undefined: it means none. */
  time(cursor: string): bigint | undefined;
  /** The later of two cursor values. */
  later(a: string, b: string): string;
  /** A cursor value so many seconds before this one, where it is a time. */
  before(cursor: string, seconds: number): string;
  /** True: pages come newest first, and this page ends with what was read already. */
  exhausted(records: readonly DataRecord[], cursor: string | null): boolean;
}

/** `asks`: what makes the requests. */
export function cursorOf(context: Context, component: Component | undefined, asks: Component): Cursor | undefined {
  if (!component) return undefined;
  if (typeOf(component) === "DatetimeBasedCursor") return datetimeCursor(context, component, asks);
  return typeOf(component) === "IncrementingCountCursor" ? countCursor(context, component) : refuseCustom(component);
}

function datetimeCursor(context: Context, component: Component, asks: Component): Cursor {
  const field = text(context, component, requiredText(component, "cursor_field"));
  const format = requiredText(component, "datetime_format");
  const formats = [...list(component["cursor_datetime_formats"]).map(String), format];
  const parse = (value: unknown): DateTime | undefined =>
    value === null || value === undefined || value === "" ? undefined : parseAny(String(value), formats);
  const keys = [
    text(context, component, component["partition_field_start"] ?? "start_time"),
    text(context, component, component["partition_field_end"] ?? "end_time"),
  ] as const;
  const duration = (name: string): ReturnType<typeof parseDuration> | undefined => {
    const value =
      component[name] === undefined || component[name] === null ? "" : text(context, component, component[name]);
    return value ? parseDuration(value) : undefined;
  };
  const startOf = (cursor: string | null): DateTime => {
    const earliest = minMax(context, component, component["start_datetime"], format) ?? new DateTime(0n, 0);
    const known = parse(cursor);
    if (!known) return earliest;
    const lookback = duration("lookback_window");
    const from = lookback ? addDuration(known, { months: -lookback.months, us: -lookback.us }) : known;
    return from.us > earliest.us ? from : earliest;
  };
  const given = (): DateTime | undefined =>
    component["end_datetime"] === undefined || component["end_datetime"] === null
      ? undefined
      : minMax(context, component, component["end_datetime"], format);
  // Templates, evaluated once a partition and not once a record.
  let bounds:
    | { readonly cursor: string | null; readonly start: DateTime; readonly end: DateTime | undefined }
    | undefined;
  const boundsOf = (cursor: string | null) => {
    if (bounds?.cursor !== cursor) bounds = undefined;
    bounds ??= { cursor, start: startOf(cursor), end: given() };
    return bounds;
  };
  const endTold = isRecord(component["end_time_option"]) || JSON.stringify(asks).includes(keys[1]);
  const clientSide = component["is_client_side_incremental"] === true || component["is_data_feed"] === true;
  return {
    field,
    intervals(cursor) {
      bounds = undefined;
      const now = new DateTime(BigInt(context.clock.now()) * 1000n, 0);
      // An end that the manifest names may lie ahead: what is planned has its dates there.
      const end = given() ?? now;
      const start = startOf(cursor);
      const strict = component["is_compare_strictly"] === true;
      // Who is not told of intervals answers with everything each time.
      const told = isRecord(component["start_time_option"]) || isRecord(component["end_time_option"]);
      if (clientSide && !told) return [interval(keys, format, start, end, now)];
      const ranges = split(
        context,
        component,
        start,
        end,
        duration("step"),
        duration("cursor_granularity"),
        strict,
        endTold,
      );
      // What the last interval's end cuts off is read next time; no record of an earlier one may hide what comes between.
      return ranges.map(([from, to], at) => interval(keys, format, from, to, at === ranges.length - 1 ? now : to));
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
        const value = parse(fieldOf(record, field));
        // A date in the future would hide what comes until then.
        if (value && (each.end === null || value.us <= each.end) && !(latest && value.us <= latest.us)) latest = value;
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
      const unit = duration("cursor_granularity")?.us ?? 0n;
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

// A format without an offset speaks of UTC, and a vendor may send 10:00+02:00: written as 10:00Z it would hide two hours.
function written(value: DateTime, format: string): string {
  return strftime(/%[zZ]/.test(format) ? value : new DateTime(value.us, offsetIn(format)), format);
}

// Minutes: an offset may stand in the format itself (`...%S-12:00`). The reference writes other offsets' digits beside it, and so passes over hours.
function offsetIn(format: string): number {
  const [, sign, hours, minutes] = /%[Sf](?:\.0+)?([+-])(\d\d):?(\d\d)$/.exec(format) ?? [];
  return sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes));
}

function parseAny(value: string, formats: readonly string[]): DateTime | undefined {
  for (const format of formats) {
    const parsed = strptime(value, format);
    if (parsed?.offset === null) return new DateTime(parsed.us - BigInt(offsetIn(format)) * 60_000_000n, 0);
    if (parsed) return parsed;
  }
  try {
    return parseUnambiguous(value);
  } catch {
    return undefined;
  }
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

function split(
  context: Context,
  component: Component,
  start: DateTime,
  end: DateTime,
  step: ReturnType<typeof parseDuration> | undefined,
  granularity: ReturnType<typeof parseDuration> | undefined,
  strict: boolean,
  endTold: boolean,
): [DateTime, DateTime][] {
  if (start.us > end.us || (strict && start.us === end.us)) return [];
  const clamping = optionalChild(component, "clamping");
  // A vendor's cursor may have an offset: its days are not those that were read until now.
  const [from, to] = [start, end].map(({ us }) => new DateTime(us, 0)) as [DateTime, DateTime];
  if (clamping)
    return clamped(text(context, clamping, clamping["target"]), clamping, from, to, step, granularity, strict);
  if (!step) return [[start, end]];
  const intervals: [DateTime, DateTime][] = [];
  for (let from = start; ; ) {
    const next = addDuration(from, step);
    if (next.us <= from.us) throw manifestError("DatetimeBasedCursor.step must be longer than nothing");
    // The last one ends with the end. A vendor that is told beginnings only (`?date=`) is asked for that day too.
    if (next.us > end.us || (next.us === end.us && (endTold || !granularity))) return [...intervals, [from, end]];
    intervals.push([
      from,
      granularity ? addDuration(next, { months: -granularity.months, us: -granularity.us }) : next,
    ]);
    if (intervals.length >= MAX_INTERVALS)
      throw manifestError(`DatetimeBasedCursor.step cuts the range into more than ${MAX_INTERVALS} intervals`);
    from = next;
  }
}

/** A MinMaxDatetime, or text that is a date. */
function minMax(context: Context, parent: Component, value: unknown, format: string): DateTime | undefined {
  if (!isRecord(value)) {
    const rendered = text(context, parent, value).trim();
    return rendered ? (parseAny(rendered, [format]) ?? failDate(rendered)) : undefined;
  }
  const formats = [optionalText(value, "datetime_format") || format, format];
  const read = (name: string): DateTime | undefined => {
    if (value[name] === undefined || value[name] === null) return undefined;
    const rendered = text(context, value, value[name]).trim();
    return rendered ? (parseAny(rendered, formats) ?? failDate(rendered)) : undefined;
  };
  let date = read("datetime");
  const [least, most] = [read("min_datetime"), read("max_datetime")];
  if (date && least && date.us < least.us) date = least;
  if (date && most && date.us > most.us) date = most;
  return date;
}

function failDate(value: string): never {
  throw manifestError(`'${value.slice(0, 100)}' is not a date in any of the cursor's formats`);
}

function countCursor(context: Context, component: Component): Cursor {
  const field = text(context, component, requiredText(component, "cursor_field"));
  const start = countOf(native(context, component, component["start_value"] ?? 0)) ?? 0;
  const option = optionalChild(component, "start_value_option");
  return {
    field,
    intervals: (cursor) => [{ variables: { start_value: asVariable(countOf(cursor) ?? start) }, end: null }],
    parts(each) {
      const parts = emptyParts();
      if (option) inject(context, option, each.variables["start_value"], parts);
      return parts;
    },
    advance(cursor, records) {
      const known = countOf(cursor);
      let latest = known;
      for (const record of records) {
        const value = countOf(fieldOf(record, field));
        if (value !== undefined && (latest === undefined || value > latest)) latest = value;
      }
      return latest === known ? cursor : String(latest);
    },
    narrowed(each, cursor) {
      const [known, before] = [countOf(cursor), countOf(each.variables["start_value"])];
      if (known === undefined || (before !== undefined && known <= before)) return undefined;
      return { ...each, variables: { start_value: asVariable(known) } };
    },
    halves: () => undefined,
    wanted: () => true,
    time: () => undefined,
    later: (a, b) => ((countOf(b) ?? 0) > (countOf(a) ?? 0) ? b : a),
    before: (cursor) => cursor,
    exhausted: () => false,
  };
}

// Ids that count on are longer than 2^53 with many vendors: rounded up, one would hide the records before it.
function countOf(value: unknown): bigint | number | undefined {
  const written = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
  if (/^[+-]?\d{1,400}$/.test(written)) return BigInt(written.replace(/^\+/, ""));
  return written !== "" && Number.isFinite(Number(written)) ? Number(written) : undefined;
}

// As everywhere: an integer that is none in JSON is text.
function asVariable(value: bigint | number): number | string {
  const number = Number(value);
  return typeof value === "bigint" && !Number.isSafeInteger(number) ? String(value) : number;
}
