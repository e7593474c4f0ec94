// Times as cursors write and read them: in the manifest's formats, and in those that leave no doubt.
import { type Context, text } from "../context.ts";
import { parseUnambiguous, strftime, strptime } from "../jinja/date-text.ts";
import { DateTime } from "../jinja/datetime.ts";
import { addDuration, type parseDuration } from "../jinja/duration.ts";
import { type Component, isRecord, manifestError, optionalText } from "../manifest/component.ts";

// A format without an offset speaks of UTC, and a vendor may send 10:00+02:00: written as 10:00Z it would hide two hours.
export function written(value: DateTime, format: string): string {
  return strftime(/%[zZ]/.test(format) ? value : new DateTime(value.us, offsetIn(format)), format);
}

// Minutes: an offset may stand in the format itself (`...%S-12:00`). The reference writes other offsets' digits beside it, and so passes over hours.
function offsetIn(format: string): number {
  const [, sign, hours, minutes] = /%[Sf](?:\.0+)?([+-])(\d\d):?(\d\d)$/.exec(format) ?? [];
  return sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes));
}

export function parseAny(value: string, formats: readonly string[]): DateTime | undefined {
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

/** So much earlier; without a length the time itself. */
export function before(time: DateTime, length: ReturnType<typeof parseDuration> | undefined): DateTime {
  return length ? addDuration(time, { months: -length.months, us: -length.us }) : time;
}

/** A MinMaxDatetime, or text that is a date. */
export function minMax(context: Context, parent: Component, value: unknown, format: string): DateTime | undefined {
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
