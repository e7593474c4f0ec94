// Dates as text: strftime, strptime, ISO 8601, with the formats that the manifest language adds.
import { DAY_US, DateTime, type Fields, fields, floorDivide, fromFields, offsetText, PyDate, pad } from "./datetime.ts";
import { EvaluationError } from "./errors.ts";

const MAX_FORMAT = 10_000;

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
  if (format.length > MAX_FORMAT) throw new EvaluationError("the date's format is too large");
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
    k: () => String(f.hour).padStart(2),
    I: () => pad(hour12),
    l: () => String(hour12).padStart(2),
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
    P: () => (f.hour < 12 ? "am" : "pm"),
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

/** The week that a day is in, and the year that the week counts to: ISO 8601. */
export function isoWeek(f: Fields): { year: number; week: number } {
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
  Z: "(?<Z>[Uu][Tt][Cc]|[Gg][Mm][Tt]|[ECMP][SD]T)",
  j: "(?<j>\\d{1,3})",
  a: "(?<a>[A-Za-z]{3})",
  A: "(?<A>[A-Za-z]{6,9})",
  b: "(?<b>[A-Za-z]{3})",
  B: "(?<B>[A-Za-z]{3,9})",
  p: "(?<p>[AaPp][Mm])",
  "%": "%",
};

// Made once a format: every record of a stream has the same ones. Letters are small or large, as in Python.
const compiled = new Map<string, RegExp>();
const MAX_COMPILED = 1000;

function patternOf(format: string): RegExp {
  const known = compiled.get(format);
  if (known) return known;
  const expanded = format.replaceAll("%_ms", "\u0000").replaceAll("%T", "%H:%M:%S").replaceAll("%F", "%Y-%m-%d");
  const source = expanded
    .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    .replace(/\s+/g, "\\s+")
    .replace(/%-?([A-Za-z%])/g, (whole, code: string) => patterns[code] ?? whole)
    .replaceAll("\u0000", "(?<ms>\\d{1,3})");
  let pattern: RegExp;
  try {
    pattern = new RegExp(`^${source}$`, "i");
  } catch {
    throw new EvaluationError(`the date format '${format}' repeats a field`);
  }
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  compiled.set(format, pattern);
  return pattern;
}

/** strptime; naive unless the text has an offset. Returns undefined when the text does not fit. */
export function strptime(text: string, format: string): DateTime | undefined {
  if (format === "%s" || format === "%ms" || format === "%epoch_microseconds") {
    if (!/^-?\d+(\.\d+)?$/.test(text)) return undefined;
    const unit = format === "%s" ? 1_000_000n : format === "%ms" ? 1000n : 1n;
    return sinceEpoch(BigInt(text.split(".")[0] ?? "0") * unit);
  }
  if (format === "%s_as_float")
    return Number.isFinite(Number(text) * 1e6) && text.trim()
      ? sinceEpoch(BigInt(Math.round(Number(text) * 1e6)))
      : undefined;
  const found = patternOf(format).exec(text);
  return found ? fromGroups(found.groups ?? {}) : undefined;
}

const FIRST_US = -62_135_596_800_000_000n;
const LAST_US = 253_402_300_799_999_999n;

// Outside of the years 1 to 9999 there is no date, as in Python: nothing could be written of it.
const sinceEpoch = (us: bigint): DateTime | undefined =>
  us < FIRST_US || us > LAST_US ? undefined : new DateTime(us, 0);

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
  const zone = groups["z"] === undefined ? zoneNamed(groups["Z"]) : parseOffset(groups["z"]);
  try {
    const [day, minute, second] = [number("d", 1), number("M", 0), number("S", 0)];
    const start = fromFields({ year, month, day, hour, minute, second, micro }, zone);
    return groups["j"] === undefined
      ? start
      : new DateTime(start.us + BigInt(Number(groups["j"]) - 1) * DAY_US, start.offset);
  } catch {
    return undefined;
  }
}

/** RFC 822, section 5.1: of all names of zones only these mean one offset. */
const zones: Readonly<Record<string, number>> = {
  EST: -5,
  EDT: -4,
  CST: -6,
  CDT: -5,
  MST: -7,
  MDT: -6,
  PST: -8,
  PDT: -7,
};

function zoneNamed(name: string | undefined): number | null {
  const hours = name === undefined ? undefined : zones[name.toUpperCase()];
  return hours === undefined ? null : hours * 60;
}

function parseOffset(text: string): number {
  if (text === "Z" || text === "z") return 0;
  const digits = text.slice(1).replaceAll(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2, 4) || 0);
  return text.startsWith("-") ? -minutes : minutes;
}

const ISO =
  /^\s*(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?(?:[T ]\s*(\d{1,2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?)?(?:\s*(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?)?\s*$/;

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
  // 24:00 is the day's end.
  const ends = Number(hour ?? 0) === 24 && Number(minute ?? 0) + Number(second ?? 0) + micro === 0;
  const begin = fromFields(
    {
      year: Number(year),
      month: Number(month ?? 1),
      day: Number(day ?? 1),
      hour: ends ? 0 : Number(hour ?? 0),
      minute: Number(minute ?? 0),
      second: Number(second ?? 0),
      micro,
    },
    offset,
  );
  return ends ? new DateTime(begin.us + DAY_US, begin.offset) : begin;
}

/** The same for what nobody may guess: to one vendor 05/02/2024 is in May, to another in February. */
export function parseUnambiguous(text: string): DateTime {
  if (/^\s*\d{1,2}\//.test(text)) throw new EvaluationError(`'${text}' may be two days`);
  return parseIso(text);
}
