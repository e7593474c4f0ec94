// What a type would drop from a text that it accepts: decimal places, a float's further digits, seconds' fractions, a date beside a
// time, a time of day, an offset, blanks; and words that mean another moment at every run. Each check answers the reason, or null.
import { floatText } from "./float-text.ts";
import type { Column } from "./types.ts";

export type Check = (text: string) => string | null;

/** The check for texts that go into a column of a PostgreSQL type, by its name and kind; null: it changes none. */
export function checkOf(target: Pick<Column, "type" | "native">): Check | null {
  const native = target.native ?? "";
  const { type } = target;
  const digits = Number(/^(?:timestamp|time|interval)[a-z ]*\((\d)\)/.exec(native)?.[1] ?? 6);
  if (type.kind === "array")
    return elements(checkOf({ type: type.items, ...(native.endsWith("[]") ? { native: native.slice(0, -2) } : {}) }));
  if (type.kind === "decimal") return type.scale === undefined ? null : decimals(type.scale, native);
  if (type.kind === "float") return float(type.bits, native);
  if (type.kind === "date" || type.kind === "timestamp") return moment(type, native, digits);
  if (type.kind === "time") return timeOfDay(type.zone, native, digits);
  if (/^interval/.test(native)) {
    const fields = fieldsOf(native);
    return (text) => fraction(text, digits) ?? spanFraction(text, digits) ?? fields?.(text) ?? null;
  }
  if (native === "money") return money;
  if (/^(oid|xid|cid)$/.test(native))
    return (text) =>
      /^\s*\d{1,10}\s*$/.test(text) && Number(text) < 2 ** 32 ? null : `no number that ${native} holds`;
  if (/^bit/.test(native)) return (text) => (/^[bx]$/i.test(text) ? "no digits" : null);
  const bytes = native === '"char"' ? 1 : native === "name" ? 63 : 0;
  // A byte beyond ASCII is written as `\377`.
  if (bytes > 0)
    return (text) =>
      Buffer.byteLength(text) > bytes && !(bytes === 1 && /^\\[0-7]{3}$/.test(text))
        ? `more bytes than ${native} holds`
        : null;
  const length = Number(/^character varying\((\d+)\)/.exec(native)?.[1] ?? 0);
  if (length > 0)
    return (text) =>
      text.endsWith(" ") && [...text].length > length ? `the blanks at its end do not fit ${native}` : null;
  return null;
}

// The items of an array literal, whatever its nesting and bounds.
function elements(check: Check | null): Check | null {
  if (!check) return null;
  return (text) => {
    const body = text.startsWith("[") ? text.slice(text.indexOf("=") + 1) : text;
    for (const [item] of body.matchAll(/"(?:[^"\\]|\\.)*"|[^{},]+/gs)) {
      const quoted = item.startsWith('"');
      if (!quoted && /^null$/i.test(item)) continue;
      const reason = check(quoted ? item.slice(1, -1).replace(/\\(.)/gs, "$1") : item);
      if (reason !== null) return reason;
    }
    return null;
  };
}

/** A number with more places behind the point than `scale`; what is no number is for the destination to refuse. */
export function decimals(scale: number, native: string): Check {
  return (text) => {
    const parts = /^\s*(?!\s)[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,5}))?\s*$/.exec(text);
    if (!parts) return null;
    const [, whole = "", places = "", exponent = "0"] = parts;
    const digits = whole + places;
    // The digit at which 10^-scale stands.
    const end = whole.length + Number(exponent) + scale;
    return /[1-9]/.test(end < 0 ? digits : digits.slice(end))
      ? `more decimal places than ${native || `scale ${scale}`} holds`
      : null;
  };
}

/** A decimal number that is neither the float's shortest text nor the float rounded to as many digits (17 at most; 9 of four bytes). */
export function float(bits: 32 | 64, native: string): Check {
  const [always, most] = bits === 64 ? [15, 17] : [6, 9];
  return (text) => {
    const written = significant(text);
    if (written === null) return null;
    const { length } = written.digits;
    if (length <= always && Math.abs(written.exponent) < 30) return null;
    const number = bits === 64 ? Number(text) : Math.fround(Number(text));
    const same = (shown: { digits: string; exponent: number } | null) =>
      shown?.digits === written.digits && shown.exponent === written.exponent;
    if (same(significant(floatText(number, bits)))) return null;
    const exact = significant(number.toPrecision(100));
    if (same(exact)) return null;
    if (length <= most && same(significant(number.toPrecision(Math.max(length, 1))))) return null;
    // A tie: JavaScript rounds it up, C to the even digit.
    const tie = exact?.digits.length === length + 1 && exact.digits.endsWith("5");
    return tie && length <= most && same({ ...exact, digits: exact.digits.slice(0, -1) })
      ? null
      : `more digits than ${native || `a float of ${bits} bits`} holds`;
  };
}

// Digits without zeros at either end, and the power of ten of the first one; null: not a decimal number.
function significant(text: string): { digits: string; exponent: number } | null {
  const parts = /^\s*(?!\s)[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?\s*$/.exec(text);
  if (!parts || (!parts[1] && !parts[2])) return null;
  const all = `${parts[1] ?? ""}${parts[2] ?? ""}`;
  const digits = all.replace(/^0+/, "");
  if (digits === "") return { digits: "", exponent: 0 };
  const exponent = (parts[1]?.length ?? 0) - (all.length - digits.length) + Number(parts[3] ?? 0);
  return { digits: digits.replace(/(?<!0)0+$/, ""), exponent };
}

const midnight = /[T ]00:00(:00(\.0+)?)?(Z|[+-]00(:?00)?)?$/i;
// `+02`, or a zone's name: anything with letters behind the time but an era, a half of the day or UTC itself.
const offset =
  /:\d\d(?:\.\d+)? ?[+-](?!00(?::?00)?$)\d\d|\d:\d\d(?::[\d.]+)?\s*(?!(?:bc|ad|am|pm|utc|gmt|z|[ +\d:.-])+$)[\d\s]*[a-z]/i;
const infinite = /^\s*[+-]?inf(inity)?\s*$/i;

// PostgreSQL takes "now" and "tomorrow" for dates, and "$1.005" for the fifth of January 2001.
function moment(type: Column["type"] & { kind: "date" | "timestamp" }, native: string, digits: number): Check {
  const plain = native || (type.kind === "date" ? "a date" : "a timestamp");
  return (text) => {
    if (!/\d{4}/.test(text) && !infinite.test(text)) return `no year of four digits, which ${plain} needs`;
    if (type.kind === "date")
      return text.includes(":") && !midnight.test(text) ? `a time of day does not fit ${plain}` : null;
    return (
      fraction(text, digits) ??
      (!type.zone && offset.test(text.slice(0, 128)) ? `an offset does not fit ${plain}` : null)
    );
  };
}

const dated =
  /\d{4}[-/.]|\d[-/.]\d+[-/.]\d|\d[ T]\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|yesterday|today|tomorrow|now|allballs/i;

function timeOfDay(zone: boolean, native: string, digits: number): Check {
  return (text) => {
    if (dated.test(text.replace(/\.\d+/, "").replace(/ ?[+-][\d:]+\s*$/, "")))
      return `a date or a word does not fit ${native || "a time"}`;
    return (
      fraction(text, digits) ??
      (!zone && offset.test(text.slice(0, 128)) ? `an offset does not fit ${native || "a time"}` : null)
    );
  };
}

/** A second's fraction of more than `digits` digits. */
export function fraction(text: string, digits: number): string | null {
  const found = /:\d\d\.(\d+)/.exec(text)?.[1] ?? "";
  return /[1-9]/.test(found.slice(digits)) ? `more than ${digits} digits of a second's fraction` : null;
}

// Seconds without a colon: `1.5`, `1 day 0.0000001 sec`.
function spanFraction(text: string, digits: number): string | null {
  const found = /\.(\d+)(?:\s*(?:s|secs?|seconds?))?(?:\s*ago)?\s*$/i.exec(text)?.[1] ?? "";
  return /[1-9]/.test(found.slice(digits)) ? `more than ${digits} digits of a second's fraction` : null;
}

const units = ["year", "month", "day", "hour", "minute", "second"];

// `interval day to hour` drops what is finer than its last field; texts as PostgreSQL writes them can be told.
function fieldsOf(native: string): Check | null {
  const last = units.indexOf(/^interval [a-z ]*?([a-z]+)(?:\(\d\))?$/.exec(native)?.[1] ?? "second");
  if (last === units.length - 1) return null;
  const form =
    /^(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?(?:[+-]?(\d+):(\d\d):(\d\d(?:\.\d+)?))?$/;
  return (text) => {
    const parts = form.exec(text);
    if (!parts) return `not written in the units of ${native}`;
    return parts.slice(2 + last).some((part) => Number(part ?? 0) !== 0) ? `a unit that ${native} drops` : null;
  };
}

function money(text: string): string | null {
  const bare = text.replace(/[^\d.]/g, "");
  // A comma that parts no thousands is somebody's decimal point.
  if (bare === "" || /,(?!\d{3}(?!\d))/.test(text)) return "no amount";
  return decimals(2, "money")(bare);
}
