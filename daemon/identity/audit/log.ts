// Writes the audit log: entries wait in memory for the next common commit, are chained, stored in one transaction, then anchored. Order of
// arrival is order in the chain. `record` is for the hot path; `recordDurably` is for what must not be lost with the process.
import { atCommitMoment } from "#daemon/storage/commit-moment.ts";
import type { Anchor, AnchorFile } from "./anchor.ts";
import { type AuditRecord, type ChainHead, chain, contentOf, GENESIS, idOf } from "./chain.ts";

export interface AuditStore {
  /** The last stored entry's place, at or behind the number of a known one; undefined in an empty log. */
  head(after: number): Promise<ChainHead | undefined>;
  /**
   * Appends rows (JSON: arrays in the columns' order) in one transaction unless the stored log already goes beyond `after`: then answers with
   * its head and the ids of those rows that are there, storing nothing.
   */
  append(
    after: number,
    rows: string,
  ): Promise<{ readonly head: ChainHead; readonly stored: readonly string[] } | "appended">;
}

export interface AuditLog {
  /** Puts it in the next batch: stored within 500 ms; lost if the process is killed before. */
  record(record: AuditRecord): void;
  /** Resolves when it is stored. */
  recordDurably(record: AuditRecord): Promise<void>;
  /** Resolves when everything recorded so far is stored. */
  flush(): Promise<void>;
  /** The anchor as it stands. */
  anchor(): Anchor;
  /** Moves the base of the chain up to `base`: entries up to it may be deleted afterwards. */
  checkpoint(base: ChainHead): Promise<void>;
  close(): Promise<void>;
}

export interface AuditLogOptions {
  readonly key: Buffer;
  readonly store: AuditStore;
  readonly anchors: AnchorFile;
  /** Read when the log's own anchor is missing: the one of the root that this root was copied from. */
  readonly inherited?: AnchorFile | undefined;
  /** True: where the log has no anchor of this key, the proof begins anew behind what is stored. */
  readonly startOver?: boolean | undefined;
  /** Where daemons share the log: the beginning that retention has left. One that comes later, without an anchor yet, puts its own behind what is stored. */
  readonly joins?: ChainHead | undefined;
  readonly onError: (event: "audit.append_failed" | "audit.anchor_failed" | "audit.overflow", error: unknown) => void;
}

const BATCH = 1_000;
const RETRY_MS = 1_000;
const ANCHOR_EVERY_MS = 1_000;
/** Entries that wait at most; beyond it the database has failed for long, and memory is worth more. */
const MAX_WAITING = 100_000;

interface Waiting {
  readonly content: string;
  readonly done?: { resolve(): void; reject(error: unknown): void };
}

/** Opens the log behind its anchor: where the database is behind (cut off), numbering goes on from the anchor, so the gap stays visible. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const { key, store, anchors, onError } = options;
  const found = (await anchors.read()) ?? (await options.inherited?.read());
  const known = found === undefined || found === "invalid" ? undefined : found;
  const stored = (await store.head(known?.head.sequence ?? 0)) ?? GENESIS;
  const afresh = options.startOver ? { head: stored, base: GENESIS, lost: stored } : undefined;
  const joining = found === undefined && options.joins ? { head: stored, base: options.joins } : undefined;
  const anchored: Anchor | undefined = known ?? afresh ?? joining;
  let head: ChainHead = anchored && anchored.head.sequence >= stored.sequence ? anchored.head : stored;
  let base = anchored?.base ?? GENESIS;
  const lost = anchored?.lost;
  // A missing or damaged anchor of a log that has entries is left so: writing a new one would hide what was done to it.
  const anchoring = anchored !== undefined || (found === undefined && stored.sequence === 0);
  let anchoredAt = Number.NEGATIVE_INFINITY;
  let anchorTimer: NodeJS.Timeout | undefined;
  // Before the first entry: a log with entries and no anchor has been tampered with, and a crash must not look like that.
  await writeAnchor(true);

  const waiting: Waiting[] = [];
  /** How many of them somebody waits for. */
  let urgent = 0;
  let failing = false;
  let retry: NodeJS.Timeout | undefined;
  let gathering = false;
  let running: Promise<void> | undefined;

  function enqueue(entry: Waiting): void {
    if (waiting.length >= MAX_WAITING) {
      const error = new Error("the audit queue is full");
      onError("audit.overflow", error);
      entry.done?.reject(error);
      return;
    }
    waiting.push(entry);
    if (entry.done) urgent++;
    if (pressing()) gather();
    else schedule();
  }

  // One turn later, so that what arrives together is stored together.
  function gather(): void {
    if (gathering) return;
    gathering = true;
    setImmediate(() => {
      gathering = false;
      drainIfAny();
    });
  }

  function schedule(): void {
    if (!retry) atCommitMoment(drainIfAny);
  }

  function drainIfAny(): void {
    if (waiting.length > 0) void drain();
  }

  // Nobody waits for an ordinary entry: storing each handful as it comes would cost more than all of them at once, a moment later.
  function pressing(): boolean {
    return waiting.length > 0 && (urgent > 0 || (waiting.length >= BATCH && !failing));
  }

  function drain(): Promise<void> {
    clearTimeout(retry);
    retry = undefined;
    running ??= storeAll();
    return running;
  }

  async function storeAll(): Promise<void> {
    let stored: boolean;
    do stored = await storeBatch();
    while (stored && pressing());
    // In the same step as the last look at the queue: an entry that came in between would wait for the next one to come.
    running = undefined;
    if (waiting.length === 0) return;
    if (stored) schedule();
    else retry ??= setTimeout(drain, RETRY_MS).unref();
  }

  /** False when storing failed: the batch stays in the queue for the next try. */
  async function storeBatch(): Promise<boolean> {
    const batch = waiting.slice(0, BATCH);
    try {
      await append(batch.map(({ content }) => content));
      failing = false;
    } catch (error) {
      failing = true;
      onError("audit.append_failed", error);
      // Those who wait are told; their entries stay queued all the same.
      for (const [index, { content, done }] of batch.entries()) {
        if (!done) continue;
        urgent--;
        waiting[index] = { content };
        done.reject(error);
      }
      return false;
    }
    waiting.splice(0, batch.length);
    for (const { done } of batch) {
      if (!done) continue;
      urgent--;
      done.resolve();
    }
    await anchorSoon();
    return true;
  }

  // Every batch of a busy daemon would replace the file. An anchor that is behind a little is one all the same.
  async function anchorSoon(): Promise<void> {
    const wait = anchoredAt + ANCHOR_EVERY_MS - performance.now();
    if (wait <= 0) return writeAnchor(false);
    anchorTimer ??= setTimeout(() => void writeAnchor(false), wait).unref();
  }

  // Another replica may have appended meanwhile, or an earlier try of this batch whose answer was lost: chain the rest on behind it and
  // try again.
  async function append(contents: readonly string[]): Promise<void> {
    let left = contents;
    for (let attempt = 0; attempt < 20; attempt++) {
      const chained = chain(key, head, left);
      const answer = await store.append(head.sequence, chained.rows);
      if (answer === "appended") {
        head = chained.head;
        return;
      }
      head = answer.head;
      const stored = new Set(answer.stored);
      if (stored.size > 0) left = left.filter((content) => !stored.has(idOf(content)));
      if (left.length === 0) return;
    }
    throw new Error("the audit log is appended to by too many others");
  }

  async function writeAnchor(durable: boolean): Promise<void> {
    clearTimeout(anchorTimer);
    anchorTimer = undefined;
    anchoredAt = performance.now();
    if (!anchoring) return;
    await anchors.write({ head, base, lost }, durable).catch((error: unknown) => onError("audit.anchor_failed", error));
  }

  async function flush(): Promise<void> {
    urgent++;
    await running;
    if (waiting.length > 0) await drain();
    urgent--;
    if (anchorTimer) await writeAnchor(false);
  }

  return {
    record: (record) => enqueue({ content: contentOf(record) }),
    recordDurably: (record) =>
      new Promise((resolve, reject) => {
        enqueue({ content: contentOf(record), done: { resolve, reject } });
      }),
    flush,
    anchor: () => ({ head, base, lost }),
    async checkpoint(next) {
      base = next;
      if (anchoring) await anchors.write({ head, base, lost }, true);
    },
    async close() {
      await flush();
      clearTimeout(retry);
      clearTimeout(anchorTimer);
      if (head.sequence > 0) await writeAnchor(true);
    },
  };
}
