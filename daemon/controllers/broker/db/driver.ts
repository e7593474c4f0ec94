// What db:query needs of a database: exclusive sessions in which nothing of one caller stays for the next.
import { MAX_ROWS } from "#contract/runtime-limits.ts";

export interface QueryAnswer {
  readonly rows: Record<string, unknown>[];
  readonly row_count: number;
}

export interface Session {
  /** One statement with its parameters. Throws MagicError: `limit_exceeded` beyond the caps, `upstream_error` with the database's message. */
  query(sql: string, params: readonly unknown[]): Promise<QueryAnswer>;
  /** Throws `upstream_error` where the database has rolled back instead. */
  commit(): Promise<void>;
  /** Gives the session back; what was not committed is undone. */
  release(): Promise<void>;
  /** Ends the session at once: the deadline has passed, or its state is unknown. */
  destroy(): void;
}

export interface Driver {
  /**
   * Opens a transaction: read-only ones are so for the database itself. `many`: statements that stand or fall together. `free` ends the wait
   * for a free session (MagicError `timeout`), not the opening of one. `whose`: the controller; those that wait come by turns.
   */
  begin(signal: AbortSignal, many?: "many", free?: AbortSignal, whose?: string): Promise<Session>;
  /** Ends the sessions that rest, and those in use when they are given back. */
  close(): Promise<void>;
}

/** The statement did what only the broker may do; its session is thrown away. */
export const ENDED = "the statement ended the transaction that it ran in; use request.db.transaction";

/** By then a server ends a statement by itself, should it not notice that its caller has gone. */
export const STATEMENT_TIMEOUT_MS = 60_000;

/** A server that does not answer a reset by then is given up with its session. */
export const RELEASE_WITHIN_MS = 5_000;

export type Mode = "read" | "write";

export const caps = { rows: MAX_ROWS, bytes: 8 * 1024 * 1024, sessions: 8 } as const;
