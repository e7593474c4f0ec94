// The cells that controllers are given, from a pool of zygotes that starts with the first need of one: a daemon without controllers costs
// nothing. What the first zygote is locked down with is known from then on.
import type { Isolation } from "#contract/wire/daemon.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Cell } from "./cell/cell.ts";
import { type CellPool, openPool } from "./cell/pool.ts";
import { cellStarter, isolationOf, noIsolation } from "./isolation.ts";

export interface Cells {
  /** Starts the pool. */
  warm(): void;
  take(overtaken?: AbortSignal): Promise<Cell>;
  /** Waits for the first zygote; throws where none can be started. */
  isolation(): Promise<Isolation>;
  /** What is known by now; null before a first zygote has started. */
  isolationNow(): Isolation | null;
  /** The level in force, `unknown` before a first zygote has started. */
  level(): string;
  close(): Promise<void>;
}

/** `size`: zygotes kept ready. */
export function openCells(options: { size: number; allowWeak: boolean; log: Logger }): Cells {
  const starter = cellStarter(options.allowWeak);
  let pool: CellPool | null = null;
  let report: Promise<Isolation> | null = null;
  let known: Isolation | null = null;
  let level = "unknown";

  function started(): { readonly pool: CellPool; readonly report: Promise<Isolation> } {
    const { start } = starter;
    pool ??= openPool({ start, size: options.size });
    report ??= measure(pool);
    report.catch(() => {
      report = null;
    });
    return { pool, report };
  }

  async function measure(from: CellPool): Promise<Isolation> {
    const cell = await from.peek().catch((error: unknown) => {
      const why = starter.why();
      if (why !== null) known = noIsolation(why);
      throw error;
    });
    const isolation = isolationOf(cell, starter.why());
    level = isolation.level;
    known = isolation;
    if (level !== "strong") options.log.warn("controller.isolation", { isolation });
    return isolation;
  }

  return {
    warm: () => void started(),
    take: (overtaken) => started().pool.take(overtaken),
    isolation: () => started().report,
    isolationNow: () => known,
    level: () => level,
    close: async () => pool?.close(),
  };
}
