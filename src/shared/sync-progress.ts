// How far a run of a sync has come: for the line that `sync run` and `sync watch` show.
import type { SyncProgress } from "#contract/sync.ts";

/** `40 % of about 3,000,000 records, part 2 of 5, about 12 s left`; empty where nothing can be said. `seconds`: since it began. */
export function aheadOf(progress: SyncProgress, seconds: number): string {
  const { records_read: read, records_total: total, partitions } = progress;
  const share = shareOf(progress);
  const parts: string[] = [];
  if (share !== undefined && total !== null) {
    parts.push(`${Math.floor(share * 100)} % of about ${total.toLocaleString("en-US")} records`);
    if (partitions.total > 1)
      parts.push(`part ${Math.min(partitions.done + 1, partitions.total)} of ${partitions.total}`);
    if (seconds > 1 && read < total) parts.push(`about ${Math.ceil((seconds * (1 - share)) / share)} s left`);
  }
  return parts.join(", ");
}

/** Of the records, while they are read: 0 to 0.99; undefined where nobody knows. */
export function shareOf({ records_read: read, records_total: total, phase }: SyncProgress): number | undefined {
  return phase === "read" && total !== null && total > 0 && read > 0 ? Math.min(0.99, read / total) : undefined;
}
