// Dates and timestamps between PostgreSQL's text form and numbers of days or microseconds since 1970, in the proleptic Gregorian
// calendar, without JavaScript's Date, which has milliseconds only and fewer years.

const DAY_MICROS = 86_400_000_000n;
const form =
  /^(\d{4,7})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?( BC)?$/;

/** Microseconds since 1970-01-01 (UTC); null for `infinity` and for what is no timestamp (MySQL's zero dates, February 30th). */
export function microsOf(text: string): bigint | null {
  const parts = form.exec(text);
  if (!parts) return null;
  const [, year = "", month = "", day = "", hour = "0", minute = "0", second = "0", fraction = "", zone = "", bc] =
    parts;
  if (Number(year) === 0 || Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60) return null;
  const civilYear = bc ? 1 - Number(year) : Number(year);
  if (Number(day) === 0 || Number(day) > daysInMonth(civilYear, Number(month))) return null;
  const days = daysFromCivil(civilYear, Number(month), Number(day));
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second) - offsetOf(zone);
  return BigInt(days) * DAY_MICROS + BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
}

/** RFC 3339 and the forms near it; the fraction, whose digits a text's order would get wrong before a `Z`, by itself. */
export const timeForm = /^(\d{4,}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?)(?:\.(\d+))?(Z|[+-]\d\d(?::?\d\d)?)?( BC)?$/i;

/** A text that sorts as the instant does, to any fraction of a second; null for what names none. Without an offset: as if in UTC. */
export function instantKey(text: string): string | null {
  const [, moment = "", fraction = "", zone = "", bc = ""] = timeForm.exec(text) ?? [];
  const micros = microsOf(`${moment.replace(/t/i, " ")}${zone.toUpperCase()}${bc}`);
  return micros === null ? null : `${ABOVE_ALL + micros}.${fraction.replace(/(?<!0)0+$/, "")}`;
}

// So that all have as many digits, before 1970 too.
const ABOVE_ALL = 2n * 10n ** 24n;

/** Days since 1970-01-01; null for `infinity` and for what is no date. */
export function daysOf(text: string): number | null {
  const micros = microsOf(text);
  return micros === null ? null : Number(micros / DAY_MICROS - (micros % DAY_MICROS < 0n ? 1n : 0n));
}

/** `YYYY-MM-DD HH:MM:SS[.ffffff]`, with `+00` where it is an instant. */
export function timestampOf(micros: bigint, zone: boolean): string {
  let rest = micros % DAY_MICROS;
  if (rest < 0n) rest += DAY_MICROS;
  const { date, bc } = civil(Number((micros - rest) / DAY_MICROS));
  return `${date} ${timeOf(rest)}${zone ? "+00" : ""}${bc}`;
}

export function dateOf(days: number): string {
  const { date, bc } = civil(days);
  return date + bc;
}

/** Where texts of times are looked back to: offsets of two differ by less than two days. Before the first year a date is no text of this order. */
export function lookBackFrom(days: number): string {
  return dateOf(Math.max(days - 2, daysFromCivil(1, 1, 1)));
}

/** `HH:MM:SS[.ffffff]` of microseconds since midnight. */
export function timeOf(micros: bigint): string {
  const two = (value: bigint) => String(value).padStart(2, "0");
  const fraction = micros % 1_000_000n;
  const seconds = micros / 1_000_000n;
  const tail = fraction === 0n ? "" : `.${String(fraction).padStart(6, "0").replace(/0+$/, "")}`;
  return `${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}${tail}`;
}

/** A timestamp or time that falls between two microseconds, which databases would round: they refuse this text. `nanos`: 1 to 999. */
export const betweenMicros = (text: string, nanos: bigint): string => `${text} (and ${nanos} ns)`;

/** Such a text for who keeps texts: nine digits of a second. Any other as it is. */
export function withNanos(text: string): string {
  const parts = text.endsWith(" ns)") ? /^(.*:\d\d)(?:\.(\d+))?(\+00)? \(and (\d+) ns\)$/.exec(text) : null;
  if (!parts) return text;
  const [, clock, fraction = "", zone = "", nanos = ""] = parts;
  return `${clock}.${fraction.padEnd(6, "0")}${nanos.padStart(3, "0")}${zone}`;
}

function offsetOf(zone: string): number {
  const parts = /^([+-])(\d\d):?(\d\d)?:?(\d\d)?$/.exec(zone);
  if (!parts) return 0;
  const seconds = Number(parts[2]) * 3600 + Number(parts[3] ?? 0) * 60 + Number(parts[4] ?? 0);
  return parts[1] === "-" ? -seconds : seconds;
}

export function daysInMonth(year: number, month: number): number {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
}

// Howard Hinnant, "chrono-compatible low-level date algorithms": days_from_civil and civil_from_days.
export function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  return (
    era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
  );
}

function civil(days: number): { date: string; bc: string } {
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const m = Math.floor((5 * dayOfYear + 2) / 153);
  const month = m < 10 ? m + 3 : m - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const two = (value: number) => String(value).padStart(2, "0");
  const shown = year > 0 ? year : 1 - year;
  return {
    date: `${String(shown).padStart(4, "0")}-${two(month)}-${two(dayOfYear - Math.floor((153 * m + 2) / 5) + 1)}`,
    bc: year > 0 ? "" : " BC",
  };
}
