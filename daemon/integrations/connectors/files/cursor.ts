// The cursor of a file, which is read from the beginning: which records are new, by one order for all values. Whether they are numbers,
// times or texts the first run finds out, and the state keeps it.
import { MagicError } from "#contract/errors.ts";
import type { SyncFailure } from "#contract/sync.ts";
import { cursorColumn, nullCursorWarning } from "../../engine/cursor.ts";
import type { ReadRequest, StreamState } from "../../engine/source.ts";
import { instantKey, timeForm } from "../../engine/temporal.ts";
import type { Column, Row } from "../../engine/types.ts";

export interface FileCursor {
  wants(row: Row): boolean;
  /** After the last record: true where there are values, and none comes up to the last run's greatest. */
  wentBack(): boolean;
  /** After the last record; throws validation_failed where no order holds for the values. */
  state(): StreamState;
}

/** null: the run reads everything. `warn` is called at most once, on the way. */
export function cursorOf(
  columns: readonly Column[],
  request: ReadRequest,
  path: string,
  warn: (warning: SyncFailure) => void,
): FileCursor | null {
  if (request.mode !== "incremental") return null;
  const column = cursorColumn(columns, request.cursorField);
  const field = column.name;
  const at = columns.indexOf(column);
  const before = request.state?.cursor ?? null;
  const keyed = (request.primaryKey ?? []).length > 0;
  const values = createValues(request.state, `${JSON.stringify(field)} of ${path}`);
  let warned = false;
  let [some, reached] = [false, before === null];
  return {
    wants: (row) => {
      const value = row[at] ?? null;
      if (typeof value !== "string") {
        if (keyed) return true;
        if (!warned) warn(nullCursorWarning(field, path));
        warned = true;
        // Without a key: an earlier run has read it.
        return request.state === null;
      }
      values.add(value);
      some = true;
      if (before === null) return true;
      const order = values.compare(value, before);
      reached ||= order >= 0;
      // With a key the ones that equal it are read again, in case more of them have come.
      return order >= (keyed ? 0 : 1);
    },
    wentBack: () => some && !reached,
    state: () => values.state(),
  };
}

type Order = "number" | "time" | "text";

const number = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,9}))?$/i;

function orderOf(value: string): Order {
  if (/\d/.test(value) && number.test(value)) return "number";
  return timeForm.test(value) ? "time" : "text";
}

const compares: Readonly<Record<Order, (a: string, b: string) => number>> = {
  number: compareNumbers,
  time: compareTimes,
  text: compareTexts,
};

interface Values {
  add(value: string): void;
  compare(a: string, b: string): number;
  state(): StreamState;
}

function createValues(state: StreamState | null, field: string): Values {
  const before = state?.cursor ?? null;
  const said = (["number", "time", "text"] as const).find((order) => order === state?.["order"]);
  const known = said ?? (before === null ? null : orderOf(before));
  const greatest = new Map<Order, string>();
  // The first value of each kind.
  const seen = new Map<Order, string>();
  let length = -1;
  let oneLength = true;
  const raise = (order: Order, value: string) => {
    const top = greatest.get(order);
    if (top === undefined || compares[order](value, top) > 0) greatest.set(order, value);
  };
  const refuse = (a: string, b: string) =>
    new MagicError(
      "validation_failed",
      `The cursor field ${field} holds both ${JSON.stringify(a.slice(0, 60))} and ${JSON.stringify(b.slice(0, 60))}, which have no common order: name another one, or use full_refresh.`,
    );
  if (known !== null && before !== null) raise(known, before);
  return {
    add: (value) => {
      const order = orderOf(value);
      if (known !== null) {
        if (known !== "text" && known !== order) throw refuse(before ?? "", value);
        raise(known, value);
        return;
      }
      if (length < 0) length = value.length;
      else oneLength &&= length === value.length;
      if (!seen.has(order)) seen.set(order, value);
      raise(order, value);
      if (order !== "text") raise("text", value);
    },
    compare: (a, b) => compares[known ?? "text"](a, b),
    state: () => {
      const [first, second] = seen;
      // Texts of one length, such as hexadecimal ids, sort as texts even where some are digits only.
      if (first && second && !oneLength) throw refuse(first[1], second[1]);
      const order = known ?? (second ? "text" : (first?.[0] ?? null));
      return order === null ? { cursor: null } : { cursor: greatest.get(order) ?? null, order };
    },
  };
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

// By sign, then by the power of ten of the first digit, then digit by digit: however long, and without rounding.
function compareNumbers(a: string, b: string): number {
  const [x, y] = [significant(a), significant(b)];
  if (x.sign !== y.sign) return x.sign - y.sign;
  return x.sign * (x.power - y.power || compareTexts(x.digits, y.digits));
}

function significant(text: string): { sign: number; power: number; digits: string } {
  const [, minus = "", whole = "", places = "", exponent = "0"] = number.exec(text) ?? [];
  const all = whole + places;
  const digits = all.replace(/^0+/, "");
  if (digits === "") return { sign: 0, power: 0, digits: "" };
  const power = whole.length - (all.length - digits.length) + Number(exponent);
  return { sign: minus === "-" ? -1 : 1, power, digits: digits.replace(/(?<!0)0+$/, "") };
}

function compareTimes(a: string, b: string): number {
  const [x, y] = [instantKey(a), instantKey(b)];
  return x === null || y === null ? compareTexts(a, b) : compareTexts(x, y);
}
