// Which rows an incremental run reads from MySQL, and where the next one goes on.
import type { SyncFailure } from "#contract/sync.ts";
import { cursorColumn, cursorWentBackWarning, nullCursorWarning } from "../../engine/cursor.ts";
import { readInOrder } from "../../engine/keys.ts";
import { formatObjectName } from "../../engine/name.ts";
import type { ReadRequest, StreamState } from "../../engine/source.ts";
import { type TextOrder, type Texts, textOrder } from "../../engine/text-order.ts";
import type { MysqlColumn, MysqlTable } from "./catalog.ts";
import { ident, literal, type MysqlLink } from "./connect.ts";

// Rows of writers that commit late: what lies shortly before the cursor is read again, and the key makes that harmless.
// Of numbers 10,000 whole ones.
const LOOK_BACK = { seconds: 3600, numbers: 10_001n } as const;

export interface Scope {
  /** SQL behind the table's name; empty: every row. */
  readonly condition: string;
  readonly endState: StreamState | null;
  readonly warnings: readonly SyncFailure[];
}

export async function planRead(
  link: MysqlLink,
  table: MysqlTable,
  from: string,
  keyed: boolean,
  request: ReadRequest,
): Promise<Scope> {
  if (request.mode !== "incremental") return { condition: "", endState: null, warnings: [] };
  const column = cursorColumn(table.columns, request.cursorField);
  const field = column.name;
  const name = formatObjectName(request.object);
  const greatest = column.type.kind === "bytes" ? `HEX(max(${ident(field)}))` : `max(${column.expression})`;
  const without = keyed || !column.nullable ? "0" : `EXISTS (SELECT 1 FROM ${from} WHERE ${ident(field)} IS NULL)`;
  const before = request.state?.cursor ?? null;
  const since = before === null ? "NULL" : keyed ? lookBack(column, before) : asLiteral(column, before);
  const [row] = await link.rows(
    `SELECT ${greatest} AS c, ${without} AS without, max(${ident(field)}) < ${since} AS back FROM ${from}`,
  );
  // An enum's members are compared as texts, and sorted by their place in its list.
  const sorted = /^(enum|set)\(/.test(column.declared) ? `CONCAT(${ident(field)})` : ident(field);
  const max = row?.["c"] ?? null;
  const texts: Texts = {
    from,
    field: sorted,
    name: field,
    object: name,
    matches: "REGEXP",
    one: async (sql) => Object.values((await link.rows(sql))[0] ?? {})[0] ?? null,
  };
  const other = column.type.kind === "string" ? await textOrder(texts, max, before, keyed) : null;
  const back = other?.back ?? row?.["back"] === "1";
  const end = other?.greatest ?? max;
  // A table that took another's place has rows before that one's cursor.
  const condition = keyed
    ? again(column, other, back ? null : before)
    : once(column, other, before, end, request.state !== null);
  const order = readInOrder(request, table.primaryKey) ? ` ORDER BY ${other?.by.join(", ") ?? sorted}` : "";
  return {
    condition: `${condition === "" ? "" : ` WHERE ${condition}`}${order}`,
    endState: { cursor: end ?? before },
    warnings: [
      ...(row?.["without"] === "1" ? [nullCursorWarning(field, name)] : []),
      ...(back && !keyed ? [cursorWentBackWarning(field, name, String(before))] : []),
    ],
  };
}

// With a key: what may have come late, and what has no cursor, whenever it came. A date before the first of all is NULL to MySQL.
function again(column: MysqlColumn, other: TextOrder | null, before: string | null): string {
  if (before === null) return "";
  if (other?.later) return other.later;
  const name = ident(column.name);
  const since = lookBack(column, before);
  return `(${name} >= ${since}${column.nullable ? ` OR ${name} IS NULL` : ""} OR ${since} IS NULL)`;
}

function lookBack(column: MysqlColumn, before: string): string {
  const { kind } = column.type;
  if (kind === "timestamp") return `CAST(${literal(before)} AS DATETIME(6)) - INTERVAL ${LOOK_BACK.seconds} SECOND`;
  if (kind === "date") return `CAST(${literal(before)} AS DATE) - INTERVAL 1 DAY`;
  // Here, not there: its DECIMAL(65, 20) has no room for 65 digits before the point.
  const whole = /^-?\d+(?=\.\d*$|$)/.exec(before);
  if (whole && (kind === "int" || kind === "decimal" || kind === "float"))
    return String(BigInt(whole[0]) - LOOK_BACK.numbers);
  return asLiteral(column, before);
}

// Without one: each row once. The upper end matters where the engine has no snapshot (MyISAM).
function once(
  column: MysqlColumn,
  other: TextOrder | null,
  before: string | null,
  end: string | null,
  ran: boolean,
): string {
  const name = ident(column.name);
  const compare =
    other?.compare ?? ((operator: string, text: string) => `${name} ${operator} ${asLiteral(column, text)}`);
  const upTo = end === null ? `${name} IS NOT NULL` : compare("<=", end);
  if (before !== null) return `${compare(">", before)} AND ${upTo}`;
  return ran ? upTo : end === null ? "" : `(${upTo} OR ${name} IS NULL)`;
}

// Bytes are kept in hexadecimal digits; numbers as they are, for a text would be compared as a double.
function asLiteral({ type }: MysqlColumn, text: string): string {
  if (type.kind === "bytes" && /^([\dA-F]{2})*$/.test(text)) return text === "" ? "''" : `X'${text}'`;
  if ((type.kind === "int" || type.kind === "decimal") && /^-?\d+(\.\d+)?$/.test(text)) return text;
  return literal(text);
}
