// Texts as a cursor, in databases, which compare them letter by letter: among numbers kept as texts `9` is the greatest, and a later 10
// would never be read; among times of several forms a `Z` stands behind a fraction, a `T` behind a blank.
import { MagicError } from "#contract/errors.ts";
import { daysOf, instantKey, lookBackFrom, timeForm } from "./temporal.ts";

/** A column of texts in its source's SQL. */
export interface Texts {
  readonly from: string;
  /** The column, as text. */
  readonly field: string;
  /** For messages: the column's name, and the object's. */
  readonly name: string;
  readonly object: string;
  /** What stands between a text and the regular expression that it is to match. */
  readonly matches: "REGEXP" | 'COLLATE "C" ~';
  /** The value that the statement selects; null: it finds no row. */
  one(sql: string): Promise<string | null>;
}

/** SQL for an order that is not the one of letters. */
export interface TextOrder {
  readonly greatest: string;
  /** It is a lower one than the last run's. */
  readonly back: boolean;
  compare(operator: ">" | ">=" | "<=", text: string): string;
  /** For what the last run did not see, with a key also for what equals its cursor and what has none; null: there was no cursor. */
  readonly later: string | null;
  readonly by: readonly string[];
}

// No longer than what every server's regular expressions count to.
const number = /^(?=.{1,255}$)[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const sortable = /^(\d+)(\.\d*)?$/;
const WHOLE = "^(0|[1-9][0-9]*)$";
const whole = new RegExp(WHOLE);
const NUMBER_OR_TIME = "^([+-]?[0-9]+([.][0-9]*)?|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?)$";

/** null where the order of letters will do. `max`: the greatest by that one; `before`: the last run's cursor. */
export async function textOrder(
  texts: Texts,
  max: string | null,
  before: string | null,
  keyed: boolean,
): Promise<TextOrder | null> {
  return (await numberOrder(texts, max, before, keyed)) ?? (await timeOrder(texts, max, before, keyed));
}

/** By their length whole numbers sort exactly, however long. Other numbers that letters would put in another order are refused. */
export async function numberOrder(
  texts: Texts,
  max: string | null,
  before: string | null,
  keyed: boolean,
): Promise<TextOrder | null> {
  if (max === null) return null;
  await checkKinds(texts, max, before);
  if (!number.test(max) || !number.test(before ?? max)) return null;
  const { field } = texts;
  const digits = sortable.exec(max)?.[1]?.length ?? 0;
  // With as many digits before the point they sort as numbers do; texts of one length, such as hexadecimal ids, by their letters.
  const one = `^([0-9]{${digits}}([.][0-9]*)?|[0-9A-Za-z]{${max.length}})$`;
  const unlike = digits > 0 ? await firstOther(texts, one, before) : max;
  if (unlike === null) return null;
  const odd = whole.test(max) ? await firstOther(texts, WHOLE, before) : unlike;
  if (odd !== null) throw refuse(texts, "numbers", odd === max ? [max] : [max, odd], "name another one");
  const by = [`length(${field})`, field];
  const greatest = await texts.one(
    `SELECT ${field} FROM ${texts.from} WHERE ${field} IS NOT NULL ORDER BY ${by.map((part) => `${part} DESC`).join(", ")} LIMIT 1`,
  );
  const compare: TextOrder["compare"] = (operator, text) =>
    `(${by.join(", ")}) ${operator} (${text.length}, '${text}')`;
  return {
    greatest: greatest ?? max,
    back: before !== null && BigInt(greatest ?? max) < BigInt(before),
    compare,
    later: before === null ? null : keyed ? `(${compare(">=", before)} OR ${field} IS NULL)` : compare(">", before),
    by,
  };
}

// Behind a word no number and no time comes. The first run, which reads everything, looks at all values for it, the others at their cursor.
async function checkKinds(texts: Texts, max: string, before: string | null): Promise<void> {
  if (kindOf(max) !== null) return;
  const { field, from, matches } = texts;
  // Hexadecimal ids.
  const alike = /^[0-9A-Za-z]+$/.test(max) ? max.length : -1;
  const one =
    before ??
    (await texts.one(
      `SELECT ${field} FROM ${from} WHERE ${field} ${matches} '${NUMBER_OR_TIME}' AND length(${field}) <> ${alike} LIMIT 1`,
    ));
  const kind = one === null || one.length === alike ? null : kindOf(one);
  if (one !== null && kind !== null) throw refuse(texts, kind, [one, max], "name another one");
}

function kindOf(text: string): "numbers" | "times" | null {
  return number.test(text) ? "numbers" : instantKey(text) === null ? null : "times";
}

// With a key the last two days are read again, in which an instant behind the last run's is, whatever its form; without one it is refused.
async function timeOrder(
  texts: Texts,
  max: string | null,
  before: string | null,
  keyed: boolean,
): Promise<TextOrder | null> {
  const last = before ?? max;
  if (max === null || last === null || instantKey(max) === null || instantKey(last) === null) return null;
  const day = daysOf(last.slice(0, 10));
  if (day === null) return null;
  const { field } = texts;
  const compare: TextOrder["compare"] = (operator, text) => `${field} ${operator} '${text}'`;
  const low = lookBackFrom(day);
  const other = await firstOther(texts, formOf(last), null, ` AND ${compare(">=", low)}`);
  if (other === null) return null;
  if (!keyed) throw refuse(texts, "times", [last, other], "name a key with --primary-key, or another cursor field");
  const later = before === null ? null : `(${compare(">=", low)} OR ${field} IS NULL)`;
  return { greatest: max, back: max < low, compare, later, by: [field] };
}

// Of one form: the fractions may differ in length, but before a Z.
function formOf(time: string): string {
  const [, moment = "", fraction = "", zone = ""] = timeForm.exec(time) ?? [];
  const part = fraction === "" ? "" : `[.][0-9]{${fraction.length}}`;
  const clock = moment.replace(/\d+/g, (digits) => `[0-9]{${digits.length}}`);
  return `^${clock}${/^z$/i.test(zone) ? part : "([.][0-9]+)?"}${zone.replace("+", "[+]")}$`;
}

async function firstOther(texts: Texts, form: string, before: string | null, more = ""): Promise<string | null> {
  if (before !== null && !new RegExp(form).test(before)) return before;
  const { field, from, matches } = texts;
  return texts.one(`SELECT ${field} FROM ${from} WHERE NOT (${field} ${matches} '${form}')${more} LIMIT 1`);
}

function refuse({ name, object }: Texts, what: string, values: readonly string[], next: string): MagicError {
  const shown = values.map((value) => JSON.stringify(value.slice(0, 60))).join(" and ");
  return new MagicError(
    "validation_failed",
    `The cursor field ${JSON.stringify(name)} of ${object} holds ${shown} as texts, whose order is not that of ${what}: ${next}, or use full_refresh.`,
  );
}
