// Rows into MySQL by multi-row INSERT, each a statement that holds or fails as a whole. A row that is refused, or that would be
// rounded or cut (a warning), is taken out and the rest goes on.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan, WriteResult } from "../../engine/destination.ts";
import { DOUBLED, keyedRows, keyPlaces, keyText, lastOfEach } from "../../engine/keys.ts";
import { keyOf } from "../../engine/rejects.ts";
import type { TakenRow } from "../../engine/taken.ts";
import { truthOf } from "../../engine/truth.ts";
import type { Column, Row, Value } from "../../engine/types.ts";
import { ident, literal, type MysqlLink } from "./connect.ts";
import { isRowError, type ServerError } from "./errors.ts";
import { storedGeometry } from "./geometry.ts";
import { deleteUnasked } from "./referring.ts";

/**
 * BIT takes a text in quotes for its bytes, geometry has a form of its own, FLOAT is not equal to the text that it was made of; TINYINT(1)
 * and BIT(1) take no words for booleans, what holds texts takes nothing else (1 is an enum's first member), dates and times take no offset,
 * and YEAR takes 0 for 2000.
 */
export type Form = "bits" | "geometry" | "float32" | "truth" | "words" | "moment" | "year";

/** The form of values for a column declared so (information_schema's `column_type`). */
export function formOf(declared: string): Form | undefined {
  if (declared.startsWith("bit(")) return "bits";
  if (declared.startsWith("year")) return "year";
  if (/^tinyint\(1\)/.test(declared)) return "truth";
  if (/^(varchar|char|(tiny|medium|long)?text|enum|set|json)\b/.test(declared)) return "words";
  return /^(date|timestamp)/.test(declared) ? "moment" : undefined;
}

export interface InsertTarget {
  readonly link: MysqlLink;
  /** Quoted. */
  readonly table: string;
  readonly plan: WritePlan;
  /** keys: ON DUPLICATE KEY UPDATE. delete: the old rows are deleted first, no unique key tells them. null: plain. */
  readonly upsert: "keys" | "delete" | null;
  /** True where the key's first column may be null. */
  readonly nullableKey: boolean;
  readonly forms: ReadonlyMap<string, Form>;
  /** Columns that may be null, and that the last run brought and this one does not. */
  readonly left: readonly string[];
  /** The table has our mark of deleted rows, whatever this run does about deletions: a record that is there has not gone. */
  readonly marked: boolean;
}

const STATEMENT_LENGTH = 512 << 10;
const STATEMENT_ROWS = 2000;
const LONG_BYTES = 64 << 10;

/** `taken`: those of the rejects that another row's value of a unique column has refused. */
export async function insertRows(
  target: InsertTarget,
  given: readonly Row[],
  givenPlace: (at: number) => number,
): Promise<WriteResult & { bytes: number; taken: readonly TakenRow[] }> {
  const { plan } = target;
  const keyed = keyedRows(given, plan, givenPlace);
  // One DELETE comes before many rows: of one key only the last may come after it.
  const kept = target.upsert === "delete" && plan.kind === "upsert" ? lastOfEach(keyed.rows, plan) : null;
  const rows = kept ? kept.map((at) => keyed.rows[at] as Row) : keyed.rows;
  const placeOf = (at: number) => keyed.place(kept?.[at] ?? at);
  const kinds = plan.columns.map((column) => kindOf(column, target.forms));
  const name = keyOf(plan);
  const rejects: Reject[] = [...keyed.rejects];
  const taken: TakenRow[] = [];
  // A character may take four bytes, and a statement that looks for keys tells each of them twice.
  const most = Math.min(STATEMENT_LENGTH, target.link.maxPacket >> 3);
  let bytes = 0;
  let start = 0;
  let tuples: string[] = [];
  let size = 0;
  // Of the tuples, where a later row of this run may have the key of an earlier one: then it comes in a statement of its own.
  const keys = replacesMarked(target) ? new Set<string>() : null;
  const flush = async (end: number) => {
    const first = start;
    if (tuples.length > 0)
      await insertTuples(
        target,
        tuples,
        rows.slice(start, end),
        (line, { column, reason, taken: isTaken }) => {
          const [row, place] = [rows[first + line] as Row, placeOf(first + line)];
          const reject = { key: name(row, place), column, reason };
          rejects.push(reject);
          if (isTaken) taken.push({ row, place, reject });
        },
        (key) => rejects.push({ key, column: plan.primaryKey[0] ?? null, reason: DOUBLED }),
      );
    bytes += size;
    start = end;
    tuples = [];
    size = 0;
    keys?.clear();
  };
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as Row;
    const key = keys && keyText(keyPlaces(plan).map((place) => row[place] ?? null));
    if (key !== null && keys?.has(key)) await flush(at);
    if (key !== null) keys?.add(key);
    const unfit = unfitOf(row, plan);
    if (unfit) {
      // What stands before it goes first: rows and tuples are numbered alike.
      await flush(at);
      rejects.push({ key: name(row, placeOf(at)), ...unfit });
      start = at + 1;
      continue;
    }
    const tuple = `(${row.map((value, i) => sqlValue(value, kinds[i] ?? "string")).join(", ")})`;
    if (size > 0 && size + tuple.length > most) await flush(at);
    tuples.push(tuple);
    size += tuple.length;
    if (size < most && tuples.length < STATEMENT_ROWS && at < rows.length - 1) continue;
    await flush(at + 1);
  }
  return { written: given.length - rejects.length, rejects, bytes, taken };
}

/** What `sqlValue` needs to know of a column of the source that goes into the one of its name. */
function kindOf({ name, type }: Column, forms: InsertTarget["forms"]): string {
  const form = forms.get(name) ?? type.kind;
  if (type.kind === "bool") return form === "words" ? form : type.kind;
  return form === "words" ? type.kind : form;
}

/** A value as a SQL literal under NO_BACKSLASH_ESCAPES. */
function sqlValue(value: Value, kind: string): string {
  if (value === null) return "NULL";
  if (typeof value !== "string") {
    const bytes = kind === "geometry" ? storedGeometry(value) : Buffer.from(value);
    if (bytes.length === 0) return "''";
    // As hex a record of half of max_allowed_packet would not go over.
    return bytes.length > LONG_BYTES ? `FROM_BASE64('${bytes.toString("base64")}')` : `X'${bytes.toString("hex")}'`;
  }
  if (kind === "bool") return value === "true" ? "1" : "0";
  if (kind === "bits" && /^\d+$/.test(value)) return value;
  const truth = kind === "truth" || kind === "bits" ? truthOf(value) : undefined;
  if (truth !== undefined) return truth === "true" ? "1" : "0";
  if (kind === "year" && value === "0") return "'0000'";
  if (kind === "moment") return literal(inUtc(value));
  // The greatest float's shortest text is a little more than itself, which is out of range.
  if (kind === "float32" && Math.abs(Number(value)) > MOST_FLOAT) return floatValue(value);
  if (kind === "timestamp") return literal(value.replace(/\+00$/, ""));
  return literal(value);
}

const MOST_FLOAT = 3.4028234663852886e38;

const elsewhere = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)? ?([+-])(0\d|1[0-5])(?::?([0-5]\d))?$/;

/** A time with an offset as the session, which is UTC's, writes it; any other text stays for the server to judge. */
function inUtc(text: string): string {
  const here = text.replace(/ ?(Z|\+00(:?00)?)$/i, "");
  if (here !== text) return here;
  const [, day, time, fraction = "", sign, hours = 0, minutes = 0] = elsewhere.exec(text) ?? [];
  const local = new Date(`${day}T${time}Z`);
  // The 30th of February would be the 1st of March.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(`${day}T${time}`)) return text;
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const utc = new Date(local.getTime() - offset * 60_000).toISOString();
  return `${utc.slice(0, 10)} ${utc.slice(11, 19)}${fraction}`;
}

// MySQL stores 0 for -0 and 2 for 1.5, and says nothing.
function unfitOf(row: Row, plan: WritePlan): { column: string; reason: string } | null {
  for (const [at, { name, type }] of plan.columns.entries()) {
    const value = row[at];
    if (typeof value !== "string") continue;
    if (type.kind === "float" && value === "-0") return { column: name, reason: "MySQL has no -0" };
    if (type.kind === "int" && !/^\s*[+-]?\d+\s*$/.test(value))
      return { column: name, reason: `${value.slice(0, 60)} is no whole number` };
    if (type.kind === "bool" && value !== "true" && value !== "false")
      return { column: name, reason: `${value.slice(0, 60)} is no boolean` };
  }
  return null;
}

interface Bad {
  readonly line: number | null;
  readonly column: string | null;
  readonly reason: string;
  /** True where another row has the value of a unique column. */
  readonly taken?: boolean;
}

type RejectLine = (line: number, bad: Bad) => void;

/** A full refresh that marks what has gone, by a key that nobody vouches for: what is not marked came in this run. */
function replacesMarked({ plan, upsert }: InsertTarget): boolean {
  return plan.kind === "replace" && upsert !== null && !plan.keyCertain;
}

async function insertTuples(
  target: InsertTarget,
  tuples: readonly string[],
  rows: readonly Row[],
  reject: RejectLine,
  doubled: (key: string) => void,
): Promise<void> {
  // Behind a bad row one alone is tried, then twice as many: what follows a bad one is sent for nothing.
  for (let from = 0, size = tuples.length; from < tuples.length; ) {
    const end = Math.min(from + size, tuples.length);
    const bad = await tryInsert(target, tuples.slice(from, end), rows.slice(from, end), doubled);
    if (!bad) {
      from = end;
      size *= 2;
    } else if (end - from === 1) {
      reject(from, bad);
      from = end;
      size = 1;
    } else {
      // "at row 7": what stood before it is good. An error without a row: halve until it can only be one.
      const { line } = bad;
      size = line === null || line >= end - from ? (end - from) >> 1 : Math.max(1, line);
    }
  }
}

async function tryInsert(
  target: InsertTarget,
  tuples: readonly string[],
  rows: readonly Row[],
  doubled: (key: string) => void,
): Promise<Bad | null> {
  const { link, table, plan, upsert } = target;
  const names = plan.columns.map(({ name }) => name);
  // MySQL would update whichever row any unique key finds: only the row of this very key may be changed.
  const [first = ""] = plan.primaryKey;
  const same = plan.primaryKey.map((name) => `BINARY ${ident(name)} <=> BINARY VALUES(${ident(name)})`).join(" AND ");
  // Else an error: a null where none may be, or a sum beyond all numbers (of a part that nobody computes beforehand).
  const raised = target.nullableKey
    ? `IF(18446744073709551615 + (1 + CHAR_LENGTH(${ident(first)})), NULL, NULL)`
    : "NULL";
  const sets = [
    `${ident(first)} = IF(${same}, ${ident(first)}, ${raised})`,
    ...names.filter((name) => !plan.primaryKey.includes(name)).map((name) => `${ident(name)} = VALUES(${ident(name)})`),
  ];
  // Of rows that a full refresh marks instead of deleting.
  if (plan.kind === "replace") sets.push(...target.left.map((name) => `${ident(name)} = NULL`));
  if (target.marked) sets.push("`_magic_deleted_at` = NULL");
  const onDuplicate = upsert === "keys" ? ` ON DUPLICATE KEY UPDATE ${sets.join(", ")}` : "";
  if (tuples.length === 1 && (tuples[0]?.length ?? 0) * 4 > link.maxPacket) {
    const size = Buffer.byteLength(tuples[0] ?? "");
    if (size + 65_536 > link.maxPacket)
      return {
        line: 0,
        column: null,
        reason: `the record has ${size} bytes, the server's max_allowed_packet is ${link.maxPacket}`,
      };
  }
  const ofTheseKeys = () => `FROM ${table} WHERE ${hasKeyOf(rows, target)}`;
  const removal = () => `DELETE ${ofTheseKeys()}`;
  const insertion = `INSERT INTO ${table} (${names.map(ident).join(", ")}) VALUES ${tuples.join(", ")}${onDuplicate}`;
  await link.run("SAVEPOINT magic_batch");
  try {
    const came = replacesMarked(target)
      ? await link.rows(`SELECT ${shownKey(plan)} AS name ${ofTheseKeys()} AND \`_magic_deleted_at\` IS NULL`)
      : [];
    if (upsert === "delete") await link.run(removal());
    const { warnings } = await link.run(insertion);
    const told =
      warnings === 0
        ? undefined
        : (await link.rows("SHOW WARNINGS")).find(
            (row) => row["Code"] !== UNSAFE_FOR_BINLOG && !/deprecated/i.test(row["Message"] ?? ""),
          );
    if (!told) {
      for (const { name } of came) doubled(name ?? "");
      return null;
    }
    await link.run("ROLLBACK TO SAVEPOINT magic_batch");
    return placeIn(told["Message"] ?? "the value would be changed");
  } catch (error) {
    if (!isRowError(error)) throw error;
    await link.run("ROLLBACK TO SAVEPOINT magic_batch");
    const single = rows.length === 1 && (error as ServerError).errno === DUPLICATE && upsert === null;
    if (single && plan.kind === "replace" && !plan.keyCertain && plan.primaryKey.length > 0) {
      // The table was empty when the run began: the other row of this key is one of its own.
      if (await replaced(link, removal(), insertion)) return { line: 0, column: first, reason: DOUBLED };
    }
    const { errno, message } = error as ServerError;
    const place = placeIn(message);
    const refused =
      upsert === "keys" && rows.length === 1 && (errno === TOO_LARGE || (errno === NULL && place.column === first));
    return refused && rows[0]?.[names.indexOf(first)] !== null
      ? {
          line: 0,
          column: null,
          reason:
            "another row of the table has the same value in a unique column, or a key that its collation takes for the same",
          taken: true,
        }
      : { ...place, column: place.column ?? ofIndex(message, names), taken: errno === DUPLICATE };
  }
}

// An index that nobody named is called like its first column.
function ofIndex(message: string, names: readonly string[]): string | null {
  const [, index] = / for key '(?:.*\.)?([^']+)'$/s.exec(message) ?? [];
  return names.find((name) => name === index) ?? null;
}

const DUPLICATE = 1062;
const TOO_LARGE = 1690;
const NULL = 1048;
/** What replicas may make of the statement, where `binlog_format` is STATEMENT: says nothing of the row. */
const UNSAFE_FOR_BINLOG = "1592";

async function replaced(link: MysqlLink, removal: string, insertion: string): Promise<boolean> {
  try {
    // Rows that refer to the one that goes refer to the one that comes.
    if ((await deleteUnasked(link, removal)) > 0) {
      await link.run(insertion);
      return true;
    }
  } catch (error) {
    if (!isRowError(error)) throw error;
    await link.run("ROLLBACK TO SAVEPOINT magic_batch");
  }
  return false;
}

// By the table's own comparison, which an index may serve, and by one to which "A" is not "a".
function hasKeyOf(rows: readonly Row[], target: InsertTarget): string {
  const { plan, link } = target;
  const isText = (name: string) => plan.columns.find((column) => column.name === name)?.type.kind === "string";
  const exactly = (name: string) =>
    isText(name) ? `CONVERT(${ident(name)} USING utf8mb4) COLLATE ${link.keyCollation}` : ident(name);
  const keys = tuplesOf(target, rows, keyPlaces(plan));
  const among = (columns: readonly string[]) => `(${columns.join(", ")}) IN (${keys})`;
  const loosely = among(plan.primaryKey.map(ident));
  return plan.primaryKey.some(isText) ? `${loosely} AND ${among(plan.primaryKey.map(exactly))}` : loosely;
}

/** As keyOf names a row. */
export function shownKey(plan: WritePlan): string {
  const parts = keyPlaces(plan).map((at) => {
    const { name = "", type } = plan.columns[at] ?? {};
    return type?.kind === "bytes" ? `CONCAT('\\x', LOWER(HEX(LEFT(${ident(name)}, 64))))` : `LEFT(${ident(name)}, 200)`;
  });
  return `CONCAT_WS(',', ${parts.join(", ")})`;
}

/** The rows' values at the places as SQL, to be compared with those of columns. */
export function tuplesOf({ plan, forms }: InsertTarget, rows: readonly Row[], places: readonly number[]): string {
  const kinds = plan.columns.map((column) => kindOf(column, forms));
  const literalOf = (value: Value, kind: string) =>
    kind === "float32" && typeof value === "string" ? floatValue(value) : sqlValue(value, kind);
  return rows
    .map((row) => `(${places.map((at) => literalOf(row[at] ?? null, kinds[at] ?? "string")).join(", ")})`)
    .join(", ");
}

// What a FLOAT holds of a text, as the double that it is compared as.
function floatValue(text: string): string {
  const value = Math.fround(Number(text));
  return Number.isFinite(value) ? value.toExponential() : literal(text);
}

/** Which row and column a message of the server's is about. */
export function placeIn(message: string): { line: number | null; column: string | null; reason: string } {
  // The last ones: a value that stands before them may say the words too. Names may hold the quotes that they stand in.
  const row = /^.*at row (\d+)/s.exec(message);
  const named =
    /^.*(?:[Cc]olumn|Field) (['`].+?['`])(?: at row \d+| cannot be null| doesn't have a default value|\.?$)/s.exec(
      message,
    )?.[1] ?? "";
  // What is no JSON is told with the table before the column, and a full stop.
  const quoted = message.endsWith("'.") ? /^'.*?\.(.+)'$/s : /^'(.+)'$/s;
  const column =
    /^(?:`.*`\.)?`(.+)`$/s.exec(named) ??
    quoted.exec(named) ??
    // A row that it refers to is not there; MariaDB names a column's own check like this.
    /^Cannot add or update a child row: .*? FOREIGN KEY \(`(.+?)`[,)]/s.exec(message) ??
    /^CONSTRAINT `[^`]*\.([^`.]+)` failed for /.exec(message);
  return { line: row ? Number(row[1]) - 1 : null, column: column?.[1] ?? null, reason: message.slice(0, 300) };
}
