// The ledger: every dispatch becomes a row, appended in batches at the moments of common commits together with the budgets it changed, so
// that both agree after any crash. Nothing on a request's path waits for it, but for what a key keeps.
import type { BudgetChanges, Budgets } from "#daemon/gateway/budgets/budgets.ts";
import type { AccountChange } from "#daemon/gateway/budgets/store.ts";
import { atCommitMoment } from "#daemon/storage/commit-moment.ts";
import { isRefusal } from "#daemon/storage/failure.ts";
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

interface Part {
  readonly rows: readonly string[];
  /** Absent: no budget has changed. */
  readonly changes?: BudgetChanges | undefined;
}

interface Batch extends Part {
  readonly number: number;
}

export interface Ledger {
  record(row: LedgerRow): void;
  /** Budgets have changed without a row. */
  touch(): void;
  /** What is stored and what is about to be. */
  usage(query: UsageQuery): Promise<readonly UsageSum[]>;
  flush(): Promise<void>;
  /** Resolves when everything recorded until now is stored. */
  stored(): Promise<void>;
  close(): Promise<void>;
}

const RETRY_MS = 1_000;
const MAX_BATCH = 1_000;
/** Rows kept while the disk is full; beyond, the oldest are given up, and that is logged. */
const MAX_WAITING = 100_000;

export function createLedger(store: LedgerStore, budgets: Budgets, logger: Logger): Ledger {
  let waiting: string[] = [];
  let retry: NodeJS.Timeout | undefined;
  let flushing: Promise<void> | undefined;
  let lost = 0;
  let recorded = 0;
  /** Rows that are stored or given up, in the order in which they were recorded. */
  let settled = 0;
  let closed = false;
  let batches = 0;
  /** Of budgets' changes, beside those that were taken last. */
  let more = false;
  /** Not known to be stored: it is tried again as it is, since it may be. */
  let unsure: Batch | undefined;
  /** What is left of a batch that storage refused for what it holds, in smaller ones. */
  const parts: Part[] = [];
  /** Accounts whose change is refused by itself: tried again at every flush, since what was spent must not be lost. */
  let refused: BudgetChanges[] = [];

  const schedule = (): void => {
    if (!closed && !retry) atCommitMoment(flushUnlessClosed);
  };

  const flushUnlessClosed = (): void => {
    if (!closed) void flush().catch(() => undefined);
  };

  const retryLater = (): void => {
    if (closed) return;
    retry ??= setTimeout(() => {
      retry = undefined;
      void flush().catch(() => undefined);
    }, RETRY_MS).unref();
  };

  const nextBatch = (): Batch | undefined => {
    const part = parts.shift();
    if (part) return { number: ++batches, ...part };
    const rows = waiting.slice(0, MAX_BATCH);
    const changes = budgets.takeChanges();
    more = changes.more;
    if (rows.length === 0 && changes.accounts.length === 0) return undefined;
    waiting = waiting.slice(rows.length);
    return { number: ++batches, rows, changes };
  };

  /** True while there may be more. */
  const writeOnce = async (): Promise<boolean> => {
    const batch = unsure ?? nextBatch();
    if (!batch) return false;
    const { number, rows, changes } = batch;
    try {
      await store.append(number, rows, changes?.accounts ?? []);
      unsure = undefined;
      changes?.stored();
      settled += rows.length;
    } catch (error) {
      if (isRefusal(error)) {
        unsure = undefined;
        takeApart(batch, error);
      } else {
        unsure = batch;
        changes?.failed(error);
        if (waiting.length > MAX_WAITING) {
          lost += waiting.length - MAX_WAITING;
          settled += waiting.length - MAX_WAITING;
          waiting = waiting.slice(-MAX_WAITING);
        }
        logFailure(rows.length, error);
        throw error;
      }
    }
    return waiting.length > 0 || parts.length > 0 || more;
  };

  // Until what is refused stands alone. None of the batch is stored.
  const takeApart = ({ rows, changes }: Part, error: unknown): void => {
    const middle = Math.ceil(rows.length / 2);
    if (changes && changes.accounts.length > 0 && rows.length > 0) parts.unshift({ rows: [], changes }, { rows });
    else if (rows.length > 1) parts.unshift({ rows: rows.slice(0, middle) }, { rows: rows.slice(middle) });
    else if (changes && changes.accounts.length > 1) parts.unshift(...changes.halves().map(ofBudgets));
    else {
      if (changes && rows.length === 0) {
        changes.failed(error);
        refused.push(changes);
      } else {
        lost++;
        settled++;
      }
      logFailure(0, error);
    }
  };

  const logFailure = (unstored: number, error: unknown): void => {
    const rows = parts.reduce((sum, part) => sum + part.rows.length, waiting.length + unstored);
    logger.error("gateway.ledger_failed", { waiting: rows, lost, ...errorFields(error) });
  };

  const flush = (): Promise<void> => {
    flushing ??= (async () => {
      try {
        parts.push(...refused.map(ofBudgets));
        refused = [];
        // What comes meanwhile waits for the next one: else there would be no end to it under load.
        const until = recorded;
        while ((await writeOnce()) && (settled < until || parts.length > 0 || more));
      } finally {
        flushing = undefined;
      }
    })().then(
      () => {
        if (refused.length > 0) retryLater();
        else if (budgets.dirty || waiting.length > 0) schedule();
      },
      (error: unknown) => {
        retryLater();
        throw error;
      },
    );
    return flushing;
  };

  const stored = async (): Promise<void> => {
    // A batch under way may have been cut before the newest row.
    await flushing?.catch(() => undefined);
    await flush();
  };

  return {
    record(row) {
      waiting.push(rowText(row));
      recorded++;
      schedule();
    },
    touch: schedule,
    async usage(query) {
      await stored();
      return await store.usage(query);
    },
    flush,
    stored,
    async close() {
      closed = true;
      clearTimeout(retry);
      await flushing?.catch(() => undefined);
      // Twice: the first pass writes what was spent, the second gives back leases that were kept for the next call.
      await flush();
      await flush();
    },
  };
}

function ofBudgets(changes: BudgetChanges): Part {
  return { rows: [], changes };
}
