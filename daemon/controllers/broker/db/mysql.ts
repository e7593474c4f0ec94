// MySQL and MariaDB for db:query: one transaction of a session that is reset afterwards. A login with FILE or SUPER is refused.
import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { createConnection, type Connection as MysqlConnection, type ResultSetHeader } from "mysql2/promise";
import { MagicError } from "#contract/errors.ts";
import { behindComments, firstWord } from "#contract/statement.ts";
import { pinnedSocket } from "#daemon/egress/pinned-socket.ts";
import {
  caps,
  type Driver,
  ENDED,
  type Mode,
  type QueryAnswer,
  RELEASE_WITHIN_MS,
  type Session,
  STATEMENT_TIMEOUT_MS,
} from "./driver.ts";
import { driverValue, openMeter, refused, wireValue } from "./meter.ts";
import { BEGIN_WITHIN_MS, patiently } from "./patience.ts";
import { openReaper } from "./reaper.ts";
import { openSlots } from "./slots.ts";
import { questionMarks } from "./statement.ts";
import { countBytes } from "./wire-cap.ts";

const IDLE_MS = 30_000;

/** As MariaDB knows it (seconds, any statement) and as MySQL does (milliseconds, SELECT only); each passes over the other's. */
const STATEMENT_LIMIT = `/*M! max_statement_time = ${STATEMENT_TIMEOUT_MS / 1000}, */ /*!80000 max_execution_time = ${STATEMENT_TIMEOUT_MS}, */`;

/** Privileges that reach beyond the database's own tables. */
const REACH = /\b(ALL PRIVILEGES|SUPER|FILE|SYSTEM_USER|SHUTDOWN|SET_USER_ID)\b[^`]*ON \*\.\*/i;

/** Which server it is: behind a balancer another one may have a session of the same number. */
const SERVER = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@version) AS server";

/** SERVER_STATUS_IN_TRANS and SERVER_STATUS_IN_TRANS_READONLY of the protocol. */
const TRANSACTION = 0x0001;
const READ_ONLY_TRANSACTION = 0x2000;

/** Before such a statement the server commits what it has; what follows is committed one by one. */
const COMMITS = new Set([
  ...["alter", "analyze", "cache", "check", "create", "drop", "grant", "optimize"],
  ...["rename", "repair", "revoke", "truncate"],
]);
const TEMPORARY = /^(create(\s+or\s+replace)?|drop)\s+temporary\b/i;

export function openMysql(url: string, mode: Mode, address?: string): Driver {
  const slots = openSlots(caps.sessions);
  const idle = new Map<MysqlConnection, NodeJS.Timeout>();
  let closed = false;
  const servers = new WeakMap<MysqlConnection, string>();
  const reap = openReaper<MysqlConnection>(async (left, signal) => {
    const connection = await connect(signal);
    const server = servers.get(connection);
    const late = (): void => connection.destroy();
    signal.addEventListener("abort", late);
    if (signal.aborted) return late();
    // One that has ended by itself is unknown by then.
    for (const one of left.filter((each) => servers.get(each) === server))
      await connection.query(`KILL CONNECTION ${one.threadId}`).catch(() => {});
    connection.destroy();
  });

  async function connect(caller: AbortSignal): Promise<MysqlConnection> {
    const connection = await createConnection({
      uri: url,
      ...(address !== undefined && {
        stream: ({ config }: { config: { port: number; host: string } }) =>
          pinnedSocket(address).connect(config.port, config.host),
      }),
      multipleStatements: false,
      supportBigNumbers: true,
      dateStrings: true,
      connectTimeout: 10_000,
      // LOAD DATA LOCAL would read the daemon's own files.
      flags: ["-LOCAL_FILES"],
      timezone: "Z",
      charset: "utf8mb4",
    });
    connection.on("error", () => {});
    const look = async () => {
      const [[row]] = (await connection.query(SERVER)) as unknown as [[{ server: string }]];
      servers.set(connection, row.server);
      return await connection.query({ sql: "SHOW GRANTS", rowsAsArray: true });
    };
    try {
      const [grants] = await patiently(() => giveUp(connection), look, BEGIN_WITHIN_MS, caller);
      if ((grants as unknown as string[][]).some(([grant]) => REACH.test(grant ?? "")))
        throw new MagicError(
          "capability_denied",
          "the database login has FILE, SUPER or all privileges: a read-only session would not hold it; use a plain account",
        );
    } catch (error) {
      connection.destroy();
      throw error;
    }
    return connection;
  }

  /** Everything that a reset undoes, charset and time zone included, is set for each use. */
  async function prepare(connection: MysqlConnection): Promise<void> {
    await connection.query("SET NAMES utf8mb4");
    await connection.query(
      `SET SESSION ${STATEMENT_LIMIT} sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), time_zone = '+00:00'`,
    );
    if (mode === "read") await connection.query("SET SESSION TRANSACTION READ ONLY");
    await connection.query(mode === "read" ? "START TRANSACTION READ ONLY" : "START TRANSACTION");
  }

  function keep(connection: MysqlConnection): void {
    const timer = setTimeout(() => {
      idle.delete(connection);
      connection.destroy();
    }, IDLE_MS).unref();
    idle.set(connection, timer);
  }

  function reuse(): MysqlConnection | undefined {
    const [held] = idle;
    if (!held) return undefined;
    clearTimeout(held[1]);
    idle.delete(held[0]);
    return held[0];
  }

  async function open(caller: AbortSignal): Promise<MysqlConnection> {
    const prepared = (one: MysqlConnection): Promise<void> =>
      patiently(
        () => giveUp(one),
        () => prepare(one),
        BEGIN_WITHIN_MS,
        caller,
      );
    const kept = reuse();
    if (kept)
      try {
        await prepared(kept);
        return kept;
      } catch {
        // The server has ended it meanwhile.
        kept.destroy();
      }
    const connection = await connect(caller);
    try {
      await prepared(connection);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  return {
    async begin(signal, many, free = signal) {
      await slots.take(free);
      try {
        const connection = await open(signal);
        const within = mode === "read" ? READ_ONLY_TRANSACTION : many ? TRANSACTION : 0;
        return session(connection, within, (reusable, running) => {
          if (reusable && !closed) keep(connection);
          else connection.destroy();
          if (running) void reap(connection).then(slots.give);
          else slots.give();
        });
      } catch (error) {
        slots.give();
        throw error instanceof MagicError ? error : refused(error);
      }
    },
    async close() {
      closed = true;
      for (let kept = reuse(); kept; kept = reuse()) kept.destroy();
    },
  };
}

/** `within`: what the server's status must say after each statement. */
function session(
  connection: MysqlConnection,
  within: number,
  give: (reusable: boolean, running: boolean) => void,
): Session {
  let given = false;
  let running = 0;
  const end = (reusable: boolean): void => {
    if (given) return;
    given = true;
    give(reusable, running > 0);
  };
  const destroy = (): void => end(false);
  // With some errors (a deadlock, a time-out, a record that has changed) the server undoes all of the transaction, and would commit what
  // follows. An error does not say so; the status of the next statement does.
  const stands = async (): Promise<boolean> => {
    const [{ serverStatus }] = await patiently(
      () => giveUp(connection),
      () => connection.query<ResultSetHeader>("DO 0"),
      RELEASE_WITHIN_MS,
    ).catch(() => [{ serverStatus: 0 }]);
    return (serverStatus & TRANSACTION) !== 0;
  };
  return {
    async query(sql, params) {
      const word = firstWord(sql);
      // Where MariaDB's sql_mode is ORACLE: a program that may end the transaction. Elsewhere it is a cursor.
      if (word === "declare") throw new MagicError("invalid_request", "DECLARE cannot be sent through db:query");
      if (within === TRANSACTION && COMMITS.has(word) && !TEMPORARY.test(behindComments(sql)))
        throw new MagicError(
          "invalid_request",
          `${word.toUpperCase()} commits a transaction in MySQL: send it by request.db.query`,
        );
      try {
        running++;
        const { status, ...answer } = await run(connection, sql, params, () => running--);
        // Whatever the statement's text hid: outside the broker's transaction nothing more is sent.
        if (status !== null && (status & within) !== within) throw new MagicError("invalid_request", ENDED);
        return answer;
      } catch (error) {
        if (error instanceof MagicError || (within === TRANSACTION && !(await stands()))) destroy();
        throw error instanceof MagicError ? error : refused(error);
      }
    },
    async commit() {
      await patiently(
        () => giveUp(connection),
        () => connection.query("COMMIT"),
        STATEMENT_TIMEOUT_MS,
      ).catch((error: unknown) => {
        throw refused(error);
      });
    },
    // The server undoes what was not committed; no setting, variable, lock or temporary table of the session lives on.
    async release() {
      if (given) return;
      const late = setTimeout(destroy, RELEASE_WITHIN_MS);
      await connection.reset().then(() => end(true), destroy);
      clearTimeout(late);
    },
    destroy,
  };
}

/** Whoever waits for an answer is told at once; `destroy` would wait for the server's end of the connection. */
function giveUp(connection: MysqlConnection): void {
  (connection as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}

/** `status`: the server's, after a statement that returns no rows; null after others, which cannot change it. */
type Ran = QueryAnswer & { readonly status: number | null };

/** `onOver`: the server has ended the statement. */
async function run(
  connection: MysqlConnection,
  sql: string,
  params: readonly unknown[],
  onOver: () => void,
): Promise<Ran> {
  const values = params.map((value) => driverValue(value, timeOf));
  const marked = questionMarks("mysql", sql, values);
  const meter = openMeter();
  return await new Promise<Ran>((resolve, reject) => {
    // A prepared statement is one statement; its rows come one by one.
    const under = (connection as unknown as { connection: unknown }).connection as EventEmitter & {
      stream: Socket;
      execute(
        options: object,
        values: readonly unknown[],
      ): {
        on(event: string, listener: (value: never) => void): void;
      };
    };
    const uncounted = countBytes(under.stream, reject);
    let done = false;
    // A statement that failed emits `end` too, and once more where it was only to be prepared.
    const over = (): void => {
      if (done) return;
      done = true;
      uncounted();
      under.off("error", lost);
      onOver();
    };
    // A lost connection, or an answer that the driver cannot read, is told to the connection only.
    const lost = (error: Error): void => {
      over();
      reject(error);
    };
    under.on("error", lost);
    const query = under.execute({ sql: marked.sql, typeCast: typeCast }, marked.params);
    let changed = 0;
    let status: number | null = null;
    query.on("result", (row: { affectedRows?: number; serverStatus?: number } & Record<string, unknown>) => {
      if (row.constructor?.name === "ResultSetHeader") {
        changed = Number(row.affectedRows ?? 0);
        status = row.serverStatus ?? 0;
      } else
        try {
          meter.add(Object.fromEntries(Object.entries(row).map(([key, value]) => [key, wireValue(value)])));
        } catch (error) {
          reject(error);
        }
    });
    query.on("error", lost);
    query.on("end", () => {
      over();
      resolve({ rows: meter.rows, row_count: meter.rows.length || changed, status });
    });
  });
}

interface Field {
  readonly type: string;
  string(): string | null;
}

/** BIGINT as text, like DECIMAL, which already is. */
function typeCast(field: Field, next: () => unknown): unknown {
  const value = next();
  if (field.type === "LONGLONG") return textOf(value);
  return field.type === "FLOAT" && typeof value === "number" ? shortest(value) : value;
}

/** A number of four bytes as everybody writes it: 0.1, not 0.10000000149011612. */
function shortest(value: number): number {
  const same = [6, 7, 8, 9]
    .map((digits) => Number(value.toPrecision(digits)))
    .find((one) => Math.fround(one) === value);
  return same ?? value;
}

/** Where a column is written, the servers refuse the letters of RFC 3339; the session is at UTC. */
function timeOf(time: string): string {
  return time.replace("T", " ").replace("Z", "");
}

function textOf(value: unknown): unknown {
  return value === null ? null : String(value);
}
