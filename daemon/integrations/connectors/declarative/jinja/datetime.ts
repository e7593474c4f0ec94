// Python's datetime, date and timedelta as far as manifests use them: arithmetic, strftime, strptime, isoformat. Microseconds are kept.
import { EvaluationError } from "./errors.ts";
import type { PythonObject } from "./python.ts";

const DAY_US = 86_400_000_000n;

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
  isoformat(separator = "T"): string {
    const f = fields(this);
    const micro = f.micro ? `.${String(f.micro).padStart(6, "0")}` : "";
    return `${pad(f.year, 4)}-${pad(f.month)}-${pad(f.day)}${separator}${pad(f.hour)}:${pad(f.minute)}:${pad(f.second)}${micro}${offsetText(this.offset, ":")}`;
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
  constructor(us: bigint) {
    this.us = us;
  }
  key(): bigint {
    return this.us;
  }
  truth(): boolean {
    return this.us !== 0n;
  }
  days(): number {
    return Number(floorDivide(this.us, DAY_US));
  }
  str(): string {
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

function floorDivide(a: bigint, b: bigint): bigint {
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

/** An instant from wall-clock fields in an offset (minutes; null is naive, counted as UTC). */
export function fromFields(
  year: number,
  month: number,
  day: number,
  hour = 0,
  minute = 0,
  second = 0,
  micro = 0,
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
  if (hour > 23 || minute > 59 || second > 61) throw new EvaluationError("time out of range");
  return new DateTime(
    BigInt(utc(year, month, day, hour, minute, second)) * 1000n + BigInt(micro) - BigInt(offset ?? 0) * 60_000_000n,
    offset,
  );
}

const pad = (value: number, width = 2): string => String(value).padStart(width, "0");

function offsetText(offset: number | null, separator: string): string {
  if (offset === null) return "";
  const minutes = Math.abs(offset);
  return `${offset < 0 ? "-" : "+"}${pad(Math.floor(minutes / 60))}${separator}${pad(minutes % 60)}`;
}

const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** strftime in the C locale, with the formats of the manifest language: %s, %ms, %s_as_float, %epoch_microseconds, %_ms. */
export function strftime(value: DateTime | PyDate, format: string): string {
  const us = value instanceof PyDate ? BigInt(value.days) * DAY_US : value.us;
  if (format === "%s") return floorDivide(us, 1_000_000n).toString();
  if (format === "%s_as_float")
    return (Number(us) / 1e6)
      .toFixed(6)
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, ".0");
  if (format === "%epoch_microseconds") return us.toString();
  if (format === "%ms") return floorDivide(us, 1000n).toString();
  const f = fields(value);
  const offset = value instanceof PyDate ? null : value.offset;
  return format
    .replaceAll("%_ms", pad(Math.floor(f.micro / 1000), 3))
    .replace(/%([a-zA-Z%]|-[a-zA-Z])/g, (whole, code: string) => directive(code, f, offset, us) ?? whole);
}

function directive(code: string, f: Fields, offset: number | null, us: bigint): string | undefined {
  const hour12 = f.hour % 12 || 12;
  const sunday = (f.weekday + 1) % 7;
  const table: Readonly<Record<string, () => string>> = {
    Y: () => String(f.year),
    y: () => pad(f.year % 100),
    C: () => pad(Math.floor(f.year / 100)),
    m: () => pad(f.month),
    d: () => pad(f.day),
    e: () => String(f.day).padStart(2),
    H: () => pad(f.hour),
    I: () => pad(hour12),
    M: () => pad(f.minute),
    S: () => pad(f.second),
    f: () => pad(f.micro, 6),
    z: () => offsetText(offset, ""),
    Z: () => (offset === null ? "" : offset === 0 ? "UTC" : `UTC${offsetText(offset, ":")}`),
    j: () => pad(f.yearday, 3),
    a: () => (weekdays[f.weekday] ?? "").slice(0, 3),
    A: () => weekdays[f.weekday] ?? "",
    b: () => (months[f.month - 1] ?? "").slice(0, 3),
    h: () => (months[f.month - 1] ?? "").slice(0, 3),
    B: () => months[f.month - 1] ?? "",
    p: () => (f.hour < 12 ? "AM" : "PM"),
    u: () => String(f.weekday + 1),
    w: () => String(sunday),
    U: () => pad(Math.floor((f.yearday + 6 - sunday) / 7)),
    W: () => pad(Math.floor((f.yearday + 6 - f.weekday) / 7)),
    G: () => String(isoWeek(f).year),
    V: () => pad(isoWeek(f).week),
    s: () => floorDivide(us, 1_000_000n).toString(),
    D: () => `${pad(f.month)}/${pad(f.day)}/${pad(f.year % 100)}`,
    F: () => `${f.year}-${pad(f.month)}-${pad(f.day)}`,
    T: () => `${pad(f.hour)}:${pad(f.minute)}:${pad(f.second)}`,
    R: () => `${pad(f.hour)}:${pad(f.minute)}`,
    x: () => `${pad(f.month)}/${pad(f.day)}/${pad(f.year % 100)}`,
    X: () => `${pad(f.hour)}:${pad(f.minute)}:${pad(f.second)}`,
    c: () =>
      `${(weekdays[f.weekday] ?? "").slice(0, 3)} ${(months[f.month - 1] ?? "").slice(0, 3)} ${String(f.day).padStart(2)} ${pad(f.hour)}:${pad(f.minute)}:${pad(f.second)} ${f.year}`,
    n: () => "\n",
    t: () => "\t",
    "%": () => "%",
  };
  if (code.startsWith("-")) {
    const padded = table[code.slice(1)]?.();
    return padded?.replace(/^[0 ]+(?=.)/, "");
  }
  return table[code]?.();
}

function isoWeek(f: Fields): { year: number; week: number } {
  const week = Math.floor((f.yearday - (f.weekday + 1) + 10) / 7);
  if (week < 1) return { year: f.year - 1, week: weeksIn(f.year - 1) };
  return week > weeksIn(f.year) ? { year: f.year + 1, week: 1 } : { year: f.year, week };
}

function weeksIn(year: number): number {
  const p = (y: number): number => (y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400)) % 7;
  return p(year) === 4 || p(year - 1) === 3 ? 53 : 52;
}

const patterns: Readonly<Record<string, string>> = {
  Y: "(?<Y>\\d{4})",
  y: "(?<y>\\d{2})",
  m: "(?<m>1[0-2]|0?[1-9])",
  d: "(?<d>3[01]|[12]\\d|0?[1-9]| [1-9])",
  H: "(?<H>2[0-3]|[01]\\d|\\d)",
  I: "(?<I>1[0-2]|0?[1-9])",
  M: "(?<M>[0-5]\\d|\\d)",
  S: "(?<S>6[01]|[0-5]\\d|\\d)",
  f: "(?<f>\\d{1,6})",
  z: "(?<z>[+-]\\d\\d:?[0-5]\\d(?::?[0-5]\\d)?|Z)",
  Z: "(?<Z>[A-Za-z]{3,4})",
  j: "(?<j>\\d{1,3})",
  a: "(?<a>[A-Za-z]{3})",
  A: "(?<A>[A-Za-z]{6,9})",
  b: "(?<b>[A-Za-z]{3})",
  B: "(?<B>[A-Za-z]{3,9})",
  p: "(?<p>[AaPp][Mm])",
  "%": "%",
};

/** strptime; naive unless the text has an offset. Returns undefined when the text does not fit. */
export function strptime(text: string, format: string): DateTime | undefined {
  if (format === "%s" || format === "%ms" || format === "%epoch_microseconds") {
    if (!/^-?\d+(\.\d+)?$/.test(text)) return undefined;
    const unit = format === "%s" ? 1_000_000n : format === "%ms" ? 1000n : 1n;
    return new DateTime(BigInt(text.split(".")[0] ?? "0") * unit, 0);
  }
  if (format === "%s_as_float")
    return Number.isFinite(Number(text)) && text.trim()
      ? new DateTime(BigInt(Math.round(Number(text) * 1e6)), 0)
      : undefined;
  const expanded = format.replaceAll("%_ms", "\u0000").replaceAll("%T", "%H:%M:%S").replaceAll("%F", "%Y-%m-%d");
  const source = expanded
    .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    .replace(/\s+/g, "\\s+")
    .replace(/%-?([A-Za-z%])/g, (whole, code: string) => patterns[code] ?? whole)
    .replaceAll("\u0000", "(?<ms>\\d{1,3})");
  let found: RegExpExecArray | null;
  try {
    found = new RegExp(`^${source}$`).exec(text);
  } catch {
    throw new EvaluationError(`the date format '${format}' repeats a field`);
  }
  return found ? fromGroups(found.groups ?? {}) : undefined;
}

function fromGroups(groups: Record<string, string | undefined>): DateTime | undefined {
  const number = (name: string, otherwise: number): number =>
    groups[name] === undefined ? otherwise : Number(groups[name]);
  let year = number("Y", 1900);
  if (groups["y"] !== undefined) year = Number(groups["y"]) + (Number(groups["y"]) < 69 ? 2000 : 1900);
  let month = number("m", 1);
  const name = (groups["b"] ?? groups["B"])?.toLowerCase();
  if (name) {
    month =
      months.findIndex(
        (candidate) => candidate.toLowerCase() === name || candidate.slice(0, 3).toLowerCase() === name,
      ) + 1;
    if (!month) return undefined;
  }
  let hour = number("H", 0);
  if (groups["I"] !== undefined) hour = (Number(groups["I"]) % 12) + (groups["p"]?.toLowerCase() === "pm" ? 12 : 0);
  const micro =
    groups["ms"] === undefined
      ? Number((groups["f"] ?? "0").padEnd(6, "0"))
      : Number(groups["ms"].padEnd(3, "0")) * 1000;
  const zone =
    groups["z"] === undefined
      ? groups["Z"] && /^(utc|gmt)$/i.test(groups["Z"])
        ? null
        : null
      : parseOffset(groups["z"]);
  try {
    const start = fromFields(year, month, number("d", 1), hour, number("M", 0), number("S", 0), micro, zone);
    return groups["j"] === undefined
      ? start
      : new DateTime(start.us + BigInt(Number(groups["j"]) - 1) * DAY_US, start.offset);
  } catch {
    return undefined;
  }
}

function parseOffset(text: string): number {
  if (text === "Z" || text === "z") return 0;
  const digits = text.slice(1).replaceAll(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2, 4) || 0);
  return text.startsWith("-") ? -minutes : minutes;
}

const ISO =
  /^\s*(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?(?:[T ]\s*(\d{1,2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?)?\s*(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?\s*$/;

/** ISO 8601 text to an instant; without an offset it counts as UTC. Throws when it is no date. */
export function parseIso(text: string): DateTime {
  const found = ISO.exec(text);
  if (!found) {
    for (const format of [
      "%a, %d %b %Y %H:%M:%S %z",
      "%a, %d %b %Y %H:%M:%S %Z",
      "%m/%d/%Y",
      "%m/%d/%Y %H:%M:%S",
      "%d %b %Y",
      "%b %d, %Y",
      "%Y/%m/%d",
      "%Y/%m/%d %H:%M:%S",
    ]) {
      const value = strptime(text.trim(), format);
      if (value) return new DateTime(value.us, value.offset ?? 0);
    }
    throw new EvaluationError(`'${text}' is not a date`);
  }
  const [, year, month, day, hour, minute, second, fraction, zone] = found;
  const micro = fraction ? Number(fraction.slice(0, 6).padEnd(6, "0")) : 0;
  const offset = !zone || /^[zA-Z]+$/.test(zone) ? 0 : parseOffset(zone);
  return fromFields(
    Number(year),
    Number(month ?? 1),
    Number(day ?? 1),
    Number(hour ?? 0),
    Number(minute ?? 0),
    Number(second ?? 0),
    micro,
    offset,
  );
}

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
  const f = fields(value);
  const index = f.year * 12 + f.month - 1 + duration.months;
  const [year, month] = [Math.floor(index / 12), (index % 12) + 1];
  const day = Math.min(f.day, new Date(Date.UTC(year, month, 0)).getUTCDate());
  return new DateTime(
    fromFields(year, month, day, f.hour, f.minute, f.second, f.micro, value.offset).us + duration.us,
    value.offset,
  );
}
