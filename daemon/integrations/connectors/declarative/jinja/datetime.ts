// Python's datetime, date and timedelta as far as manifests use them: arithmetic, strftime, strptime, isoformat. Microseconds are kept.
import { EvaluationError } from "./errors.ts";
import type { PythonObject } from "./python.ts";

export const DAY_US = 86_400_000_000n;
/** How much of 00:00:00.000000 each precision of isoformat writes. */
const CLOCK_LENGTHS: ReadonlyMap<string, number> = new Map([
  ["hours", 2],
  ["minutes", 5],
  ["seconds", 8],
  ["milliseconds", 12],
  ["microseconds", 15],
]);

/** An instant with its offset from UTC in minutes; null is a naive time. */
export class DateTime implements PythonObject {
  readonly pythonType = "datetime";
  /** Microseconds since the epoch. */
  readonly us: bigint;
  readonly offset: number | null;

  constructor(us: bigint, offset: number | null) {
    this.us = us;
    this.offset = offset;
  }

  key(): bigint {
    return this.us;
  }
  truth(): boolean {
    return true;
  }
  str(): string {
    return this.isoformat(" ");
  }
  repr(): string {
    return `datetime.datetime(${this.str()})`;
  }
  /** @throws EvaluationError for a precision that Python does not know. */
  isoformat(separator = "T", precision = "auto"): string {
    const f = fields(this);
    const clock = `${pad(f.hour)}:${pad(f.minute)}:${pad(f.second)}.${pad(f.micro, 6)}`;
    const length = CLOCK_LENGTHS.get(precision === "auto" ? (f.micro ? "microseconds" : "seconds") : precision);
    if (length === undefined) throw new EvaluationError(`Unknown timespec value '${precision}'`);
    return `${pad(f.year, 4)}-${pad(f.month)}-${pad(f.day)}${separator}${clock.slice(0, length)}${offsetText(this.offset, ":")}`;
  }
}

/** A calendar day. */
export class PyDate implements PythonObject {
  readonly pythonType = "date";
  /** Days since the epoch. */
  readonly days: number;
  constructor(days: number) {
    this.days = days;
  }
  key(): number {
    return this.days;
  }
  truth(): boolean {
    return true;
  }
  str(): string {
    const f = fields(this);
    return `${pad(f.year, 4)}-${pad(f.month)}-${pad(f.day)}`;
  }
  repr(): string {
    return `datetime.date(${this.str()})`;
  }
}

export class TimeDelta implements PythonObject {
  readonly pythonType = "timedelta";
  readonly us: bigint;
  /** Of isodate's Duration: how long they are is known once they are added to a date. */
  readonly months: number;
  constructor(us: bigint, months = 0) {
    this.us = us;
    this.months = months;
  }
  key(): bigint {
    return this.us;
  }
  truth(): boolean {
    return this.us !== 0n || this.months !== 0;
  }
  days(): number {
    return Number(floorDivide(this.us, DAY_US));
  }
  str(): string {
    return `${this.months ? `${this.months} months, ` : ""}${this.#clock()}`;
  }
  #clock(): string {
    const days = this.days();
    const rest = Number(this.us - BigInt(days) * DAY_US);
    const seconds = Math.floor(rest / 1e6);
    const micro = rest % 1e6;
    const clock = `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}${micro ? `.${String(micro).padStart(6, "0")}` : ""}`;
    return days ? `${days} day${Math.abs(days) === 1 ? "" : "s"}, ${clock}` : clock;
  }
  repr(): string {
    return `datetime.timedelta(${this.str()})`;
  }
}

export interface Fields {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly micro: number;
  /** Monday is 0. */
  readonly weekday: number;
  readonly yearday: number;
}

export function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** The wall-clock fields, in the value's own offset. */
export function fields(value: DateTime | PyDate): Fields {
  const us = value instanceof PyDate ? BigInt(value.days) * DAY_US : value.us + BigInt(value.offset ?? 0) * 60_000_000n;
  const ms = floorDivide(us, 1000n);
  const date = new Date(Number(ms));
  const year = date.getUTCFullYear();
  if (Number.isNaN(year) || year < 1 || year > 9999) throw new EvaluationError("date value out of range");
  return {
    year,
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    micro: Number(us - floorDivide(us, 1_000_000n) * 1_000_000n),
    weekday: (date.getUTCDay() + 6) % 7,
    yearday: Math.floor((Number(ms) - utc(year, 1, 1)) / 86_400_000) + 1,
  };
}

function utc(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): number {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  return date.getTime();
}

/** A day, and the time in it: midnight where it is not said. */
type WallClock = Pick<Fields, "year" | "month" | "day"> & Partial<Pick<Fields, "hour" | "minute" | "second" | "micro">>;

/** An instant from wall-clock fields in an offset (minutes; null is naive, counted as UTC). */
export function fromFields(
  { year, month, day, hour = 0, minute = 0, second = 0, micro = 0 }: WallClock,
  offset: number | null = 0,
): DateTime {
  if (
    year < 1 ||
    year > 9999 ||
    month < 1 ||
    month > 12 ||
    day < 1 ||
    day > new Date(Date.UTC(year < 100 ? year + 400 : year, month, 0)).getUTCDate()
  )
    throw new EvaluationError("day is out of range for month");
  if (Math.min(hour, minute, second, micro) < 0 || hour > 23 || minute > 59 || second > 61 || micro > 999_999)
    throw new EvaluationError("time out of range");
  return new DateTime(
    BigInt(utc(year, month, day, hour, minute, second)) * 1000n + BigInt(micro) - BigInt(offset ?? 0) * 60_000_000n,
    offset,
  );
}

export const pad = (value: number, width = 2): string => String(value).padStart(width, "0");

export function offsetText(offset: number | null, separator: string): string {
  if (offset === null) return "";
  const minutes = Math.abs(offset);
  return `${offset < 0 ? "-" : "+"}${pad(Math.floor(minutes / 60))}${separator}${pad(minutes % 60)}`;
}
