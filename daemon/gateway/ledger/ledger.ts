// The ledger: every dispatch becomes a row, appended in batches a tenth of a second apart together with the budgets it changed, so
// that both agree after any crash. Nothing on a request's path waits for it.

import type { BudgetChanges, Budgets } from "#daemon/gateway/budgets/budgets.ts";
import type { AccountChange } from "#daemon/gateway/budgets/store.ts";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";
import { type LedgerRow, rowText, type UsageQuery, type UsageSum } from "./row.ts";

/** daemon/storage/repositories/ledger.ts and usage.ts satisfy it. */
export interface LedgerStore {
  /**
   * Stores rows (each as `rowText` writes it) and what became of budgets in one transaction. Batches are numbered upwards; one that is
   * stored already, though the word of it was lost, is not stored again.
   */
  append(batch: number, rows: readonly string[], accounts: readonly AccountChange[]): Promise<void>;
  usage(query: UsageQuery): Promise<readonly UsageSum[]>;
  /** Does what sums would have to do first. */
  gather(): Promise<void>;
  /** Removes some of the calls of before that day (UTC), but not from sums over whole days; true while there may be more. */
  forget(before: string): Promise<boolean>;
}

interface Batch {
  readonly number: number;
  readonly rows: readonly string[];
  readonly changes: BudgetChanges;
}

export interface Ledger {
  record(row: LedgerRow): void;
  /** Budgets have changed without a row. */
  touch(): void;
  /** What is stored and what is about to be. */
  usage(query: UsageQuery): Promise<readonly UsageSum[]>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

const INTERVAL_MS = 100;
const RETRY_MS = 1_000;
const MAX_BATCH = 1_000;
/** Rows kept while the disk is full; beyond, the oldest are given up, and that is logged. */
const MAX_WAITING = 100_000;

export function createLedger(store: LedgerStore, budgets: Budgets, logger: Logger): Ledger {
  let waiting: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> | undefined;
  let lost = 0;
  let closed = false;
  let batches = 0;
  /** Not known to be stored: it is tried again as it is, since it may be. */
  let unsure: Batch | undefined;

  const schedule = (ms: number): void => {
    if (closed) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      void flush().catch(() => undefined);
    }, ms);
    timer.unref();
  };

  const nextBatch = (): Batch | undefined => {
    const rows = waiting.slice(0, MAX_BATCH);
    const changes = budgets.takeChanges();
    if (rows.length === 0 && changes.accounts.length === 0) return undefined;
    waiting = waiting.slice(rows.length);
    return { number: ++batches, rows, changes };
  };

  /** True while there may be more. */
  const writeOnce = async (): Promise<boolean> => {
    const batch = unsure ?? nextBatch();
    if (!batch) return false;
    try {
      await store.append(batch.number, batch.rows, batch.changes.accounts);
      unsure = undefined;
      batch.changes.stored();
      return waiting.length > 0 || batch.changes.more;
    } catch (error) {
      unsure = batch;
      batch.changes.failed(error);
      if (waiting.length > MAX_WAITING) {
        lost += waiting.length - MAX_WAITING;
        waiting = waiting.slice(-MAX_WAITING);
      }
      logger.error("gateway.ledger_failed", {
        waiting: waiting.length + batch.rows.length,
        lost,
        ...errorFields(error),
      });
      throw error;
    }
  };

  const flush = (): Promise<void> => {
    flushing ??= (async () => {
      try {
        while (await writeOnce());
      } finally {
        flushing = undefined;
      }
    })().then(
      () => {
        if (budgets.dirty) schedule(INTERVAL_MS);
      },
      (error: unknown) => {
        schedule(RETRY_MS);
        throw error;
      },
    );
    return flushing;
  };

  return {
    record(row) {
      waiting.push(rowText(row));
      schedule(INTERVAL_MS);
    },
    touch: () => schedule(INTERVAL_MS),
    async usage(query) {
      // A batch under way may have been cut before the newest row.
      await flushing?.catch(() => undefined);
      await flush();
      return await store.usage(query);
    },
    flush,
    async close() {
      closed = true;
      clearTimeout(timer);
      await flushing?.catch(() => undefined);
      // Twice: the first pass writes what was spent, the second gives back leases that were kept for the next call.
      await flush();
      await flush();
    },
  };
}
