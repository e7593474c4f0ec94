// One use of a session at PostgreSQL: its statements, and its end. It keeps nothing for the next one.
import type { Socket } from "node:net";
import pg from "pg";
import { MagicError } from "#contract/errors.ts";
import { ENDED, type Mode, type QueryAnswer, RELEASE_WITHIN_MS, type Session, STATEMENT_TIMEOUT_MS } from "./driver.ts";
import { openMeter, refused } from "./meter.ts";
import { patiently } from "./patience.ts";
import { parameterOf, types } from "./postgres-values.ts";
import { countBytes } from "./wire-cap.ts";

/** `give` is called once, at its end: whether the session can be used again, and whether a statement of it still runs. */
export function openSession(
  client: pg.Client,
  mode: Mode,
  give: (reusable: boolean, running: boolean) => void,
): Session {
  let open = true;
  let given = false;
  let running = 0;
  const destroy = (): void => {
    open = false;
    if (given) return;
    given = true;
    socketOf(client).destroy();
    give(false, running > 0);
  };
  return {
    async query(sql, params) {
      try {
        running++;
        const answer = await stream(client, sql, params.map(parameterOf), () => running--);
        // Whatever the statement's text hid: outside the broker's transaction nothing more is sent.
        if (client.getTransactionStatus() === "I") throw new MagicError("invalid_request", ENDED);
        return answer;
      } catch (error) {
        if (error instanceof MagicError) {
          destroy();
          throw error;
        }
        // The type's name is the same in every language of its messages.
        const noJson = /\bjson\b/.test((error as Error).message) && params.some(Array.isArray);
        throw refused(error, noJson ? "; a list is sent as an array: send JSON.stringify(list) as json" : "");
      }
    },
    // PostgreSQL before 16 lets large objects be written where nothing may be, and sends a NOTIFY: what reads has nothing to commit.
    async commit() {
      if (mode === "read") {
        if (client.getTransactionStatus() === "E") throw rolledBack();
        return;
      }
      const { command } = await patiently(
        () => socketOf(client).destroy(),
        () => client.query("COMMIT"),
        STATEMENT_TIMEOUT_MS,
      ).catch((error: unknown) => {
        throw refused(error);
      });
      open = false;
      // What failed inside of it was caught and passed over; the server says so in no other way.
      if (command !== "COMMIT") throw rolledBack();
    },
    async release() {
      if (given) return;
      const late = setTimeout(destroy, RELEASE_WITHIN_MS);
      try {
        if (open) await client.query("ROLLBACK");
        // Settings, temporary tables, advisory locks and prepared statements are the next caller's business no more.
        await client.query("DISCARD ALL");
        if (given) return;
        given = true;
        give(true, false);
      } catch {
        destroy();
      } finally {
        clearTimeout(late);
      }
    },
    destroy,
  };
}

function rolledBack(): MagicError {
  return new MagicError("upstream_error", "the database rolled the transaction back: a statement of it had failed");
}

/** Runs one statement (the extended protocol takes no second), its rows counted as they come. `onOver`: the server has ended it. */
function stream(client: pg.Client, text: string, values: readonly unknown[], onOver: () => void): Promise<QueryAnswer> {
  return new Promise((resolve, reject) => {
    const meter = openMeter();
    const uncounted = countBytes(socketOf(client), reject);
    // queryMode: without it a statement without parameters would go by the simple protocol, which takes several at once.
    const query = new pg.Query({ text, values: [...values], types, queryMode: "extended" } as never);
    query.on("row", (row: Record<string, unknown>) => {
      try {
        meter.add(row);
      } catch (error) {
        reject(error);
      }
    });
    query.on("end", (result) => {
      uncounted();
      onOver();
      resolve({ rows: meter.rows, row_count: result?.rowCount ?? meter.rows.length });
    });
    query.on("error", (error) => {
      uncounted();
      onOver();
      reject(error);
    });
    client.query(query as never);
  });
}

export function socketOf(client: pg.Client): Socket {
  return client.connection.stream as Socket;
}
