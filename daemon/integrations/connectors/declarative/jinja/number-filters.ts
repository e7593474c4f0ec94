// The filters whose result is a number, or a number's text.
import type { Arguments } from "./arguments.ts";
import { PythonTypeError } from "./errors.ts";
import { fixed } from "./number-text.ts";
import { asNumber, defined, Float, float, int, isInt, isNumber, typeName } from "./python.ts";

export function numeric(value: unknown): number {
  if (!isNumber(value) && typeof value !== "boolean")
    throw new PythonTypeError(`must be real number, not ${typeName(value)}`);
  return asNumber(value);
}

const MARKED: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16 };
/** As many as Python reads. */
const MAX_DIGITS = 4_300;

// Python's int(text, base): a mark of another base is digits, or nothing that can be read. Undefined where Python raises.
function wholeIn(text: string, base: number): bigint | undefined {
  const [, sign, mark = "", rest = ""] = /^([+-]?)(?:0([box])_?(?=[^_]))?(.*)$/is.exec(text) ?? [];
  const marked = MARKED[mark.toLowerCase()];
  const own = marked !== undefined && (base === 0 || base === marked);
  const radix = own ? marked : base || 10;
  const written = own ? rest : text.replace(/^[+-]/, "");
  if (radix < 2 || radix > 36 || !/^[\da-z]+(?:_[\da-z]+)*$/i.test(written)) return undefined;
  const digits = written.replaceAll("_", "");
  if (digits.length > MAX_DIGITS) return undefined;
  let value = 0n;
  for (const each of digits) {
    const digit = Number.parseInt(each, 36);
    if (digit >= radix) return undefined;
    value = value * BigInt(radix) + BigInt(digit);
  }
  return sign === "-" ? -value : value;
}

export function toInt(value: unknown, args: Arguments): unknown {
  const otherwise = args.any(0, "default", 0);
  const base = args.number(1, "base", 10);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "string") {
    const whole = wholeIn(value.trim(), base);
    if (whole !== undefined) return int(whole);
    const digits = value.trim().replace(/(?<=\d)_(?=\d)/g, "");
    const float = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(digits) ? Number(digits) : Number.NaN;
    return Number.isFinite(float) ? int(BigInt(Math.trunc(float))) : otherwise;
  }
  if (isNumber(value))
    return typeof value === "bigint"
      ? value
      : Number.isFinite(asNumber(value))
        ? Math.trunc(asNumber(value)) + 0
        : otherwise;
  defined(value);
  return otherwise;
}

export function toFloat(value: unknown, args: Arguments): unknown {
  const otherwise = args.any(0, "default", new Float(0));
  if (isNumber(value) || typeof value === "boolean") return float(asNumber(value));
  if (typeof value === "string" && /^\s*[+-]?(\d+(_\d+)*(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/.test(value))
    return float(Number(value.replaceAll("_", "")));
  defined(value);
  return otherwise;
}

// Python rounds halves to the even neighbour; `method` may ask for ceil or floor.
export function round(value: unknown, args: Arguments): unknown {
  const precision = args.number(0, "precision", 0);
  if (!Number.isInteger(precision)) throw new PythonTypeError("'float' object cannot be interpreted as an integer");
  const method = args.text(1, "method", "common");
  const number = numeric(defined(value));
  if (method === "common" && (isInt(value) || typeof value === "boolean")) return roundWhole(BigInt(value), precision);
  const scale = 10 ** precision;
  if (method !== "common") return float((method === "ceil" ? Math.ceil : Math.floor)(number * scale) / scale);
  return float(
    precision < 0 ? Number(fixed(number * scale, 0)) / scale : Number(fixed(number, Math.min(precision, 99))),
  );
}

// Python keeps whole numbers whole, and rounds them too where the precision lies before the point: 57 to 60, 25 to 20.
function roundWhole(value: bigint, precision: number): unknown {
  if (precision >= 0) return int(value);
  if (-precision > MAX_DIGITS) return 0;
  const unit = 10n ** BigInt(-precision);
  const rest = ((value % unit) + unit) % unit;
  const below = value - rest;
  const up = rest * 2n > unit || (rest * 2n === unit && (below / unit) % 2n !== 0n);
  return int(up ? below + unit : below);
}

export function fileSize(bytes: number, binary: boolean): string {
  const base = binary ? 1024 : 1000;
  if (bytes === 1) return "1 Byte";
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const units = binary ? ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"] : ["kB", "MB", "GB", "TB", "PB", "EB", "ZB"];
  let unit = 1;
  while (unit < units.length && bytes >= base ** (unit + 1)) unit++;
  return `${fixed(bytes / base ** unit, 1)} ${units[unit - 1]}`;
}
