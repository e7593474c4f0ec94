// One use of a session at MySQL or MariaDB: its statements, and its end. It keeps nothing for the next one.
import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import type { Connection as MysqlConnection, ResultSetHeader } from "mysql2/promise";
import { MagicError } from "#contract/errors.ts";
import { behindComments, firstWord } from "#contract/statement.ts";
import { ENDED, type QueryAnswer, RELEASE_WITHIN_MS, type Session, STATEMENT_TIMEOUT_MS } from "./driver.ts";
import { driverValue, openMeter, refused, wireValue } from "./meter.ts";
import { timeOf, typeCast } from "./mysql-values.ts";
import { patiently } from "./patience.ts";
import { questionMarks } from "./statement.ts";
import { countBytes } from "./wire-cap.ts";

/** SERVER_STATUS_IN_TRANS and SERVER_STATUS_IN_TRANS_READONLY of the protocol. */
export const TRANSACTION = 0x0001;
export const READ_ONLY_TRANSACTION = 0x2000;

/** Before such a statement the server commits what it has; what follows is committed one by one. */
const COMMITS = new Set([
  ...["alter", "analyze", "cache", "check", "create", "drop", "grant", "optimize"],
  ...["rename", "repair", "revoke", "truncate"],
]);
const TEMPORARY = /^(create(\s+or\s+replace)?|drop)\s+temporary\b/i;

/**
 * `within`: what the server's status must say after each statement. `give` is called once, at its end: whether the session can be used again,
 * and whether a statement of it still runs.
 */
export function openSession(
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
export function giveUp(connection: MysqlConnection): void {
  (connection as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}

/** What the driver's promises stand on. What is asked of it is sent in that order. */
interface Underlying extends EventEmitter {
  readonly stream: Socket;
  prepare(
    options: { readonly sql: string },
    told: (error: Error | null, statement: { readonly parameters: readonly unknown[] }) => void,
  ): void;
  /** The statement that was prepared by the same text. */
  execute(options: object, values: readonly unknown[]): Execution;
}

interface Execution {
  /** Called when its turn has come; null: it is over. */
  start(...args: unknown[]): unknown;
  on(event: string, listener: (value: never) => void): void;
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
    const under = (connection as unknown as { connection: unknown }).connection as Underlying;
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
    // A prepared statement is one statement. What has no placeholder the server would take for the beginning of the next value. Both are asked
    // for in one step: what follows, as the end of the transaction, must not get between them.
    let query: Execution | undefined;
    under.prepare({ sql: marked.sql }, (error, statement) => {
      // Of an error the execution tells.
      if (error || statement.parameters.length === marked.params.length) return;
      const [wanted, came] = [statement.parameters.length, marked.params.length];
      lost(
        new MagicError("invalid_request", `the statement has placeholders for ${wanted}, and ${came} parameters came`),
      );
      if (query) query.start = () => null;
    });
    if (done) return;
    query = under.execute({ sql: marked.sql, typeCast }, marked.params);
    let changed = 0;
    let status: number | null = null;
    // Its rows come one by one.
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
