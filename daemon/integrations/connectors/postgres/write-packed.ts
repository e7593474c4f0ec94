// Rows that are tuples of binary COPY already: a batch under a savepoint, as write-rows.ts does it with lines of text.
import { finished } from "node:stream/promises";
import type { Column } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { copyFrom } from "./copy-from.ts";
import { isDataError } from "./errors.ts";
import { takingFrames } from "./frames.ts";
import { identList } from "./sql.ts";

/** False: PostgreSQL refuses one of the rows, and none of them is there. Throws what is not a matter of single rows. */
export async function copyTuples(
  link: PostgresLink,
  table: string,
  columns: readonly Column[],
  tuples: readonly Buffer[],
): Promise<boolean> {
  try {
    // In one message: between two of them the server would wait for us.
    const sql = `SAVEPOINT magic_batch; COPY ${table} (${identList(columns.map(({ name }) => name))}) FROM STDIN (FORMAT binary)`;
    const stream = link.client.query(takingFrames(await copyFrom(sql, { highWaterMark: WAITING_BYTES })));
    // An error of the server, or a lost connection, is emitted without destroying the stream: nothing else would end the wait.
    const failed = new Promise<never>((_, reject) => stream.once("error", reject));
    failed.catch(() => {});
    for (const part of [HEADER, ...tuples, END]) stream.write(part);
    stream.end();
    await Promise.race([finished(stream), failed]);
  } catch (error) {
    if (!isDataError(error)) throw error;
    await link.run("ROLLBACK TO SAVEPOINT magic_batch; RELEASE SAVEPOINT magic_batch");
    return false;
  }
  await link.run("RELEASE SAVEPOINT magic_batch");
  return true;
}

/** A batch is in memory wholly: nothing is gained by waiting in between. */
const WAITING_BYTES = 1 << 30;

// CopyData messages of their own: signature, flags and extension length; and the tuple of -1 fields that ends the data.
const HEADER = message(`PGCOPY\n\xff\r\n\0${"\0".repeat(8)}`);
const END = message("\xff\xff");

function message(data: string): Buffer {
  const bytes = Buffer.from(`d    ${data}`, "latin1");
  bytes.writeUInt32BE(bytes.length - 1, 1);
  return bytes;
}
