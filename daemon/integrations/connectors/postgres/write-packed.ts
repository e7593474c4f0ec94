// Rows that are tuples of binary COPY already. They go on as they come, into a COPY that stays open over many batches, so that reading
// them and storing them are never waiting for each other; what lies under one savepoint goes again as text where a row is refused.
import { once } from "node:events";
import { finished } from "node:stream/promises";
import type { PackedRows } from "../../engine/source.ts";
import type { Column } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { copyFrom } from "./copy-from.ts";
import { isDataError } from "./errors.ts";
import { takingFrames } from "./frames.ts";
import { identList } from "./sql.ts";

/** Bytes under one savepoint: they stay in memory until the server has them all. */
const COPY_BYTES = 4 << 20;
/** Bytes on their way to the server: more must wait. */
const WAITING_BYTES = 1 << 20;

export interface PackedWriter<Rows extends PackedRows> {
  /** Answers rows that must go as text, before any others: PostgreSQL refuses one of them, and has none. */
  write(rows: Rows): Promise<readonly Rows[]>;
  /** To be called before the connection is used for anything else; answers as `write` does. */
  end(): Promise<readonly Rows[]>;
}

/** Throws what is not a matter of single rows. */
export function packedWriter<Rows extends PackedRows>(
  link: PostgresLink,
  table: string,
  columns: readonly Column[],
): PackedWriter<Rows> {
  const begin = `SAVEPOINT magic_batch; COPY ${table} (${identList(columns.map(({ name }) => name))}) FROM STDIN (FORMAT binary)`;
  let copy: OpenCopy | undefined;
  let sent: Rows[] = [];
  let bytes = 0;
  let saved = false;

  const close = async (): Promise<readonly Rows[]> => {
    if (!copy) return [];
    const rows = sent;
    const ended = copy.end();
    copy = undefined;
    sent = [];
    bytes = 0;
    try {
      await ended;
    } catch (error) {
      if (!isDataError(error)) throw error;
      await link.run("ROLLBACK TO SAVEPOINT magic_batch");
      return rows;
    }
    for (const each of rows) each.done();
    return [];
  };

  return {
    async write(rows) {
      // In one message: between two of them the server would wait for us.
      copy ??= await openCopy(link, saved ? `RELEASE SAVEPOINT magic_batch; ${begin}` : begin);
      saved = true;
      sent.push(rows);
      for (const part of rows.tuples) {
        bytes += part.length;
        if (!(await copy.write(part))) return close();
      }
      return bytes < COPY_BYTES ? [] : close();
    },
    async end() {
      const refused = await close();
      if (saved) await link.run("RELEASE SAVEPOINT magic_batch");
      saved = false;
      return refused;
    },
  };
}

interface OpenCopy {
  /** False: the server refuses something; `end` throws it. */
  write(part: Buffer): Promise<boolean>;
  end(): Promise<void>;
}

async function openCopy(link: PostgresLink, sql: string): Promise<OpenCopy> {
  const stream = link.client.query(takingFrames(await copyFrom(sql, { highWaterMark: WAITING_BYTES })));
  // An error of the server, or a lost connection, is emitted without destroying the stream: nothing else would end the waits.
  let refused = false;
  const failed = new Promise<never>((_, reject) =>
    stream.once("error", (error) => {
      refused = true;
      reject(error);
    }),
  );
  failed.catch(() => {});
  stream.write(HEADER);
  return {
    async write(part) {
      if (!refused && !stream.write(part)) await Promise.race([once(stream, "drain"), failed]).catch(() => {});
      return !refused;
    },
    async end() {
      if (!refused) stream.end(END);
      await Promise.race([finished(stream), failed]);
    },
  };
}

// CopyData messages of their own: signature, flags and extension length; and the tuple of -1 fields that ends the data.
const HEADER = message(`PGCOPY\n\xff\r\n\0${"\0".repeat(8)}`);
const END = message("\xff\xff");

function message(data: string): Buffer {
  const bytes = Buffer.from(`d    ${data}`, "latin1");
  bytes.writeUInt32BE(bytes.length - 1, 1);
  return bytes;
}
