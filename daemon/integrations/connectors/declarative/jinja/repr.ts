// Python's str() and repr().
import { EvaluationError } from "./errors.ts";
import { Callable, Float, isDict, isPythonObject, Opaque, Tuple, Undefined } from "./python.ts";

/** Python's str(). */
export function str(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Undefined) return "";
  if (isPythonObject(value)) return value.str();
  return repr(value);
}

/** Python's repr(). */
export function repr(value: unknown): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return reprText(value);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Float) return reprFloat(value.value);
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value).toString() : reprFloat(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (value instanceof Tuple)
    return value.items.length === 1 ? `(${repr(value.items[0])},)` : `(${value.items.map(repr).join(", ")})`;
  if (isDict(value)) return `{${[...value].map(([key, item]) => `${repr(key)}: ${repr(item)}`).join(", ")}}`;
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Opaque) return value.repr;
  if (value instanceof Callable) return `<function ${value.name}>`;
  if (isPythonObject(value)) return value.repr();
  throw new EvaluationError("a value that templates cannot show");
}

function reprText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let out = quote;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (character === quote || character === "\\") out += `\\${character}`;
    else if (character === "\n") out += "\\n";
    else if (character === "\r") out += "\\r";
    else if (character === "\t") out += "\\t";
    else if (/[\p{C}\p{Z}]/u.test(character) && character !== " ") out += escapeCode(code);
    else out += character;
  }
  return out + quote;
}

function escapeCode(code: number): string {
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

// JavaScript and Python agree on the shortest digits; they differ in when the exponent begins and how it looks.
function reprFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits = "0", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16)
    return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const sign = value < 0 ? "-" : "";
  const bare = digits.replace(/[-.]/g, "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${bare}`;
  const whole = bare.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${bare.slice(exponent + 1) || "0"}`;
}
