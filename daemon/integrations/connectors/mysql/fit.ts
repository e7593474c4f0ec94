// What MySQL's types would change without an error, strict mode or not: whole numbers are rounded, "1" becomes the first member of an
// enum, blanks at the end of CHAR go, BINARY is filled up, "24:00:00" is taken for a date, one digit for a year.
import { stringEnd } from "#shared/json-text.ts";
import { holds } from "../../engine/evolution.ts";
import { onText } from "../../engine/fit.ts";
import { type Check, checkOf, decimals, float, fraction } from "../../engine/fit-checks.ts";
import { hasDoubledKeys } from "../../engine/json-keys.ts";
import { truthOf } from "../../engine/truth.ts";
import type { Column, Value } from "../../engine/types.ts";
import { unescaped } from "./connect.ts";

/** The check for values of `source` in a column declared so (information_schema's `column_type`, in its own case). */
export function fitOf(target: Column, declared: string, source: Column): ((value: Value) => string | null) | null {
  const [, name = "", list = ""] = /^(\w+)\s*(?:\((.*)\))?/s.exec(declared) ?? [];
  const type = name.toLowerCase();
  const size = Number(list.split(",")[0] || 0);
  const places = Number(list.split(",")[1] || Number.NaN);
  const like =
    (form: RegExp, what: string): Check =>
    (text) =>
      form.test(text) ? null : `not ${what}`;
  switch (type) {
    case "bit":
      return source.type.kind === "bool"
        ? null
        : onText((text) => (size === 1 && truthOf(text) !== undefined ? null : like(/^\d+$/, "a whole number")(text)));
    case "binary":
      return (value) =>
        value !== null && Buffer.byteLength(value) < size
          ? `fewer bytes than ${declared}, which would be filled up`
          : null;
    case "char":
      return /^(character\(|bpchar)/.test(source.native ?? "")
        ? null
        : onText((text) => (text.endsWith(" ") ? `the blanks at its end do not fit ${declared}` : null));
    case "enum":
    case "set":
      return onText(memberOf(type, list));
    case "json":
      return onText(jsonIn);
    case "year":
      // The texts "0" and "15" would be 2000 and 2015; the number 0 is the year that MySQL shows as 0000.
      return onText(
        like(source.type.kind === "int" ? /^(0|0000|(19|2[01])\d\d)$/ : /^(0000|(19|2[01])\d\d)$/, "a year"),
      );
  }
  // The engine's types do not tell how many digits of a second a column keeps: MySQL rounds the others away.
  const clock = /^(datetime|timestamp|time)$/.test(type);
  if (holds(target, source) && !source.loose && source.type.kind !== "float")
    return clock && size < 6 ? onText((text) => fraction(text, size)) : null;
  switch (type) {
    case "tinyint":
    case "smallint":
    case "mediumint":
    case "int":
    case "bigint":
      return onText(decimals(0, declared));
    case "float":
    case "double": {
      const digits = source.type.kind === "float" ? null : float(type === "float" ? 32 : 64, declared);
      const limit = Number.isNaN(places) ? null : decimals(places, declared);
      return onText((text) =>
        /^\s*-0*(\.0*)?(e.*)?$/i.test(text) ? "MySQL has no -0" : (digits?.(text) ?? limit?.(text) ?? null),
      );
    }
    case "date":
    case "datetime":
    case "timestamp":
      return onText((text) =>
        /^\s*(\d{4,}-\d\d?-\d\d?|\d{8})([ T].*)?(Z|\+00)?$/s.test(text)
          ? (fraction(text, size) ?? checkOf({ type: target.type, native: declared })?.(text) ?? null)
          : `not a ${type}`,
      );
    case "time":
      return onText((text) => (/^-?\d+:\d\d(:\d\d(\.\d+)?)?$/.test(text) ? fraction(text, size) : "not a time"));
    default: {
      const check = checkOf(target);
      return check && onText(check);
    }
  }
}

// Members as `column_type` lists them: 'a','it''s'. A number would be taken for a place in the list, another case for the same word.
function memberOf(type: "enum" | "set", list: string): Check {
  const members = new Set(
    [...list.matchAll(/'((?:[^']|'')*)'/gs)].map(([, text = ""]) => unescaped(text.replaceAll("''", "'"))),
  );
  return (text) => {
    const given = type === "enum" ? [text] : text === "" ? [] : text.split(",");
    return given.every((one) => members.has(one)) && new Set(given).size === given.length
      ? null
      : `no member of the ${type}`;
  };
}

const number = /-?\d[\d.eE+-]*/y;
const inDouble = float(64, "MySQL's JSON");

function jsonIn(text: string): string | null {
  if (hasDoubledKeys(text)) return "a key that stands twice, of which MySQL's JSON keeps one";
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') at = stringEnd(text, at) - 1;
    number.lastIndex = at;
    const token = number.exec(text)?.[0] ?? "";
    const reason = /^(-?\d{1,18})?$/.test(token) ? null : inDouble(token);
    if (reason !== null) return reason;
    at += Math.max(0, token.length - 1);
  }
  return null;
}
