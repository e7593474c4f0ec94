// The methods and fields of Python's dates, times and what lies between them.
import type { Arguments, Method } from "./arguments.ts";
import { strftime } from "./date-text.ts";
import { DateTime, fields, PyDate, type TimeDelta } from "./datetime.ts";
import { float } from "./python.ts";

export const dateMethods: Readonly<Record<string, Method<DateTime | PyDate>>> = {
  strftime: (d, a) => strftime(d, a.text(0, "format")),
  isoformat: (d, a) =>
    d instanceof DateTime ? d.isoformat(a.text(0, "sep", "T"), a.text(1, "timespec", "auto")) : d.str(),
  date: (d) =>
    new PyDate(
      Number(
        (BigInt.asIntN(64, fieldsUs(d)) - (((fieldsUs(d) % 86_400_000_000n) + 86_400_000_000n) % 86_400_000_000n)) /
          86_400_000_000n,
      ),
    ),
  timestamp: (d) => float(d instanceof DateTime ? Number(d.us) / 1e6 : d.days * 86_400),
  weekday: (d) => fields(d).weekday,
  isoweekday: (d) => fields(d).weekday + 1,
  replace: (d, a) => replaceFields(d, a),
};

const fieldsUs = (value: DateTime | PyDate): bigint =>
  value instanceof PyDate ? BigInt(value.days) * 86_400_000_000n : value.us + BigInt(value.offset ?? 0) * 60_000_000n;

function replaceFields(value: DateTime | PyDate, args: Arguments): DateTime | PyDate {
  args.bind("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo");
  const f = fields(value);
  const offset = BigInt(value instanceof DateTime ? (value.offset ?? 0) : 0) * 60_000_000n;
  const date = new Date(0);
  date.setUTCFullYear(
    args.number(0, "year", f.year),
    args.number(1, "month", f.month) - 1,
    args.number(2, "day", f.day),
  );
  date.setUTCHours(
    args.number(3, "hour", f.hour),
    args.number(4, "minute", f.minute),
    args.number(5, "second", f.second),
  );
  if (value instanceof PyDate) return new PyDate(Math.floor(date.getTime() / 86_400_000));
  return new DateTime(
    BigInt(date.getTime()) * 1000n + BigInt(args.number(6, "microsecond", f.micro)) - offset,
    value.offset,
  );
}

export const dateFields: Readonly<Record<string, (value: DateTime | PyDate) => unknown>> = {
  year: (d) => fields(d).year,
  month: (d) => fields(d).month,
  day: (d) => fields(d).day,
  hour: (d) => fields(d).hour,
  minute: (d) => fields(d).minute,
  second: (d) => fields(d).second,
  microsecond: (d) => fields(d).micro,
};

export const deltaFields: Readonly<Record<string, (value: TimeDelta) => unknown>> = {
  days: (d) => d.days(),
  seconds: (d) => Number((d.us - BigInt(d.days()) * 86_400_000_000n) / 1_000_000n),
  microseconds: (d) => Number(((d.us % 1_000_000n) + 1_000_000n) % 1_000_000n),
};
