// Dates and timestamps as numbers, the quick way for the years in which a number holds microseconds exactly; the others go the
// exact way (engine/temporal.ts), which also judges what is no date.
import { daysFromCivil, daysOf } from "../../../engine/temporal.ts";

const FIRST_YEAR = 1700;
const LAST_YEAR = 2200;

/** Microseconds since 1970 of `YYYY-MM-DD HH:MM:SS[.ffffff][+00]`; null: ask the exact way. */
export function microsIn(text: string): number | null {
  const length = text.length;
  if (length < 19 || text.charCodeAt(10) !== 32 || text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58)
    return null;
  const days = dateIn(text);
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  if (days === null || !(hour < 24 && minute < 60 && second < 60)) return null;
  let at = 19;
  let micros = 0;
  if (text.charCodeAt(at) === 46) {
    let unit = 100_000;
    for (at++; at < length; at++, unit /= 10) {
      const digit = text.charCodeAt(at) - 48;
      if (digit < 0 || digit > 9) break;
      if (unit < 1) return null;
      micros += digit * unit;
    }
  }
  // The engine's instants end with +00.
  const rest = length - at;
  if (rest !== 0 && !(rest === 3 && text.endsWith("+00"))) return null;
  return days * 86_400_000_000 + (hour * 3600 + minute * 60 + second) * 1_000_000 + micros;
}

/** Days since 1970; null for what is no date. */
export function daysIn(text: string): number | null {
  return (text.length === 10 ? dateIn(text) : null) ?? daysOf(text);
}

function dateIn(text: string): number | null {
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return null;
  const year = two(text, 0) * 100 + two(text, 2);
  const month = two(text, 5);
  const day = two(text, 8);
  // The last days of a month are judged elsewhere.
  if (!(year >= FIRST_YEAR && year <= LAST_YEAR && month >= 1 && month <= 12 && day >= 1 && day <= 28)) return null;
  return daysFromCivil(year, month, day);
}

// NaN where there are no two digits.
function two(text: string, at: number): number {
  const a = text.charCodeAt(at) - 48;
  const b = text.charCodeAt(at + 1) - 48;
  return a >= 0 && a <= 9 && b >= 0 && b <= 9 ? a * 10 + b : Number.NaN;
}
