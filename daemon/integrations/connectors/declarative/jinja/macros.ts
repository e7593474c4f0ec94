// The functions of the manifest language (now_utc, day_delta, format_datetime...) and Jinja's own globals.
import { Arguments } from "./arguments.ts";
import { compare } from "./compare.ts";
import { parseIso, strftime, strptime } from "./date-text.ts";
import { DateTime, PyDate, TimeDelta } from "./datetime.ts";
import { parseDuration } from "./duration.ts";
import { EvaluationError, PythonTypeError } from "./errors.ts";
import { iterate, pairsOf } from "./iterate.ts";
import { fromJson } from "./json.ts";
import { asNumber, Callable, defined, float, isNumber } from "./python.ts";
import { str } from "./repr.ts";
import { quotePlus } from "./text-filters.ts";

type Macro = (args: Arguments) => unknown;

/** Jinja's sandbox refuses longer ranges. */
const MAX_RANGE = 100_000;
const DEFAULT_FORMAT = "%Y-%m-%dT%H:%M:%S.%f%z";

/** Every global function, on the given clock (milliseconds since the epoch). */
export function globals(now: () => number): ReadonlyMap<string, Callable> {
  const moment = moments(now);
  const nowUtc = (): DateTime => new DateTime(moment(), 0);
  const macros: Readonly<Record<string, Macro>> = {
    now_utc: () => nowUtc(),
    now_local: () => new DateTime(nowUtc().us, null),
    today_utc: () => new PyDate(Math.floor(now() / 86_400_000)),
    today_with_timezone: (a) => todayIn(now(), a.bind("timezone").text(0, "timezone")),
    timestamp: (a) => timestamp(a.bind("dt").defined(0, "dt")),
    max: (a) => extreme(a, 1),
    min: (a) => extreme(a, -1),
    day_delta: (a) => {
      a.bind("num_days", "format");
      const days = a.number(0, "num_days");
      return strftime(
        new DateTime(nowUtc().us + BigInt(Math.round(days * 86_400e6)), 0),
        a.text(1, "format", DEFAULT_FORMAT),
      );
    },
    duration: (a) => {
      const { us, months } = parseDuration(a.bind("datestring").text(0, "datestring"));
      return new TimeDelta(us, months);
    },
    format_datetime: (a) => formatDatetime(a.bind("dt", "format", "input_format")),
    str_to_datetime: (a) => utc(parseIso(a.bind("s").text(0, "s"))),
    sanitize_url: (a) => quotePlus(a.text(0, "value")),
    // Each capital begins a word, as in the reference: `userID` is `user_i_d`.
    camel_case_to_snake_case: (a) =>
      a
        .text(0, "value")
        .replace(/(?!^)(?=[A-Z])/g, "_")
        .toLowerCase(),
    json_loads: (a) => jsonLoads(a.bind("s").text(0, "s")),
    generate_uuid: () => crypto.randomUUID(),
    range: (a) => range(a),
    dict: dictOf,
    namespace: dictOf,
  };
  return new Map(
    Object.entries(macros).map(([name, macro]) => [
      name,
      new Callable(name, (positional, named) => macro(new Arguments(name, positional, named))),
    ]),
  );
}

// Microseconds since the epoch. Python's clock tells hardly any of them twice, and manifests make keys of them: of one millisecond each asks
// for another one.
function moments(now: () => number): () => bigint {
  let last = Number.NaN;
  let more = 0n;
  return () => {
    const ms = now();
    more = ms === last ? more + 1n : 0n;
    last = ms;
    return BigInt(Math.round(ms * 1000)) + more;
  };
}

function todayIn(now: number, zone: string): PyDate {
  let written: string;
  try {
    // Swedish dates are ISO 8601's.
    written = new Intl.DateTimeFormat("sv", { timeZone: zone }).format(now);
  } catch {
    throw new EvaluationError(`'${zone}' is no time zone`);
  }
  return new PyDate(Math.floor(Date.parse(written) / 86_400_000));
}

// Of a number an int, of a date a float, as in Python: what is less than a second stays.
function timestamp(value: unknown): unknown {
  if (isNumber(value)) return Math.trunc(asNumber(value));
  if (value instanceof PyDate) return float(value.days * 86_400);
  return float(Number((value instanceof DateTime ? value : parseIso(dateText(value))).us) / 1e6);
}

function formatDatetime(args: Arguments): string {
  const value = args.defined(0, "dt");
  const format = args.text(1, "format");
  const input = args.any(2, "input_format", null);
  if (value instanceof DateTime || value instanceof PyDate) return strftime(value, format);
  if (isNumber(value) && input === null)
    return strftime(new DateTime(BigInt(Math.round(asNumber(value) * 1e6)), 0), format);
  const text = dateText(value);
  const parsed = typeof input === "string" ? strptime(text, input) : utc(parseIso(text));
  if (!parsed) throw new EvaluationError(`time data '${text}' does not match format '${input}'`);
  return strftime(new DateTime(parsed.us, parsed.offset ?? 0), format);
}

// Most formats that a date is written in have no place for an offset.
const utc = ({ us }: DateTime): DateTime => new DateTime(us, 0);

// A service account's key is a document within the configuration.
function jsonLoads(text: string): unknown {
  try {
    return fromJson(JSON.parse(text));
  } catch {
    throw new EvaluationError("json_loads() needs JSON");
  }
}

function dateText(value: unknown): string {
  if (value === null) throw new PythonTypeError("None is not a date");
  return str(value);
}

function extreme(args: Arguments, sign: 1 | -1): unknown {
  const items = args.positional.length === 1 ? iterate(args.positional[0]) : args.positional;
  if (!items.length) throw new EvaluationError(`${sign > 0 ? "max" : "min"}() arg is an empty sequence`);
  if (items.length > 1) for (const each of items) defined(each);
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best));
}

const dictOf = (args: Arguments): Map<unknown, unknown> =>
  new Map([...pairsOf(args.any(0, "mapping", [])), ...args.named]);

function range(args: Arguments): number[] {
  const [first, second] = [args.number(0, "start"), args.any(1, "stop")];
  const [start, stop, step] =
    second === undefined ? [0, first, 1] : [first, asNumber(second), args.number(2, "step", 1)];
  if (step === 0) throw new EvaluationError("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > MAX_RANGE)
    throw new EvaluationError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${MAX_RANGE}).`);
  return Array.from({ length }, (_, at) => start + at * step);
}
