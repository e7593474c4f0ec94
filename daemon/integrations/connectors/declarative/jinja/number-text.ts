// Numbers as Python's formats write them.
import { EvaluationError } from "./errors.ts";
import { asNumber, isInt, typeName } from "./python.ts";
import { repr } from "./repr.ts";

/** So many places behind the point, of the number as it is exactly; Python rounds halves to the even digit, JavaScript up. */
export function fixed(value: number, places: number): string {
  const sign = Object.is(value, -0) ? "-" : "";
  const rounded = sign + value.toFixed(places);
  const beyond = value.toFixed(100).split(".")[1]?.slice(places) ?? "";
  if (!/^50*$/.test(beyond)) return rounded;
  const below = value.toFixed(places + 1).slice(0, places === 0 ? -2 : -1);
  return /[02468]$/.test(below) ? below : rounded;
}

function general(value: number, precision: number): string {
  const significant = Math.max(1, precision);
  const exponent = Number(value.toExponential(significant - 1).split("e")[1]);
  const [digits = "", power] =
    exponent < -4 || exponent >= significant
      ? exponential(value, significant - 1).split("e")
      : [value.toFixed(significant - 1 - exponent)];
  const short = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  return power === undefined ? short : `${short}e${power}`;
}

function exponential(value: number, places: number): string {
  return value.toExponential(places).replace(/e([+-])(\d)$/, "e$10$2");
}

const RADIX: Readonly<Record<string, number>> = { b: 2, d: 10, o: 8, x: 16 };

/** A number by one of the letters of Python's formats: b, c, d, e, f, g, o, x, the large ones too. Whole numbers only for some. */
export function numberText(value: unknown, letter: string, precision: string | undefined): string {
  const small = letter.toLowerCase();
  const places = Math.min(Number(precision ?? 6), 99);
  if (small === "c" || small in RADIX) {
    if (!isInt(value) && typeof value !== "boolean")
      throw new EvaluationError(`Unknown format code '${letter}' for object of type '${typeName(value)}'`);
    const whole = BigInt(value);
    if (small === "c") return String.fromCodePoint(Number(whole));
    return letter === "X" ? whole.toString(16).toUpperCase() : whole.toString(RADIX[small]);
  }
  const number = asNumber(value);
  if (!Number.isFinite(number)) return repr(number);
  const text =
    small === "f" ? fixed(number, places) : small === "e" ? exponential(number, places) : general(number, places);
  return letter === small ? text : text.toUpperCase();
}
