// Rows that are tuples of binary COPY already. They go on as they come, into a COPY that stays open over many batches, so that reading
// them and storing them are never waiting for each other; what lies under one savepoint goes again as text where a row is refused.
import type { Socket } from "node:net";
import type { Submittable } from "pg";
import type { PackedRows } from "../../engine/source.ts";
import type { Column } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { isDataError } from "./errors.ts";
import { identList } from "./sql.ts";

/** Bytes under one savepoint: they stay in memory until the server has them all. */
const COPY_BYTES = 4 << 20;

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
      rows.done();
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
  /** Resolves where more may be written; false: the server refuses something, which `end` throws. */
  write(part: Buffer): Promise<boolean>;
  end(): Promise<void>;
}

// COPY over pg's connection, by the messages themselves (PostgreSQL 15, 55.2.6 "COPY Operations"): a stream in between would keep
// what is sent until it has an answer, and memory that is used again soon is still in the processor's cache.
async function openCopy({ client }: PostgresLink, sql: string): Promise<OpenCopy> {
  const begun = Promise.withResolvers<Socket>();
  const ended = Promise.withResolvers<void>();
  let refused = false;
  const refuse = (error: unknown) => {
    refused = true;
    begun.reject(error);
    ended.reject(error);
  };
  // Thrown by `end`, or by nobody where the run is given up.
  ended.promise.catch(() => {});
  client.query({
    submit: (connection: { query(sql: string): void }) => connection.query(sql),
    callback: () => {},
    handleCopyInResponse: ({ stream }: { stream: Socket }) => begun.resolve(stream),
    handleCommandComplete: () => {},
    handleReadyForQuery: () => ended.resolve(),
    handleError: refuse,
  } as Submittable);
  const socket = await begun.promise;
  socket.write(HEADER);
  return {
    async write(part) {
      if (refused) return false;
      const sent = new Promise<void>((resolve) => socket.write(part, () => resolve()));
      if (socket.writableLength > 0) await Promise.race([sent, ended.promise]).catch(() => {});
      return !refused;
    },
    async end() {
      if (!refused) socket.write(END);
      await ended.promise;
    },
  };
}

// CopyData messages of their own: signature, flags and extension length; and the tuple of -1 fields that ends the data, with
// CopyDone.
const HEADER = message(`PGCOPY\n\xff\r\n\0${"\0".repeat(8)}`);
const END = Buffer.concat([message("\xff\xff"), Buffer.from("c\0\0\0\x04", "latin1")]);

function message(data: string): Buffer {
  const bytes = Buffer.from(`d    ${data}`, "latin1");
  bytes.writeUInt32BE(bytes.length - 1, 1);
  return bytes;
}
