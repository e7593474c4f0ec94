// MySQL and MariaDB for db:query: one transaction of a session that is reset afterwards. A login with FILE or SUPER is refused.
import { createConnection, type Connection as MysqlConnection } from "mysql2/promise";
import { MagicError } from "#contract/errors.ts";
import { pinnedSocket } from "#daemon/egress/pinned-socket.ts";
import { onAbort } from "#shared/abort.ts";
import { caps, type Driver, type Mode, STATEMENT_TIMEOUT_MS } from "./driver.ts";
import { refused } from "./meter.ts";
import { giveUp, openSession, READ_ONLY_TRANSACTION, TRANSACTION } from "./mysql-session.ts";
import { BEGIN_WITHIN_MS, patiently } from "./patience.ts";
import { openReaper } from "./reaper.ts";
import { openSlots } from "./slots.ts";

const IDLE_MS = 30_000;

/** As MariaDB knows it (seconds, any statement) and as MySQL does (milliseconds, SELECT only); each passes over the other's. */
const STATEMENT_LIMIT = `/*M! max_statement_time = ${STATEMENT_TIMEOUT_MS / 1000}, */ /*!80000 max_execution_time = ${STATEMENT_TIMEOUT_MS}, */`;

/** Privileges that reach beyond the database's own tables. */
const REACH = /\b(ALL PRIVILEGES|SUPER|FILE|SYSTEM_USER|SHUTDOWN|SET_USER_ID)\b[^`]*ON \*\.\*/i;

/** Which server it is: behind a balancer another one may have a session of the same number. */
const SERVER = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@version) AS server";

export function openMysql(url: string, mode: Mode, address?: string): Driver {
  const slots = openSlots(caps.sessions);
  const idle = new Map<MysqlConnection, NodeJS.Timeout>();
  let closed = false;
  const servers = new WeakMap<MysqlConnection, string>();
  const reap = openReaper<MysqlConnection>(async (left, signal) => {
    const connection = await connect(signal);
    const server = servers.get(connection);
    onAbort(signal, () => connection.destroy());
    if (signal.aborted) return;
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
    async begin(signal, many, free = signal, whose) {
      await slots.take(free, whose);
      try {
        const connection = await open(signal);
        const within = mode === "read" ? READ_ONLY_TRANSACTION : many ? TRANSACTION : 0;
        return openSession(connection, within, (reusable, running) => {
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
