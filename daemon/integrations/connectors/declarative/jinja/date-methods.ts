// The methods and fields of Python's dates, times and what lies between them.
import type { Arguments, Method } from "./arguments.ts";
import { isoWeek, strftime } from "./date-text.ts";
import { DAY_US, DateTime, fields, fromFields, PyDate, type TimeDelta } from "./datetime.ts";
import { float, Tuple } from "./python.ts";

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
  isocalendar: (d) => {
    const { year, week } = isoWeek(fields(d));
    return new Tuple([year, week, fields(d).weekday + 1], ["year", "week", "weekday"]);
  },
  replace: (d, a) => replaceFields(d, a),
};

const fieldsUs = (value: DateTime | PyDate): bigint =>
  value instanceof PyDate ? BigInt(value.days) * 86_400_000_000n : value.us + BigInt(value.offset ?? 0) * 60_000_000n;

// A day or hour that there is not is an error, as in Python; `tzinfo=none` makes a naive time.
function replaceFields(value: DateTime | PyDate, args: Arguments): DateTime | PyDate {
  args.bind("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo");
  const f = fields(value);
  const day = {
    year: args.number(0, "year", f.year),
    month: args.number(1, "month", f.month),
    day: args.number(2, "day", f.day),
  };
  if (value instanceof PyDate) return new PyDate(Number(fromFields(day).us / DAY_US));
  const time = {
    hour: args.number(3, "hour", f.hour),
    minute: args.number(4, "minute", f.minute),
    second: args.number(5, "second", f.second),
    micro: args.number(6, "microsecond", f.micro),
  };
  return fromFields({ ...day, ...time }, args.any(7, "tzinfo", "") === null ? null : value.offset);
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
