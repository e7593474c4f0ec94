// Rows into a table by COPY, a batch at a time under a savepoint. A row that PostgreSQL refuses is taken out by the line that its
// error names, and the rest goes on: one bad row costs one more COPY of its batch, not the run.
import { finished } from "node:stream/promises";
import type { Reject } from "#contract/sync.ts";
import type { WriteResult } from "../../engine/destination.ts";
import { hasDoubledKeys } from "../../engine/json-keys.ts";
import type { Column, Row } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { copyFrom } from "./copy-from.ts";
import { lineOf } from "./copy-text.ts";
import { isDataError, type ServerError } from "./errors.ts";
import { identList } from "./sql.ts";

export interface RowTarget {
  readonly link: PostgresLink;
  /** Quoted. */
  readonly table: string;
  readonly columns: readonly Column[];
  /** True for the columns, by their places, that are jsonb. */
  readonly jsonb: readonly boolean[];
  keyOf(row: Row, place: number): string;
}

// One COPY's size: enough to make its fixed cost small, small enough that resending a part is cheap.
const COPY_BYTES = 4 << 20;
const FEW_LINES = 8;

/** Writes the rows; throws what is not a matter of single rows. */
export async function writeRows(
  target: RowTarget,
  rows: readonly Row[],
  placeOf: (at: number) => number,
): Promise<WriteResult> {
  const rejects: Reject[] = [];
  let lines: string[] = [];
  // The places of the lines' rows.
  let sent: number[] = [];
  let size = 0;
  const flush = async () => {
    await writeLines(target, lines, (line, column, reason) => {
      const place = sent[line] as number;
      const row = rows[place] as Row;
      rejects.push({ key: target.keyOf(row, placeOf(place)), column: column ?? withNul(row, target.columns), reason });
    });
    lines = [];
    sent = [];
    size = 0;
  };
  for (const [at, row] of rows.entries()) {
    const doubled = target.jsonb.findIndex((is, i) => is && typeof row[i] === "string" && hasDoubledKeys(row[i]));
    if (doubled >= 0) {
      const column = target.columns[doubled]?.name ?? null;
      rejects.push({
        key: target.keyOf(row, placeOf(at)),
        column,
        reason: "a key stands twice, of which jsonb keeps one",
      });
      continue;
    }
    const line = lineOf(row);
    lines.push(line);
    sent.push(at);
    size += line.length;
    if (size >= COPY_BYTES) await flush();
  }
  await flush();
  return { written: rows.length - rejects.length, rejects };
}

// Of an encoding's error the server tells the line alone.
function withNul(row: Row, columns: readonly Column[]): string | null {
  return columns.find((_, at) => typeof row[at] === "string" && row[at].includes("\0"))?.name ?? null;
}

async function writeLines(
  target: RowTarget,
  lines: readonly string[],
  reject: (line: number, column: string | null, reason: string) => void,
): Promise<void> {
  let from = 0;
  // Among many bad rows only a few are tried at once: what follows a bad one is sent for nothing.
  let size = lines.length;
  while (from < lines.length) {
    const part = lines.slice(from, from + size);
    const bad = await tryCopy(target, part);
    if (!bad) {
      from += part.length;
      size *= 2;
      continue;
    }
    if (bad.line < 0) {
      // The error names no line: halve until it can only be one.
      const half = part.length >> 1;
      const start = from;
      await writeLines(target, part.slice(0, half), (line, column, reason) => reject(start + line, column, reason));
      await writeLines(target, part.slice(half), (line, column, reason) => reject(start + half + line, column, reason));
      from += part.length;
      continue;
    }
    // What stood before the bad line is good: it goes in again, without it.
    if (bad.line > 0) {
      const again = await tryCopy(target, part.slice(0, bad.line));
      if (again) throw again.error;
    }
    reject(from + bad.line, bad.column, bad.reason);
    from += bad.line + 1;
    size = Math.max(FEW_LINES, bad.line * 2);
  }
}

interface BadLine {
  /** From 0; -1: the error names none. */
  readonly line: number;
  readonly column: string | null;
  readonly reason: string;
  readonly error: unknown;
}

async function tryCopy(target: RowTarget, lines: readonly string[]): Promise<BadLine | null> {
  const { link } = target;
  await link.run("SAVEPOINT magic_batch");
  try {
    await copyLines(target, lines);
  } catch (error) {
    if (!isDataError(error)) throw error;
    await link.run("ROLLBACK TO SAVEPOINT magic_batch; RELEASE SAVEPOINT magic_batch");
    return badLine(error, lines.length);
  }
  await link.run("RELEASE SAVEPOINT magic_batch");
  return null;
}

async function copyLines(target: RowTarget, lines: readonly string[]): Promise<void> {
  const sql = `COPY ${target.table} (${identList(target.columns.map(({ name }) => name))}) FROM STDIN`;
  const stream = target.link.client.query(await copyFrom(sql));
  // An error of the server, or a lost connection, is emitted without destroying the stream: nothing else would end the waits below.
  const failed = new Promise<never>((_, reject) => stream.once("error", reject));
  failed.catch(() => {});
  // Large rows go one by one: their sum may pass what one string can hold.
  for (const part of parts(lines)) {
    if (!stream.write(part)) await Promise.race([drained(stream), failed]);
    if (stream.destroyed) break;
  }
  stream.end();
  await Promise.race([finished(stream), failed]);
}

function* parts(lines: readonly string[]): Generator<Buffer> {
  for (let at = 0; at < lines.length; ) {
    let text = "";
    while (at < lines.length && (text === "" || text.length + (lines[at] as string).length < COPY_BYTES))
      text += lines[at++];
    yield Buffer.from(text, "utf8");
  }
}

function drained(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of ["drain", "error", "close"]) stream.off(event, done);
      resolve();
    };
    for (const event of ["drain", "error", "close"]) stream.once(event, done);
  });
}

// `COPY orders, line 12, column amount: "abc"`, from 1; before it may stand another line's number: `JSON data, line 1: ...`.
function badLine(error: ServerError, count: number): BadLine {
  const place = /^COPY .*?, line (\d+)(?:, column (.+?)(?:: "|$))?/ms.exec(error.where ?? "");
  const line = place ? Number(place[1]) - 1 : -1;
  const known = line >= 0 && line < count ? line : count === 1 ? 0 : -1;
  return { line: known, column: columnOf(error) ?? place?.[2] ?? null, reason: reasonOf(error), error };
}

/** The first column that the error is about: of another row's value, or another table's lack of it, its detail tells (`Key (a, b)=...`). */
export function columnOf({ column, detail = "" }: ServerError): string | null {
  const [, quoted, plain] = /^Key \((?:"((?:[^"]|"")+)"|([^",() ]+))[,)]/.exec(detail) ?? [];
  return column ?? quoted?.replaceAll('""', '"') ?? plain ?? null;
}

/** Why PostgreSQL refused the row, without the row's other values. */
export function reasonOf(error: ServerError): string {
  // Our own tables' names mean nothing to anybody.
  const message = error.message.replace(/(?: (?:of|for|on) (?:relation|table))? "_magic_[a-z0-9_]+"/g, "");
  return message.length > 300 ? `${message.slice(0, 300)}...` : message;
}
