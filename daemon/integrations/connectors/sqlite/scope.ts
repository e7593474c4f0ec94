// Which rows an incremental run reads from a SQLite table, and where the next one goes on.
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import type { SyncFailure } from "#contract/sync.ts";
import { checkReachable, cursorColumn, cursorWentBackWarning, nullCursorWarning } from "../../engine/cursor.ts";
import { readInOrder } from "../../engine/keys.ts";
import type { ReadRequest, StreamState } from "../../engine/source.ts";
import { instantKey } from "../../engine/temporal.ts";
import { numberOrder, type Texts } from "../../engine/text-order.ts";
import { quote, type SqliteTable } from "./catalog.ts";
import { INSTANT, type MixedTimes, mixedTimes } from "./times.ts";
import type { Stored } from "./types.ts";

export interface Scope {
  /** SQL behind the table's name; empty: every row. */
  readonly condition: string;
  readonly order: string;
  readonly parameters: readonly SQLInputValue[];
  readonly endState: StreamState | null;
  readonly warnings: readonly SyncFailure[];
}

// One writer at a time: a row that commits later also has been written later, so no look-back is needed but for equal values.
export async function planRead(
  db: DatabaseSync,
  table: SqliteTable,
  keyed: boolean,
  request: ReadRequest,
): Promise<Scope> {
  if (request.mode !== "incremental") return { condition: "", order: "", parameters: [], endState: null, warnings: [] };
  const column = cursorColumn(table.columns, request.cursorField);
  const name = quote(column.name);
  const from = quote(table.name);
  // Each by itself: of two in one SELECT SQLite looks up neither in an index.
  const statement = db.prepare(
    `SELECT cursor, typeof(cursor) AS type, least, typeof(least) AS leastType, without, cursor < ? AS back FROM (SELECT (SELECT max(${name}) FROM ${from}) AS cursor, (SELECT min(${name}) FROM ${from}) AS least, ${keyed ? "0" : `EXISTS (SELECT 1 FROM ${from} WHERE ${name} IS NULL)`} AS without)`,
  );
  statement.setReadBigInts(true);
  const before = request.state?.cursor ?? null;
  const beforeType = request.state?.["type"];
  const found = statement.get(before === null ? null : boundOf(before, beforeType)) as {
    cursor: Stored;
    type: string;
    least: Stored;
    leastType: string;
    without: bigint;
    back: bigint | null;
  };
  // Every number comes before every text, and every text before every blob: a new number would never be read.
  if (kindOf(found.type) !== kindOf(found.leastType))
    throw new MagicError(
      "validation_failed",
      `The cursor field ${JSON.stringify(column.name)} of ${table.name} holds both ${shown(found.least)} (${found.leastType}) and ${shown(found.cursor)} (${found.type}), which have no common order: name another one, or use full_refresh.`,
    );
  if (found.type === "real")
    checkReachable(String(found.cursor), { ...column, type: { kind: "float", bits: 64 } }, table.name);
  const text = typeof found.cursor === "string" ? found.cursor : null;
  const times = text === null ? null : mixedTimes(db, from, name, text, before);
  const texts = textsOf(db, from, name, { name: column.name, object: table.name });
  const numbers = await numberOrder(texts, text, beforeType === "text" ? before : null, keyed);
  const cursor = times?.greatest ?? numbers?.greatest ?? found.cursor;
  const back = times?.back ?? numbers?.back ?? found.back === 1n;
  const bound = back && keyed ? null : before;
  return {
    // A table that took another's place has rows before that one's cursor.
    ...(times && bound !== null
      ? timesSince(name, times, bound, keyed)
      : numbers?.later && bound !== null
        ? { condition: ` WHERE ${numbers.later}`, parameters: [] }
        : conditionOf(name, bound, beforeType, keyed, request.state !== null)),
    order: readInOrder(request, table.primaryKey)
      ? ` ORDER BY ${times ? `${INSTANT}(${name})` : (numbers?.by.join(", ") ?? name)}`
      : "",
    endState:
      cursor === null ? { cursor: before, type: beforeType ?? "null" } : { cursor: textOf(cursor), type: found.type },
    warnings: [
      ...(found.without === 1n ? [nullCursorWarning(column.name, table.name)] : []),
      ...(back && !keyed ? [cursorWentBackWarning(column.name, table.name, String(before))] : []),
    ],
  };
}

// With a key rows without a cursor are read every time; without one, by the first run.
function conditionOf(
  name: string,
  before: string | null,
  type: unknown,
  keyed: boolean,
  ran: boolean,
): Pick<Scope, "condition" | "parameters"> {
  if (before === null) return { condition: ran && !keyed ? ` WHERE ${name} IS NOT NULL` : "", parameters: [] };
  return {
    condition: keyed ? ` WHERE (${name} >= ? OR ${name} IS NULL)` : ` WHERE ${name} > ?`,
    parameters: [boundOf(before, type)],
  };
}

function timesSince(
  name: string,
  { low }: MixedTimes,
  before: string,
  keyed: boolean,
): Pick<Scope, "condition" | "parameters"> {
  const later = `${name} >= ? AND ${INSTANT}(${name}) ${keyed ? ">=" : ">"} ?`;
  return {
    condition: keyed ? ` WHERE (${later} OR ${name} IS NULL)` : ` WHERE ${later}`,
    parameters: [low, instantKey(before)],
  };
}

function textsOf(db: DatabaseSync, from: string, field: string, names: Pick<Texts, "name" | "object">): Texts {
  return {
    ...names,
    from,
    field,
    matches: "REGEXP",
    one: async (sql) => {
      // What its REGEXP stands for.
      db.function("regexp", { deterministic: true }, (form, text) =>
        text === null ? null : Number(new RegExp(String(form)).test(String(text))),
      );
      return (Object.values(db.prepare(sql).get() ?? {})[0] ?? null) as string | null;
    },
  };
}

function boundOf(before: string, type: unknown): SQLInputValue {
  if (type === "integer") return BigInt(before);
  if (type === "real") return Number(before);
  return type === "blob" ? Buffer.from(before, "hex") : before;
}

const kindOf = (type: string) => (type === "integer" || type === "real" ? "number" : type);
const textOf = (value: Exclude<Stored, null>) =>
  typeof value === "object" ? Buffer.from(value).toString("hex") : String(value);
const shown = (value: Stored) => (value === null ? "null" : textOf(value).slice(0, 60));
