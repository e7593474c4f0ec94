/** Work that must happen, now or later, across restarts. A finished job is removed. */
export interface JobTable {
  readonly id: string;
  readonly queue: string;
  /** At most one job of a queue has this key; null: any number. */
  readonly key: string | null;
  /** JSON. */
  readonly payload: string;
  /** Milliseconds since the epoch. */
  readonly run_at: number;
  /** How often it was claimed. */
  readonly attempts: number;
  /** Raised when it is put anew, so that a run under way does not remove what came after it. */
  readonly version: number;
  /** Who runs it, until when; null while it waits. */
  readonly owner: string | null;
  readonly lease_until: number | null;
}

export interface JobTables {
  readonly job: JobTable;
}
