// A connection to PostgreSQL with the session settings under which text forms are exact, and a way to end it at once.
import net from "node:net";
import type { Client as PgClient } from "pg";
import { pinnedSocket } from "#daemon/egress/pinned-socket.ts";
import { guardMessages } from "#daemon/storage/postgres/messages.ts";
import { databasePlace, madeOf, serverUrl } from "../../engine/server-url.ts";
import { postgresError, type Side } from "./errors.ts";

export interface PostgresLink {
  readonly client: PgClient;
  /** The server's, e.g. `UTF8`: checksums are made of its bytes. */
  readonly encoding: string;
  /** All rows of a statement, every value as text. */
  rows<T extends Record<string, string | null>>(sql: string, parameters?: readonly unknown[]): Promise<T[]>;
  run(sql: string): Promise<number>;
  /** Runs a statement that locks a table against its readers; those who come meanwhile wait for seconds, however long earlier ones take. */
  runBetweenReaders(sql: string): Promise<void>;
  /** Bytes that went over the socket, both ways. */
  bytes(): number;
  /** Cancels what the server is doing and cuts the connection. */
  kill(): void;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly url: string;
  readonly side: Side;
  /** The address that the egress guard chose for the URL's host: connected to, while certificates are checked against the name. */
  readonly address?: string;
  readonly timeoutMs?: number;
}

/** Whatever the role's own isolation is: a snapshot that is older than the lock waited for would hide who held it. */
export const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED";

// Text forms that lose nothing and depend on nobody's configuration; no time-outs of the server's in long copies. A link is within a
// transaction from its first message to its last: a pooler that shares sessions (PgBouncer's transaction mode) then keeps the one with
// our settings and locks for us, and closes it behind us instead of handing it on.
const settings = [
  BEGIN,
  "SET client_encoding = 'UTF8'",
  "SET DateStyle = 'ISO, YMD'",
  "SET IntervalStyle = 'postgres'",
  "SET TimeZone = 'UTC'",
  "SET extra_float_digits = 1",
  "SET bytea_output = 'hex'",
  "SET statement_timeout = 0",
  "SET lock_timeout = 0",
  "SET idle_in_transaction_session_timeout = 0",
  "SET xmloption = 'content'",
  // What a server, a database or a role may have set otherwise: NULL in an array, how types are named, money's places.
  "SET array_nulls = on",
  "SET quote_all_identifiers = off",
  "SET standard_conforming_strings = on",
  "SET lc_monetary = 'C'",
  // A table larger than a quarter of the server's buffers is read from where another reader is, or one that was killed had come to.
  "SET synchronize_seqscans = off",
  // A commit that we take for done survives the server's crash; what waits for standbys as well stays so.
  "SELECT set_config(name, 'on', false) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'",
  // Not every version has them.
  "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')",
  "SHOW server_encoding",
  `COMMIT; ${BEGIN}`,
].join("; ");

/** Opens a connection; throws credentials_rejected, object_not_found (no such database) or unreachable. */
export async function connectPostgres(options: ConnectOptions): Promise<PostgresLink> {
  const pg = (await import("pg")).default;
  const url = serverUrl(options.url);
  databasePlace(url, 5432);
  const client = madeOf(
    () =>
      new pg.Client({
        connectionString: named(options.url, url.searchParams.get("sslmode") ?? ""),
        ...(options.address === undefined ? {} : { stream: () => pinnedSocket(options.address as string) }),
        connectionTimeoutMillis: options.timeoutMs ?? 10_000,
        keepAlive: true,
        application_name: "magic sync",
      }),
  );
  guardMessages(client);
  tellsWhatEndedIt(client);
  let encoding = "UTF8";
  try {
    await client.connect();
    const told = (await client.query(settings)) as unknown as { rows: { server_encoding?: string }[] }[];
    encoding = told.at(-3)?.rows[0]?.server_encoding ?? encoding;
    // Its texts are bytes: as UTF-8 the first one that is none would end the whole copy.
    if (encoding === "SQL_ASCII" && options.side === "source")
      await client.query(`SET client_encoding = 'SQL_ASCII'; COMMIT; ${BEGIN}`);
  } catch (error) {
    client.end().catch(() => {});
    // The driver's words; `prefer` is content with a server that has no TLS.
    const plain = options.url.replace(/([?&]sslmode=)prefer(?=[&#]|$)/, "$1disable");
    if (plain !== options.url && /server does not support SSL/.test((error as Error).message))
      return connectPostgres({ ...options, url: plain });
    throw postgresError(error, options.side, `connecting to ${describe(client)}`);
  }
  const socket = client.connection.stream as net.Socket;
  let closed = false;
  let canceled: Promise<void> | undefined;
  // What a wait moves over the socket is no progress.
  let still: number | null = null;
  const moved = () => socket.bytesRead + socket.bytesWritten;
  return {
    client,
    encoding,
    rows: async <T extends Record<string, string | null>>(sql: string, parameters: readonly unknown[] = []) => {
      const result = await client.query<T>({ text: sql, values: [...parameters], types: asText });
      return result.rows;
    },
    run: async (sql) => {
      const result = await client.query(sql);
      return (Array.isArray(result) ? result.at(-1)?.rowCount : result.rowCount) ?? 0;
    },
    runBetweenReaders: async (sql) => {
      await client.query("SAVEPOINT magic_lock");
      still = moved();
      try {
        for (let wait = 250; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
          try {
            await client.query(`SET LOCAL lock_timeout = ${wait}; ${sql}`);
            await client.query("RELEASE SAVEPOINT magic_lock; SET LOCAL lock_timeout = 0");
            return;
          } catch (error) {
            // 55P03: not granted in time.
            if ((error as { code?: string }).code !== "55P03") throw error;
            await client.query("ROLLBACK TO SAVEPOINT magic_lock");
            await new Promise((resolve) => setTimeout(resolve, wait).unref());
          }
        }
      } finally {
        still = null;
      }
    },
    bytes: () => still ?? moved(),
    kill: () => {
      if (closed) return;
      closed = true;
      canceled = cancel(client, options.address);
      setTimeout(() => socket.destroy(), 50).unref();
    },
    close: async () => {
      await canceled;
      if (closed) return;
      closed = true;
      await Promise.race([client.end(), new Promise((done) => setTimeout(done, 1000).unref())]).catch(() => {});
      socket.destroy();
    },
  };
}

// Who reads longer is waited for again and again, and so is everybody behind us, with pauses of the same length.
const LONGEST_WAIT_MS = 4000;

const asText = { getTypeParser: () => (value: string) => value } as never;

/** https://www.postgresql.org/docs/18/libpq-ssl.html, and node-postgres' own `no-verify`. */
const SSL_MODE = /^(disable|allow|prefer|require|verify-ca|verify-full|no-verify)?$/;

// Some mean verify-full to the driver, which says so in eight lines of warnings; so does, without a word, what it does not know.
function named(url: string, mode: string): string {
  if (!SSL_MODE.test(mode)) throw new Error(`${JSON.stringify(mode)} is no sslmode`);
  return /[?&]uselibpqcompat=/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=[&#]|$)/g, "$1verify-full");
}

// A lost connection also rejects the query under way: that is where it is handled. To whoever asks later the driver would say that the
// client is not queryable, where the server had said why, between two batches.
function tellsWhatEndedIt(client: PgClient): void {
  let end: Error | undefined;
  client.on("error", (error) => {
    end ??= error;
  });
  const query = client.query.bind(client) as (asked: Asked) => unknown;
  client.query = ((asked: Asked) => {
    if (end === undefined) return query(asked);
    if (typeof asked === "string" || !asked.handleError) return Promise.reject(end);
    process.nextTick(() => asked.handleError?.(end, client.connection));
    return asked;
  }) as typeof client.query;
}

/** A statement, or a COPY's stream, which alone is told of errors. */
type Asked = string | { handleError?(error: unknown, connection: unknown): void };

/** `host:port/database`, without credentials. */
function describe(client: PgClient): string {
  return `${client.host}:${client.port}/${client.database ?? ""}`;
}

// CancelRequest (protocol 3.0, 55.2.7): a connection of its own that carries the backend's pid and secret. It is left for the server to
// close, as libpq leaves it: PgBouncer 1.18 ends when the client goes first.
async function cancel(client: PgClient, address: string | undefined): Promise<void> {
  const { processID, secretKey } = client as PgClient & { readonly processID?: number; readonly secretKey?: number };
  if (typeof processID !== "number" || typeof secretKey !== "number") return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(80877102, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  const path = client.host.startsWith("/") ? `${client.host}/.s.PGSQL.${client.port}` : undefined;
  const socket = path ? net.connect(path) : net.connect(client.port, address ?? client.host);
  socket.on("error", () => {});
  socket.write(request);
  socket.resume();
  socket.setTimeout(1000, () => socket.destroy());
  await new Promise((closed) => socket.once("close", closed));
}
