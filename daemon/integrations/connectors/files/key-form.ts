// Keys of a file's records beside those of the source's rows: a file may write a value otherwise than the source does (an instant in
// RFC 3339, bytes as `\x...`, a float's or a decimal's digits), and it is the same key.
import { isHexBytes } from "../../engine/convert.ts";
import { microsOf, withNanos } from "../../engine/temporal.ts";
import type { Column, ColumnType, Value } from "../../engine/types.ts";

/** The text by which keys of these columns are compared. */
export function keyForm(columns: readonly Column[]): (values: readonly Value[]) => string {
  const forms = columns.map(({ type }) => formOf(type));
  return (values) => JSON.stringify(values.map((value, at) => (value === null ? null : forms[at]?.(value))));
}

function formOf(type: ColumnType): (value: string | Uint8Array) => string {
  const text = type.kind === "float" && type.bits === 32 ? float32 : ofText[type.kind];
  return (value) => {
    if (typeof value !== "string") return Buffer.from(value).toString("hex");
    return text ? text(value) : value;
  };
}

const float32 = (text: string) => (/^-?\d/.test(text) ? String(Math.fround(Number(text))) : text);

const ofText: { readonly [kind in ColumnType["kind"]]?: (text: string) => string } = {
  bytes: (text) => (isHexBytes(text) ? text.slice(2).toLowerCase() : text),
  timestamp: (text) => microsOf(text)?.toString() ?? spelled(text),
  time: withNanos,
  float: (text) => (/^-?\d/.test(text) ? String(Number(text)) : text),
  int: bareDigits,
  decimal: bareDigits,
};

// Of what is no moment in microseconds: MySQL's zero dates, nanoseconds.
function spelled(text: string): string {
  return withNanos(text)
    .replace(/(?<=\d)T(?=\d)/, " ")
    .replace(/Z$/, "+00");
}

// Without zeros that say nothing.
function bareDigits(text: string): string {
  const [, sign, whole, places = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined) return text;
  const fraction = places.replace(/(?<!0)0+$/, "");
  const digits = `${whole.replace(/^0+(?=\d)/, "")}${fraction && `.${fraction}`}`;
  return digits === "0" ? digits : sign + digits;
}
