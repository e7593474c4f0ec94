// str.format and its format specifications.
import type { Arguments } from "./arguments.ts";
import { strftime } from "./date-text.ts";
import { DateTime, PyDate } from "./datetime.ts";
import { EvaluationError } from "./errors.ts";
import { iterate } from "./iterate.ts";
import { fixed, numberText } from "./number-text.ts";
import { lookup } from "./operators.ts";
import { asNumber, isDict, typeName } from "./python.ts";
import { repr, str } from "./repr.ts";
import { surplus } from "./texts.ts";

type Member = (value: unknown, name: string) => unknown;

/** str.format: `{}`, `{0}`, `{name.field[key]}`, `{:05.2f}`. `member` reads attributes: no more is reachable than by `.field`. */
export function format(template: string, args: Arguments, member: Member): string {
  let automatic = 0;
  return template.replace(
    /\{\{|\}\}|\{([^{}:!]*)(?:!([rsa]))?(?::([^{}]*))?\}/g,
    (whole, field: string | undefined, conversion: string | undefined, spec = "") => {
      if (whole === "{{" || whole === "}}") return whole.charAt(0);
      const [, name = "", rest = ""] = /^([^.[]*)(.*)$/.exec(field ?? "") ?? [];
      let value: unknown =
        name === ""
          ? args.positional[automatic++]
          : /^\d+$/.test(name)
            ? args.positional[Number(name)]
            : args.named.get(name);
      if (value === undefined)
        throw new EvaluationError(
          /^\d*$/.test(name) ? "Replacement index out of range for positional args tuple" : `'${name}'`,
        );
      for (const [, attribute, key] of rest.matchAll(/\.(\w+)|\[([^\]]+)\]/g))
        value = attribute ? member(value, attribute) : isDict(value) ? lookup(value, key) : iterate(value)[Number(key)];
      return formatSpec(conversion === "s" ? str(value) : conversion ? repr(value) : value, spec);
    },
  );
}

function formatSpec(value: unknown, spec: string): string {
  if (value instanceof DateTime || value instanceof PyDate) return spec ? strftime(value, spec) : str(value);
  const found = /^(?:(.)?([<>^=]))?([+ -])?(#)?(0)?(\d+)?(,|_)?(?:\.(\d+))?([bcdeEfFgGnosxX%])?$/su.exec(spec);
  if (!found) throw new EvaluationError(`Invalid format specifier '${spec}'`);
  const [, fill = " ", align, sign, marked, zero, width = "0", comma, precision, kind] = found;
  let text = formatted(value, kind, precision);
  const isNumberText = typeof value !== "string";
  if (comma && isNumberText) text = text.replace(/^-?\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, comma));
  if (marked && kind && "boxX".includes(kind)) text = text.replace(/^-?/, (minus) => `${minus}0${kind}`);
  if (sign && sign !== "-" && isNumberText && !text.startsWith("-")) text = sign + text;
  const size = Math.min(Number(width), 10_000) + surplus(text);
  if (zero && !align)
    return text.replace(
      /^([+ -]?)(.*)$/s,
      (_all, mark: string, digits: string) => mark + digits.padStart(size - mark.length, "0"),
    );
  const direction = align ?? (isNumberText ? ">" : "<");
  if (direction === "<") return text.padEnd(size, fill);
  if (direction === "^")
    return text.padStart(text.length + Math.floor(Math.max(0, size - text.length) / 2), fill).padEnd(size, fill);
  return text.padStart(size, fill);
}

function formatted(value: unknown, kind: string | undefined, precision: string | undefined): string {
  if (typeof value === "string") {
    if (kind && kind !== "s") throw new EvaluationError(`Unknown format code '${kind}' for object of type 'str'`);
    return precision === undefined ? value : value.slice(0, Number(precision));
  }
  if (kind === "s") throw new EvaluationError(`Unknown format code 's' for object of type '${typeName(value)}'`);
  if (kind === "%") return `${fixed(asNumber(value) * 100, Math.min(Number(precision ?? 6), 99))}%`;
  if (kind === undefined && precision === undefined) return str(value);
  return numberText(value, kind === undefined || kind === "n" ? "g" : kind, precision);
}
