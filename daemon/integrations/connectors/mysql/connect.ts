// A connection to MySQL or MariaDB whose values are the server's own text, in UTC, under strict rules.
import { readFileSync } from "node:fs";
import { isIP, type Socket } from "node:net";
import type { Connection, QueryOptions, SslOptions } from "mysql2";
import { MagicError } from "#contract/errors.ts";
import { pinnedSocket } from "#daemon/egress/pinned-socket.ts";
import { databasePlace, madeOf, serverUrl } from "../../engine/server-url.ts";
import { garbled, mysqlError } from "./errors.ts";

export interface MysqlLink {
  /** Rows as objects of text; bytes columns are not for this. With `values` each `?` stands for one, else for itself: names may hold it. */
  rows(sql: string, values?: readonly string[]): Promise<Record<string, string | null>[]>;
  /** Affected rows and the server's warnings. */
  run(sql: string): Promise<{ readonly affected: number; readonly warnings: number }>;
  /** Runs a definition that locks a table against its readers; those who come meanwhile wait for seconds, however long earlier ones take. */
  runBetweenReaders(sql: string): Promise<void>;
  /** Rows one after another, values as buffers. */
  stream(sql: string): AsyncIterable<(Buffer | null)[]>;
  readonly database: string | null;
  /** A binary collation of utf8mb4 for keys, to which "a" and "a " differ, where the server has one. */
  readonly keyCollation: string;
  /** Bytes of the largest statement that the server takes. */
  readonly maxPacket: number;
  kill(): void;
  close(): Promise<void>;
}

// No rounding, no truncation, no zero for what is no date, no number for a zero; a backslash is a backslash. And what a server or its
// init_connect may have set otherwise: texts in another character set, results that are cut, warnings that are not kept.
const settings = [
  "SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
  "character_set_client = 'utf8mb4'",
  "character_set_results = 'utf8mb4'",
  "collation_connection = 'utf8mb4_bin'",
  "time_zone = '+00:00'",
  "autocommit = 1",
  "completion_type = 0",
  "sql_select_limit = 18446744073709551615",
  "sql_big_selects = 1",
  "sql_safe_updates = 0",
  "sql_auto_is_null = 0",
  "sql_notes = 1",
  "max_error_count = 65535",
  "group_concat_max_len = 1048576",
  "net_write_timeout = 3600",
  "net_read_timeout = 3600",
  "wait_timeout = 86400",
  // As they are unless somebody changes them. No more for rows: a server does not see that who waits for one has been killed.
  "lock_wait_timeout = 86400",
  "innodb_lock_wait_timeout = 50",
].join(", ");

export async function connectMysql(options: {
  url: string;
  address?: string;
  side: "source" | "destination";
}): Promise<MysqlLink> {
  const mysql = await import("mysql2").catch(() => {
    throw new MagicError("driver_missing", "MySQL needs the package mysql2: npm install mysql2.");
  });
  const url = serverUrl(options.url);
  const database = decodeURIComponent(url.pathname.slice(1)) || null;
  const place = databasePlace(url, 3306);
  const socketPath = place.host.startsWith("/") ? place.host : undefined;
  const { port } = place;
  const host = place.host.replace(/^\[|\]$/g, "");
  const tls = madeOf(() => tlsOf(url, host));
  const connection: Connection = (mysql.default ?? mysql).createConnection({
    ...(socketPath ? { socketPath } : { host, port }),
    // The name stays the host: the server's certificate is checked against it.
    ...(options.address === undefined
      ? {}
      : { stream: () => pinnedSocket(options.address as string).connect(port, host) }),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    ...(database === null ? {} : { database }),
    ...tls,
    charset: "utf8mb4_bin",
    connectTimeout: 10_000,
    multipleStatements: false,
    enableKeepAlive: true,
    flags: ["-LOCAL_FILES"],
  });
  // A lost connection also fails the query under way: that is where it is handled. Where there is none, the next one is told.
  let lost: Error | undefined;
  connection.on("error", (error: Error) => {
    lost ??= error;
  });
  const { stream: socket } = connection as Connection & { readonly stream: Socket };
  let reached = false;
  socket.once("connect", () => {
    reached = true;
  });
  // The driver would wait for the rest of what it takes for a long message.
  socket.once("data", (first: Buffer) => {
    if (!mayGreet(first)) socket.destroy(noServer());
  });
  // It would take what comes out of its turn for an answer, and warn of it alone.
  connection.on("warn", (warning: Error) => socket.destroy(garbled(warning)));
  // What the driver destroys it answers no more: whoever waits would wait for ever, and undo nothing.
  const waiting = new Set<(error: Error) => void>();
  let killed = false;
  const givenUp = () => new Error("Connection lost: it was given up.");
  const query = <T>(request: QueryOptions) =>
    new Promise<T>((resolve, reject) => {
      waiting.add(reject);
      connection.query(request, (error, result) => {
        waiting.delete(reject);
        if (error) reject(lost ?? error);
        else resolve(result as T);
      });
    });
  const runBetweenReaders = async (sql: string) => {
    for (let seconds = 1; ; seconds = Math.min(seconds * 2, LONGEST_WAIT_S)) {
      await query({ sql: `SET SESSION lock_wait_timeout = ${seconds}` });
      try {
        await query({ sql });
        return;
      } catch (error) {
        // 1205: not granted in time.
        if ((error as { errno?: number }).errno !== 1205) throw error;
      } finally {
        await query({ sql: "SET SESSION lock_wait_timeout = 86400" }).catch(() => {});
      }
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000).unref());
    }
  };
  let keyCollation = "utf8mb4_bin";
  let maxPacket = 1 << 20;
  try {
    await new Promise<void>((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())));
    await query({ sql: settings });
    const [about] = await query<{ v: string; p: number; c: string | null }[]>({
      sql: "SELECT version() AS v, @@max_allowed_packet AS p, (SELECT MAX(collation_name) FROM information_schema.collations WHERE collation_name IN ('utf8mb4_nopad_bin', 'utf8mb4_0900_bin')) AS c",
    });
    keyCollation = about?.c ?? keyCollation;
    maxPacket = Number(about?.p ?? maxPacket);
    const mariaDb = /mariadb/i.test(about?.v ?? "");
    await query({
      sql: `SET SESSION ${mariaDb ? "tx_isolation" : "transaction_isolation"} = 'REPEATABLE-READ', ${mariaDb ? "max_statement_time" : "max_execution_time"} = 0`,
    });
  } catch (error) {
    connection.destroy();
    throw mysqlError(
      connectFailure(error, reached),
      options.side,
      `connecting to ${socketPath ?? `${host}:${port}`}/${database ?? ""}`,
    );
  }
  return {
    database,
    keyCollation,
    maxPacket,
    rows: (sql, values) =>
      query({ sql: values ? filled(sql, values) : sql, typeCast: (field) => field.string("utf8") }),
    run: async (sql) => {
      const result = await query<{ affectedRows?: number; warningStatus?: number }>({ sql });
      return { affected: result.affectedRows ?? 0, warnings: result.warningStatus ?? 0 };
    },
    runBetweenReaders,
    stream: (sql) => {
      const rows = connection.query({ sql, rowsAsArray: true, typeCast: false }).stream({ highWaterMark: 1000 });
      // The driver tells a lost connection to its own listeners, and to no query that is streamed.
      const end = (error: Error) => rows.destroy(error);
      connection.once("error", end);
      waiting.add(end);
      if (killed) end(givenUp());
      else if (lost) end(lost);
      rows.once("close", () => {
        connection.off("error", end);
        waiting.delete(end);
      });
      return rows;
    },
    kill: () => {
      killed = true;
      connection.destroy();
      for (const end of waiting) end(givenUp());
    },
    close: async () => {
      await Promise.race([
        new Promise<void>((done) => connection.end(() => done())),
        new Promise((done) => setTimeout(done, 1000).unref()),
      ]);
      connection.destroy();
    },
  };
}

/** The first packet is number 0, and begins with the protocol's version 10 or an error's mark; a piece of it may be. */
function mayGreet(first: Buffer): boolean {
  return first.length < 5 || (first[3] === 0 && (first[4] === 10 || first[4] === 0xff));
}

const noServer = () => new Error("what answers there does not speak MySQL's protocol");

/** `reached`: something has accepted the connection. */
function connectFailure(error: unknown, reached: boolean): unknown {
  // The driver read beyond the end of what came.
  if (error instanceof RangeError) return noServer();
  const code = "ETIMEDOUT";
  if (!reached || (error as { code?: string }).code !== code) return error;
  return Object.assign(new Error("what accepted the connection sent no greeting in 10 s"), { code });
}

// Longer than PostgreSQL's: a table that is copied waits a second time, at its end.
const LONGEST_WAIT_S = 16;

/**
 * `sslmode` or `ssl` as MySQL and PostgreSQL name it: the certificate and the name are checked unless it says `no-verify`. A word that nobody
 * knows is refused: it would mean no TLS.
 */
function tlsOf(url: URL, host: string): { ssl?: SslOptions } {
  const mode = (url.searchParams.get("sslmode") ?? url.searchParams.get("ssl") ?? "")
    .toLowerCase()
    .replaceAll("_", "-");
  if (/^(|disabled?|none|off|no|allow|prefer(red)?|false|0)$/.test(mode)) return {};
  if (!/^(required?|verify-ca|verify-full|verify-identity|no-verify|true|1)$/.test(mode))
    throw new Error(`${JSON.stringify(mode)} is no sslmode`);
  if (mode === "no-verify") return { ssl: { rejectUnauthorized: false } };
  const root = url.searchParams.get("sslrootcert");
  return {
    ssl: {
      rejectUnauthorized: true,
      // The driver cannot check an address against a certificate, and nobody has one for loopback.
      verifyIdentity: isIP(host) === 0 && mode !== "verify-ca",
      ...(root ? { ca: readFileSync(root) } : {}),
    },
  };
}

export const ident = (name: string) => `\`${name.replaceAll("`", "``")}\``;

/** True of a column that an outer join has not found; `IS NULL` takes the zero date of a NOT NULL column for a null. */
export const isMissing = (column: string) => `${column} <=> NULL`;

// The driver's own way escapes with backslashes, which mean nothing in our mode: a quote would end the literal.
function filled(sql: string, values: readonly string[]): string {
  let at = 0;
  return sql.replace(/\?/g, () => literal(values[at++] ?? ""));
}

/** Under NO_BACKSLASH_ESCAPES only the quote needs doubling. */
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

const escapes: Readonly<Record<string, string>> = { 0: "\0", n: "\n", r: "\r" };

/** What a server shows of a definition, as it is said in our mode: it writes a backslash before what is special, whatever its own mode. */
export const unescaped = (shown: string) => shown.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter);
