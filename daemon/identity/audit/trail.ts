// The audit log of one root: the chained log over the storage units, with its anchor, its listing, its proof and its retention.
import type { Outcome } from "#contract/audit.ts";
import type { Principal } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import { type Slice, slice } from "#daemon/storage/page.ts";
import type { ListAudit } from "#daemon/storage/repositories/audit.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { AuditEntryTable } from "#daemon/storage/tables/audit.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, DAY_MS, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { anchorFile, anchorName, anchorPath } from "./anchor.ts";
import type { AuditRecord, ChainedRecord } from "./chain.ts";
import { openAuditLog } from "./log.ts";
import { further, sharedBase } from "./shared-base.ts";
import { type Verification, verifyChain } from "./verify.ts";

/** A call as the surfaces tell of it. */
export interface AuditedCall {
  readonly identity: Pick<Principal, "type" | "id">;
  readonly environment: Environment;
  /** `<noun>.<verb>`, e.g. `connections.create`. */
  readonly action: string;
  readonly resource: string | null;
  readonly status: number;
  /** By default what the status says. */
  readonly outcome?: Outcome | undefined;
  readonly requestId: string;
}

export interface AuditTrail {
  /** Stored within 500 ms; a process that is killed before loses it. */
  record(call: AuditedCall): void;
  /** Stored when it resolves. */
  recordDurably(call: AuditedCall): Promise<void>;
  list(query: ListAudit): Promise<Slice<AuditEntryTable>>;
  /** Walks the whole chain, everything recorded so far included. */
  verify(): Promise<Verification>;
  /** Deletes entries older than this, leaving a checkpoint; answers how many went. */
  prune(olderThan: Date): Promise<number>;
  close(): Promise<void>;
}

export interface AuditTrailOptions {
  readonly storage: Storage;
  readonly key: Buffer;
  readonly root: string;
  readonly userState: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What an earlier master key vouched for is given up. */
  readonly startOver: boolean;
  /** null: entries are kept for ever. */
  readonly retentionDays: () => number | null;
}

const ANCHORED_AT = "identity.audit_anchor";
const PAGE = 1_000;
/** Entries that one step of a list looks at: some milliseconds. */
const LOOKED_AT = 20_000;
/** Entries that one step of retention looks at or deletes. */
const PRUNED = 5_000;
const FIRST_RETENTION_MS = 60_000;
const RETENTION_EVERY_MS = 6 * 3_600_000;

export async function openAuditTrail(options: AuditTrailOptions): Promise<AuditTrail> {
  const { storage, key, clock, logger } = options;
  const { audit: units, setting } = storage.units;
  const name = anchorName(options.root, storage.dialect);
  const anchors = anchorFile(anchorPath(options.userState, name), key);
  const bases = sharedBase(storage.units, key);
  // A copied root finds the anchor of the root that it was copied from, once.
  const before = await setting.get({ key: ANCHORED_AT });
  const log = await openAuditLog({
    key,
    anchors,
    inherited: isOther(before) ? anchorFile(anchorPath(options.userState, before), key) : undefined,
    startOver: options.startOver,
    joins: storage.dialect === "postgres" ? await bases.read() : undefined,
    store: {
      head: (after) => units.head({ after }),
      append: (after, rows) => units.append({ after, rows }),
    },
    onError: (event, error) => logger.error(event, { error: String(error) }),
  });
  function isOther(candidate: string | null): candidate is string {
    return candidate !== null && candidate !== name && /^[0-9a-f]{32}$/.test(candidate);
  }
  if (before !== name) await setting.put({ key: ANCHORED_AT, value: name });

  async function* pages(): AsyncGenerator<readonly ChainedRecord[]> {
    for (let after: number | null = null; ; ) {
      const page = (await units.page({ after, limit: PAGE })) as ChainedRecord[];
      yield page;
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      after = last.sequence;
    }
  }

  // What a crash left behind of entries that retention had taken out of the chain.
  let pruning = removeUpTo(log.anchor().base.sequence).catch((error: unknown) => {
    logger.error("audit.retention_failed", { error: String(error) });
    return 0;
  });

  async function removeUpTo(sequence: number): Promise<number> {
    let removed = 0;
    if (sequence > 0)
      for (let count = 1; count > 0; removed += count) count = await units.prune({ upTo: sequence, limit: PRUNED });
    return removed;
  }

  async function prune(olderThan: Date): Promise<number> {
    await log.flush();
    const before = rfc3339(olderThan.getTime());
    const from = log.anchor().base;
    let base = from;
    for (let more = true; more; ) {
      const step = await units.lastBefore({ before, after: base.sequence, limit: PRUNED });
      base = step.last ?? base;
      more = step.more;
    }
    if (base === from) return 0;
    // The checkpoint first: entries before it may then be there or not.
    await log.checkpoint(base);
    await bases.write(base);
    pruning = removeUpTo(base.sequence);
    return pruning;
  }

  async function retain(): Promise<void> {
    const days = options.retentionDays();
    if (days === null) return;
    const removed = await prune(new Date(clock.now() - days * DAY_MS));
    if (removed > 0) logger.info("audit.pruned", { entries: removed });
  }
  let timer = setTimeout(look, FIRST_RETENTION_MS).unref();
  function look(): void {
    retain().catch((error: unknown) => logger.error("audit.retention_failed", { error: String(error) }));
    timer = setTimeout(look, RETENTION_EVERY_MS).unref();
  }

  const recordOf = (call: AuditedCall): AuditRecord => {
    const now = clock.now();
    return {
      id: newId("aud", now),
      timestamp: rfc3339(now),
      identity_type: call.identity.type,
      identity_id: call.identity.id,
      action: call.action,
      resource: call.resource,
      outcome: call.outcome ?? outcomeOf(call.status),
      status: call.status,
      request_id: call.requestId,
      environment: call.environment,
    };
  };

  // One walk at a time: it takes the daemon's thread for a hundredth of a second at every page. Those that come meanwhile share the next.
  let walking: Promise<Verification> | undefined;
  let next: Promise<Verification> | undefined;
  function verify(): Promise<Verification> {
    if (walking === undefined) {
      walking = walk().finally(() => {
        walking = undefined;
      });
      return walking;
    }
    next ??= walking
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return verify();
      });
    return next;
  }

  async function walk(): Promise<Verification> {
    await pruning;
    await log.flush();
    const anchor = await anchors.read();
    if (anchor === undefined || anchor === "invalid") return verifyChain(key, anchor, pages());
    const base = further(anchor.base, await bases.read());
    // Another daemon may be at it still.
    await removeUpTo(base.sequence);
    return verifyChain(key, { ...anchor, base }, pages());
  }

  // Step by step, so that whoever else asks the database is served in between.
  async function list(query: ListAudit): Promise<Slice<AuditEntryTable>> {
    const rows: AuditEntryTable[] = [];
    let from: number | undefined;
    do {
      const step = await units.look({ ...query, from, reach: LOOKED_AT });
      rows.push(...step.rows);
      from = step.next ?? undefined;
    } while (from !== undefined && rows.length <= query.limit);
    return slice(rows, query, (row) => row);
  }

  return {
    record: (call) => log.record(recordOf(call)),
    recordDurably: (call) => log.recordDurably(recordOf(call)),
    list,
    verify,
    prune,
    async close() {
      clearTimeout(timer);
      await log.close();
    },
  };
}

function outcomeOf(status: number): Outcome {
  if (status < 400) return "success";
  return status === 401 || status === 403 || status === 429 ? "refused" : "failed";
}
